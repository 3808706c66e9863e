"""Lost processes, where the MPI library can go on without (ULFM)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from mpi4py import MPI

from ..waiting.errors import ProcessLost
from ..waiting.waiting import TimeLimit, until

#: seconds until the library of a rank that learned of a loss names the lost ranks
SECONDS_UNTIL_RANKS_NAMED = 2.0
#: seconds after an error until the library of a rank reports a loss
SECONDS_UNTIL_LOSS_REPORTED = 0.5


@cache
def is_noticed() -> bool:
    """Whether the library goes on when processes are lost, by a trial.

    A library may have the functions of ULFM without support, so the functions are
    called on a communicator of this process.
    """
    alone = MPI.COMM_SELF.Dup()
    try:
        alone.Revoke()
        return alone.Is_revoked() and not _failed(alone)
    except (AttributeError, NotImplementedError, MPI.Exception):
        return False
    finally:
        alone.Free()


def _failed(comm: MPI.Intracomm) -> list[int]:
    """The ranks that the library reports as lost."""
    failed, members = comm.Get_failed(), comm.Get_group()
    try:
        return sorted(failed.Translate_ranks(range(failed.size), members))
    finally:
        members.Free()
        if failed != MPI.GROUP_EMPTY:
            failed.Free()


def is_lost(comm: MPI.Intracomm) -> bool:
    """Whether a process of a communicator is lost, as far as this rank knows."""
    return bool(comm.Is_revoked() or _failed(comm))


def is_due_to(error: BaseException, comm: MPI.Intracomm) -> bool:
    """Whether an error is due to a lost process.

    The class of the error does not always tell, and the library may learn of a loss
    only after the error, so the rank waits for the report.
    """
    if isinstance(error, ProcessLost):
        return True
    if not isinstance(error, MPI.Exception):
        return is_lost(comm)
    if error.Get_error_class() in (MPI.ERR_PROC_FAILED, MPI.ERR_REVOKED):
        return True
    return until(
        lambda: MPI.COMM_SELF.Iprobe() or is_lost(comm),
        TimeLimit(SECONDS_UNTIL_LOSS_REPORTED),
    )


def look(comm: MPI.Intracomm) -> None:
    """Raise if a process is lost, although no message of the process is awaited."""
    if is_lost(comm):
        raise ProcessLost((), (), "")


def process_lost(comm: MPI.Intracomm, who: Callable[[int], str]) -> ProcessLost:
    """The error that names the lost processes.

    Waits for the names, since a rank learns of a loss from other ranks earlier than
    from the library.
    """
    # the probe lets the library notice: no library looks for losses between calls
    until(
        lambda: MPI.COMM_SELF.Iprobe() or _failed(comm),
        TimeLimit(SECONDS_UNTIL_RANKS_NAMED),
    )
    ranks = _failed(comm)
    advice = "go on with recouple() or free the communicator"
    return ProcessLost(ranks, [who(r) for r in ranks], advice)
