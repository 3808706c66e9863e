"""What isthmus keeps for a user's communicator, on an attribute of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar

from mpi4py import MPI

from ...settings import timeout
from ..waiting.waiting import TimeLimit


class Freed(Protocol):
    """Something that goes with the communicator."""

    def leave(self) -> None:
        """Take no more calls; this calls nothing of MPI."""

    def free(self) -> None:
        """Give everything back; collective, like freeing the communicator."""


Kept = TypeVar("Kept", bound=Freed)
#: what was kept for communicators that are no more, and is to be given back
_aside: deque[Freed] = deque()


def _stored(comm: MPI.Comm) -> dict[str, Any]:
    """All that is kept, by names."""
    found: Any = comm.Get_attr(_keyval())
    if found is None:
        comm.Set_attr(_keyval(), found := {})
    return found  # type: ignore[no-any-return]


def limit_of(comm: MPI.Comm) -> TimeLimit:
    """How long this process waits on a communicator: as ISTHMUS_TIMEOUT says, until
    somebody says something else."""
    stored = _stored(comm)
    if "limit" not in stored:
        stored["limit"] = TimeLimit(timeout())
    found: TimeLimit = stored["limit"]
    return found


def known(comm: MPI.Comm, name: str) -> Any:
    """What is kept under a name, if anything."""
    return _stored(comm).get(name)


def attached(comm: MPI.Comm, name: str, make: Callable[[Any], Kept]) -> Kept:
    """What is kept under a name, made by all processes when first asked for."""
    found = _stored(comm)
    if name not in found:
        _give_back()
        found[name] = make(comm)
    kept: Kept = found[name]
    return kept


def release(comm: MPI.Comm, name: str | None = None) -> None:
    """Give back what is kept for a communicator, before it is freed; or only what is
    kept under a name."""
    found: dict[str, Freed] = comm.Get_attr(_keyval()) or {}  # type: ignore[assignment]
    if name is not None:
        found = {name: found.pop(name)} if name in found else {}
    while found:
        found.popitem()[1].free()
    _give_back()


def _give_back() -> None:
    while _aside:
        _aside.popleft().free()


def _delete(comm: MPI.Comm, keyval: int, found: dict[str, Freed]) -> None:
    """The communicator is no more.

    MPICH deletes one that was freed when its last request completes, and holds a lock
    then: whoever calls MPI here ends the program. So the next call gives it back.
    """
    for kept in found.values():
        kept.leave()
        _aside.append(kept)


@cache
def _keyval() -> int:
    """Our attribute on communicators; made when MPI is certainly running."""
    return MPI.Comm.Create_keyval(delete_fn=_delete)
