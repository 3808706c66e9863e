"""Resources of isthmus on an attribute of a user's communicator.

A user may free a communicator by MPI alone. Only MPI's own attribute goes with the
communicator then, so contexts and time limits are attached as an attribute.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar

from mpi4py import MPI

from ...settings import timeout
from ..waiting.waiting import TimeLimit


class Resource(Protocol):
    """A resource that is freed together with the communicator."""

    def leave(self) -> None:
        """Refuse later calls, without a call of MPI."""

    def free(self) -> None:
        """Free the resource; collective, like `Comm.Free`."""


AnyResource = TypeVar("AnyResource", bound=Resource)
#: resources of communicators that MPI has freed, to be freed in the next call
_orphaned: deque[Resource] = deque()


def _entries(comm: MPI.Comm) -> dict[str, Any]:
    """All entries of a communicator's attribute, by name."""
    entries: Any = comm.Get_attr(_keyval())
    if entries is None:
        comm.Set_attr(_keyval(), entries := {})
    return entries  # type: ignore[no-any-return]


def limit_of(comm: MPI.Comm) -> TimeLimit:
    """The time limit of a communicator, by default from ISTHMUS_TIMEOUT."""
    entries = _entries(comm)
    if "limit" not in entries:
        entries["limit"] = TimeLimit(timeout())
    limit: TimeLimit = entries["limit"]
    return limit


def lookup(comm: MPI.Comm, name: str) -> Any:
    """The resource with a name, or None."""
    return _entries(comm).get(name)


def attached(
    comm: MPI.Comm, name: str, make: Callable[[Any], AnyResource]
) -> AnyResource:
    """The resource with a name, created collectively at the first call."""
    entries = _entries(comm)
    if name not in entries:
        _free_orphaned()
        entries[name] = make(comm)
    resource: AnyResource = entries[name]
    return resource


def release(comm: MPI.Comm, name: str | None = None) -> None:
    """Free the resource with a name, or all before the communicator is freed."""
    entries: Any = comm.Get_attr(_keyval()) or {}
    if name is not None:
        entries = {name: entries.pop(name)} if name in entries else {}
    while entries:
        entries.popitem()[1].free()
    _free_orphaned()


def _free_orphaned() -> None:
    while _orphaned:
        _orphaned.popleft().free()


def _delete(comm: MPI.Comm, keyval: int, entries: dict[str, Resource]) -> None:
    """MPI's callback for the end of a communicator: put the resources aside.

    The next call of isthmus frees the resources, because MPI may hold a lock here:
    MPICH deletes a freed communicator when the last request completes, and a call of
    MPI from the callback would end the program.
    """
    for resource in entries.values():
        resource.leave()
        _orphaned.append(resource)


@cache
def _keyval() -> int:
    """The key of the attribute, created at first use, since MPI runs by then."""
    return MPI.Comm.Create_keyval(delete_fn=_delete)
