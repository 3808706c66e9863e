"""A stand-in for mpi4py, so that the pages can be built where there is no MPI library.

`install()` puts it in the place of mpi4py unless that works. Every name of it is a class,
and every name of such a class too: enough to import isthmus, not to run it.
"""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType
from typing import Any


class _Any(type):
    """A class whose missing names are such classes."""

    def __getattr__(cls, name: str) -> Any:
        return _named(name)


class _Module(ModuleType):
    """A module of them."""

    def __getattr__(self, name: str) -> Any:
        return _named(name)


@cache
def _named(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Any(name, (), {"__module__": "mpi4py.MPI"})


def install(always: bool = False) -> bool:
    """Whether the stand-in was needed."""
    if not always:
        try:
            from mpi4py import MPI  # noqa: F401

            return False
        except (ImportError, RuntimeError):
            pass
    whole, mpi = ModuleType("mpi4py"), _Module("mpi4py.MPI")
    whole.MPI, whole.__path__ = mpi, []  # type: ignore[attr-defined]
    sys.modules |= {"mpi4py": whole, "mpi4py.MPI": mpi}
    return True
