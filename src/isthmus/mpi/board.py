"""Memory that processes of one node share, where each lays down what it brings."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from mmap import mmap
from typing import Any

import numpy as np
from mpi4py import MPI

_SHARED = "/dev/shm"
_WORD = 8
#: who waits looks so often before it lets MPI go on, which others may need to come, and
#: so many seconds for other threads
_LOOKS, _REST = 16, 1e-6
#: the flag of a rank that was interrupted in a turn, and comes to no other
_GONE = 255
#: a word from here on is the number of a turn after the first of a call; no answer has
#: such a number
LATER = 1 << 62

Step = Callable[[], Any]
#: what a rank does before it raises its flag, and once all flags are up
Way = tuple[tuple[Step, ...], tuple[Step, ...]]
#: the way in each row of the board
Ways = tuple[Way, Way]
#: gives an address by the row and the rank
Place = Callable[[int, int], int]
#: a word, and that of all ranks
Said = tuple[bytes, bytes]
NOTHING: Ways = (((), ()), ((), ()))
#: is told which rank was interrupted, and by what if it is this one; says it in words
Refuse = Callable[[int, BaseException | None], str]


class Interrupted(RuntimeError):
    """Another rank was interrupted in a call, and comes to no other."""


def interrupted(who: str, error: BaseException | None) -> str:
    """Why no more calls are made on a communicator."""
    by = "" if error is None else f" by {type(error).__name__}"
    return (
        f"isthmus: {who} was interrupted{by} in the middle of a collective call; free "
        "the communicator"
    )


def _refuse(number: int, error: BaseException | None) -> str:
    return interrupted(f"rank {number}", error)


class Board:
    """A word and a flag of each rank, and room for what it brings, on one node.

    In a turn everyone lays something down, writes its word and raises its flag; once
    all flags are up, everyone may take what the others brought. Two rows take turns,
    and two values of a flag in each: who lays down something again saw the flags of the
    turn between, so all have taken what was there before.

    A rank that is interrupted before it saw all flags says so by its own ones, and
    whoever waits for it then raises `Interrupted`, now or in a later turn.
    """

    def __init__(
        self, comm: MPI.Intracomm, memory: mmap, refuse: Refuse = _refuse
    ) -> None:
        self.comm, self._memory, self._refuse = comm, memory, refuse
        self._turns: Iterator[Any] = cycle(_turns(comm.Get_size(), comm.Get_rank()))
        self._rooms: dict[int, mmap | None] = {}
        # To release a lock and acquire it again is a full fence. Either is an atomic
        # read-modify-write, with release and with acquire order at the least. On x86-64
        # that is a locked instruction, which nothing passes, streaming stores included.
        # On ARMv8 nothing passes a release downwards or an acquire upwards, nor an
        # acquire an earlier release (they are RCsc), so nothing passes the two.
        self._lock = threading.Lock()
        self._lock.acquire()

    def said(self, number: int) -> Said:
        """A number as a rank says it, and all of them."""
        word = number.to_bytes(_WORD, "little")
        return word, word * self.comm.Get_size()

    def turn(self, ways: Ways, said: Said) -> bool:
        """Lay down what this rank brings, and take what all brought if everyone says
        the same; whether they do."""
        # in one function, as each that is called shows where processes share cores
        memory, lock = self._memory, self._lock
        try:
            row, word, words, flag, flags, up, all_up = next(self._turns)
            before, after = ways[row]
            for step in before:
                step()
            memory[word] = said[0]
            lock.release()  # all see what is above before what is below: see __init__
            lock.acquire()
            memory[flag] = up
            if memory[flags] != all_up:
                self._wait(flags, all_up)
            lock.release()
            lock.acquire()
            same: bool = memory[words] == said[1]
            if not same and self._out_of_step(words):
                raise RuntimeError("isthmus: the ranks are not in the same call")
        except BaseException as error:
            self._interrupted(error)
            raise
        if same:
            for step in after:
                step()
        return same

    def turns(self, after: Sequence[Step], later: Sequence[tuple[Ways, Said]]) -> None:
        """Do what ends the first turn of a call, and all its later turns."""
        try:
            for step in after:
                step()
            for ways, said in later:
                self.turn(ways, said)
        except BaseException as error:
            self._interrupted(error)
            raise

    def _out_of_step(self, words: slice) -> bool:
        """Whether a rank is in a later turn of a call that this one is not in."""
        found = np.frombuffer(self._memory[words], "<u8")
        return bool((found >= LATER).any())

    def _interrupted(self, error: BaseException) -> None:
        """Come to no more turns; unless another rank was the first, let all know."""
        if not isinstance(error, Interrupted):
            self._refuse(self.comm.Get_rank(), error)
            self.leave()

    def leave(self) -> None:
        """Tell whoever waits for this rank, or will, that it comes no more."""
        for _, _, _, flag, *_ in _turns(self.comm.Get_size(), self.comm.Get_rank()):
            self._memory[flag] = _GONE

    def _wait(self, flags: slice, all_up: bytes) -> None:
        """Wait until all flags of a row are up."""
        looks = 0
        while (found := self._memory[flags]) != all_up:
            if _GONE in found:
                raise Interrupted(self._refuse(found.index(_GONE), None))
            looks += 1
            if looks % _LOOKS == 0:
                self.comm.Iprobe()
                if threading.active_count() > 1:  # nor may Python stand still
                    time.sleep(_REST)
            os.sched_yield()

    def room(self, nbytes: int) -> Place | None:
        """Room for so many bytes of each rank in each row; made by all together when
        they first ask for it. None where there is no such memory."""
        n = self.comm.Get_size()
        if nbytes not in self._rooms:
            self._rooms[nbytes] = shared(self.comm, 2 * n * nbytes)
        memory = self._rooms[nbytes]
        if memory is None:
            return None
        base = MPI.memory(memory).address
        return lambda row, rank: base + (row * n + rank) * nbytes

    def free(self) -> None:
        """Give the memory back."""
        for memory in (self._memory, *self._rooms.values()):
            if memory is not None:
                memory.close()


def board(comm: MPI.Intracomm, refuse: Refuse = _refuse) -> Board | None:
    """A board for all ranks; None on all of them where they share no memory."""
    memory = shared(comm, 2 * comm.Get_size() * (_WORD + 1))
    return None if memory is None else Board(comm, memory, refuse)


def _turns(n: int, me: int) -> Iterator[tuple[Any, ...]]:
    """The four turns, after which they begin anew: the row, where in it are the own
    word and all words, the own flag and all flags, and these when they are up."""
    for up in (1, 2):
        for row in (0, 1):
            words, flags = row * n * _WORD, (2 * _WORD + row) * n
            yield (
                row,
                slice(words + me * _WORD, words + (me + 1) * _WORD),
                slice(words, words + n * _WORD),
                flags + me,
                slice(flags, flags + n),
                up,
                bytes([up] * n),
            )


def shared(comm: MPI.Intracomm, nbytes: int) -> mmap | None:
    """Memory of zeros that all ranks share; None on all of them where they cannot."""
    first = comm.Get_rank() == 0
    path = (_attempt(partial(_file, nbytes)) or "") if first else None
    path = comm.bcast(path)
    found = _attempt(partial(_mapped, path, nbytes))
    # not mpi4py's allreduce of objects: other threads would have to wait for its end
    complete = np.array(found is not None)
    comm.Allreduce(MPI.IN_PLACE, complete, MPI.LAND)
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
    """A file of zeros in memory, if there is a place for such; all of it is there, as
    memory that turns out to be missing ends a process."""
    where = _SHARED if os.path.isdir(_SHARED) else None
    handle, path = tempfile.mkstemp(prefix=f"isthmus-{os.getpid()}-", dir=where)
    try:
        with open(handle, "wb") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(handle, 0, nbytes)
            else:
                file.write(bytes(nbytes))
    except OSError:
        os.unlink(path)
        raise
    return path


def _mapped(path: str, nbytes: int) -> mmap:
    handle = os.open(path, os.O_RDWR)
    try:
        return mmap(handle, nbytes)
    finally:
        os.close(handle)
