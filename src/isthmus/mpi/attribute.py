"""What isthmus keeps for a user's communicator, on an attribute of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar

from mpi4py import MPI


class Freed(Protocol):
    """Something that goes with the communicator."""

    def free(self) -> None:
        """Give everything back; collective, like freeing the communicator."""


Kept = TypeVar("Kept", bound=Freed)


def attached(comm: MPI.Comm, name: str, make: Callable[[Any], Kept]) -> Kept:
    """What is kept under a name, made by all processes when first asked for."""
    found: Any = comm.Get_attr(_keyval())
    if found is None:
        comm.Set_attr(_keyval(), found := {})
    if name not in found:
        found[name] = make(comm)
    kept: Kept = found[name]
    return kept


def _delete(comm: MPI.Comm, keyval: int, found: dict[str, Freed]) -> None:
    for kept in found.values():
        kept.free()


@cache
def _keyval() -> int:
    """Our attribute on communicators; made when MPI is certainly running."""
    return MPI.Comm.Create_keyval(delete_fn=_delete)
