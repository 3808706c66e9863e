"""Processes that were lost, where the MPI library can go on without them (ULFM)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from mpi4py import MPI

from ..waiting.errors import ProcessLost
from ..waiting.waiting import TimeLimit, until

#: seconds until a rank that heard that a process was lost knows which
KNOWN = 2.0
#: seconds after an error until a rank knows that a process was lost
SOON = 0.5


@cache
def is_noticed() -> bool:
    """Whether the library goes on when processes are lost: tried, in this process."""
    alone = MPI.COMM_SELF.Dup()
    try:
        alone.Revoke()
        return alone.Is_revoked() and not _failed(alone)
    except (AttributeError, NotImplementedError, MPI.Exception):
        return False
    finally:
        alone.Free()


def _failed(comm: MPI.Intracomm) -> list[int]:
    """The ranks that are known to be lost."""
    group, everyone = comm.Get_failed(), comm.Get_group()
    try:
        return sorted(group.Translate_ranks(range(group.size), everyone))
    finally:
        everyone.Free()
        if group != MPI.GROUP_EMPTY:
            group.Free()


def is_lost(comm: MPI.Intracomm) -> bool:
    """Whether one is, or another rank said so, as far as this one knows."""
    return bool(comm.Is_revoked() or _failed(comm))


def is_due_to(error: BaseException, comm: MPI.Intracomm) -> bool:
    """Whether an error comes from a process that was lost. The library may say so
    before it knows which, and not in all calls by the class of the error; a rank of the
    node may say so before the library."""
    if isinstance(error, ProcessLost):
        return True
    if not isinstance(error, MPI.Exception):
        return is_lost(comm)
    if error.Get_error_class() in (MPI.ERR_PROC_FAILED, MPI.ERR_REVOKED):
        return True
    return until(lambda: MPI.COMM_SELF.Iprobe() or is_lost(comm), TimeLimit(SOON))


def look(comm: MPI.Intracomm) -> None:
    """Raise if one is lost, though nobody waits for a message of it."""
    if is_lost(comm):
        raise ProcessLost((), (), "")


def process_lost(comm: MPI.Intracomm, who: Callable[[int], str]) -> ProcessLost:
    """Who was lost; a rank that heard of it from another one may know it later."""
    # a library finds out only when it is called
    until(lambda: MPI.COMM_SELF.Iprobe() or _failed(comm), TimeLimit(KNOWN))
    ranks = _failed(comm)
    then = "go on with recouple() or free the communicator"
    return ProcessLost(ranks, [who(r) for r in ranks], then)
