"""What processes of one node tell each other while they do something else."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import cycle
from mmap import mmap
from typing import Any

from mpi4py import MPI

_SHARED = "/dev/shm"
#: what a flag that says no has more than one that says yes
_NO = 2


class Flags:
    """A byte of each rank, in memory that all of them share.

    Everyone raises its flag, does its part in what all expect, and only then looks at
    the others' flags: by then they are raised, and nobody has waited. Two rows take
    turns, and two values in each: who raises a flag again saw those of the turn
    between, so all have seen the old one.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        n, me = comm.Get_size(), comm.Get_rank()
        #: the memory, once there is some
        self.raised: Any = None
        #: of each turn, the place and the value of the own flag, and those of all
        self.turns = cycle(
            (row * n + me, yes, slice(row * n, (row + 1) * n), bytes([yes] * n))
            for yes in (1, 2)
            for row in (0, 1)
        )
        self._impossible = False

    def ready(self) -> bool:
        """Whether there is memory for them, which is sought once, by all."""
        if self.raised is None and not self._impossible:
            self.raised = shared(self._comm, 2 * self._comm.Get_size())
            self._impossible = self.raised is None
        return self.raised is not None

    def all_do(self, row: slice, all_yes: bytes) -> bool:
        """Wait until all flags of a row are raised, or one says no."""
        while (found := self.raised[row]) != all_yes:
            if _NO + all_yes[0] in found:
                return False
            self._comm.Iprobe()  # whatever they wait for goes on
            os.sched_yield()
        return True

    def say_no(self) -> None:
        """Tell all that this rank does something else."""
        mine, yes, *_ = next(self.turns)
        self.raised[mine] = _NO + yes

    def free(self) -> None:
        """Give the memory back."""
        if self.raised is not None:
            self.raised.close()


def shared(comm: MPI.Intracomm, nbytes: int) -> mmap | None:
    """Memory of zeros that all ranks share; None on all of them where they cannot."""
    first = comm.Get_rank() == 0
    path = (_attempt(partial(_file, nbytes)) or "") if first else None
    path = comm.bcast(path)
    found = _attempt(partial(_mapped, path, nbytes))
    complete: bool = comm.allreduce(found is not None, MPI.LAND)
    if first and path:
        os.unlink(path)
    if found is not None and not complete:
        found.close()
    return found if complete else None


def _attempt(make: Callable[[], Any]) -> Any:
    """What is made, or None where the system refuses."""
    try:
        return make()
    except OSError:
        return None


def _file(nbytes: int) -> str:
    """A file of zeros in memory, if there is a place for such."""
    where = _SHARED if os.path.isdir(_SHARED) else None
    handle, path = tempfile.mkstemp(prefix="isthmus-", dir=where)
    os.write(handle, bytes(nbytes))
    os.close(handle)
    return path


def _mapped(path: str, nbytes: int) -> mmap:
    handle = os.open(path, os.O_RDWR)
    try:
        return mmap(handle, nbytes)
    finally:
        os.close(handle)
