"""Collective communication between and inside groups of MPI processes, at the limit."""

from __future__ import annotations

from typing import Any

from .collectives import schedule

__all__ = ["Intercomm", "Intracomm", "MismatchError", "__version__", "schedule"]
__version__ = "0.1.0"

#: names that need MPI, and where they are; MPI starts when one of them is first used
_LAZY = {
    "Intercomm": "intercomm",
    "Intracomm": "intracomm",
    "MismatchError": "check",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    import_module(".mpi.intracomm", __name__)
    value = getattr(import_module(f".mpi.{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value
