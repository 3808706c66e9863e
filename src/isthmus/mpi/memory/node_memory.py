"""Memory that the ranks of a node share: rooms for calls, and meetings there.

Calls are numbered, alike on all ranks, and take one of two rooms in turn, so that a
rank may begin a call while others still read what belongs to the one before. A rank
takes a room again when all ranks of the node say that they are done with the call
before in it.

In a meeting a rank writes its word, which says the call and the meeting, and waits for
the same word of all others. Two rows of words take turns: a rank that is a meeting
ahead writes into the other one.

The memory is a file without a name. MPI's shared windows would do, but a window can be
freed by all together only, MPICH 4 and 5 do not end while one is in the epoch that
`Win.Sync` needs, and every process of Open MPI 5 complains about UCX for each of them
where there is no such network.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from mmap import mmap
from struct import Struct
from typing import Any

import numpy as np
from mpi4py import MPI

from ..waiting.errors import ProcessLost, Stalled
from ..waiting.waiting import Limit

#: calls that can use the memory at the same time
ROOMS = 2
#: bytes of a room
ROOM = 1 << 22
_SHARED = "/dev/shm"
#: how a word lies in memory
_WORD = 8
_packed = Struct("q").pack
_PAGE = 4096
#: meetings of a call that have words of their own
_MEETINGS = 1 << 20
#: bytes that a rank can say at a meeting: those that come from memory at once
SAID = 64
#: seconds that who waits leaves to our own thread, if that has something to do
_REST = 1e-6
#: why a rank comes no more
_INTERRUPTED, _STALLED, _LOST = 1, 2, 3

#: is told which rank was interrupted, and by what if it is this one; says it in words
Refuse = Callable[[int, BaseException | None], str]


class Interrupted(RuntimeError):
    """Another rank was interrupted in a call, and comes to no other."""


class Fence:
    """All see what is done before a fence before what is done after it. For one thread
    at a time: between release and acquire another would find the lock released.

    To release a lock and acquire it again is a full fence. Either is an atomic
    read-modify-write, with release and with acquire order at the least. On x86-64 that
    is a locked instruction, which nothing passes, streaming stores included. On ARMv8
    nothing passes a release downwards or an acquire upwards, nor an acquire an earlier
    release (they are RCsc), so nothing passes the two.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def fence(self) -> None:
        """Do it."""
        self._lock.release()
        self._lock.acquire()


class NodeMemory:
    """The memory that ranks of a node share, by their numbers `ranks`."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        ranks: Sequence[int],
        refuse: Refuse,
        busy: Callable[[], bool],
        room: int,
        tag: int = 0,
        limit: Limit | None = None,
    ) -> None:
        """Made by these ranks together, with messages of a tag; `busy` says whether
        another thread must get on while this one waits."""
        self.limit = limit or Limit()
        n, me = len(ranks), ranks.index(comm.Get_rank())
        self.ranks, self.me, self.room = tuple(ranks), me, room
        #: calls that were made; all ranks count alike
        self.calls = 0
        # for a message that nobody sends: where one is found, MPICH does nothing else
        self._probe = partial(comm.Iprobe, comm.Get_rank(), 0)
        self._refuse, self._busy = refuse, busy
        #: in each room two rows of words for meetings, one of calls that are done; then
        #: a byte of each rank that says that it was interrupted, and what ranks say
        row = n * _WORD
        self._gone = slice(ROOMS * 3 * row, ROOMS * 3 * row + n)
        said = -(-self._gone.stop // SAID) * SAID
        head = -(-(said + ROOMS * n * SAID) // _PAGE) * _PAGE
        found = shared(comm, ranks, head + ROOMS * room, tag)
        self._memory, base = found, MPI.memory(found).address
        words = memoryview(found)[:head]
        #: what a rank writes; what it reads is compared as bytes, which takes less time
        self.words = words.cast("q")
        self._here = words[self._gone]
        self._read_gone, self._nobody = self._here.tobytes, bytes(n)
        self.bases = [base + head + k * room for k in range(ROOMS)]
        #: in each room, what each rank says
        self.said = [
            words[said + k * n * SAID : said + (k + 1) * n * SAID] for k in range(ROOMS)
        ]
        self._rows = [
            [slice((3 * k + i) * row, (3 * k + i + 1) * row) for i in range(3)]
            for k in range(ROOMS)
        ]
        self._own = [[x.start // _WORD + me for x in rows] for rows in self._rows]
        self._done_at = [own[2] for own in self._own]
        self._read_done = [words[rows[2]].tobytes for rows in self._rows]
        #: calls of this rank that are not done, and the last one of each room
        self._open: list[list[int]] = [[] for _ in range(ROOMS)]
        self._last = [k - ROOMS for k in range(ROOMS)]
        for k in range(ROOMS):
            self.words[self._done_at[k]] = self._last[k] + ROOMS

    def take(self) -> int:
        """The number of a call that begins, and uses the memory."""
        number = self.calls
        self.calls += 1
        k = number % ROOMS
        self._open[k].append(number)
        self._last[k] = number
        return number

    def skip(self) -> None:
        """A call does not use the memory on this rank."""
        number = self.calls
        self.calls += 1
        k = number % ROOMS
        self._last[k] = number
        if not self._open[k]:
            self.words[self._done_at[k]] = number + ROOMS

    def done(self, number: int) -> None:
        """A call is over on this rank, which has fenced what it read."""
        k = number % ROOMS
        left = self._open[k]
        left.remove(number)
        self.words[self._done_at[k]] = left[0] if left else self._last[k] + ROOMS

    def is_free(self, number: int) -> bool:
        """Whether all ranks are done with what was in the room of a call."""
        row = self._read_done[number % ROOMS]()
        if row == _packed(number) * len(self.ranks):
            return True
        self.check()
        return bool(np.frombuffer(row, np.int64).min() >= number)

    def words_of(self, ranks: Sequence[int]) -> list[slice]:
        """Where in a row the words of some ranks are, by numbers: a few slices."""
        found: list[slice] = []
        for i in sorted(map(self.ranks.index, ranks)):
            if found and found[-1].stop == i * _WORD:
                found[-1] = slice(found[-1].start, (i + 1) * _WORD)
            else:
                found.append(slice(i * _WORD, (i + 1) * _WORD))
        return found

    def check(self) -> None:
        """Raise if a rank was interrupted, waited too long or lost another."""
        gone = self._read_gone()
        if gone == self._nobody:
            return
        code = max(gone)
        number = self.ranks[gone.index(code)]
        why = self._refuse(number, None)
        if code == _LOST:
            raise ProcessLost((), (), "heard of in the memory of the node")
        if code == _STALLED:
            raise Stalled(self.limit.seconds or 0.0, [number], why=why)
        raise Interrupted(why)

    def check_interrupts(self) -> None:
        """Raise if a rank was interrupted; not for one that waited too long, as who has
        a limit names whom it waits for itself."""
        if _INTERRUPTED in self._read_gone():
            self.check()

    def leave(self, error: BaseException | None = None) -> None:
        """Tell whoever waits for this rank, or will, that it comes no more, and why."""
        code = _STALLED if isinstance(error, Stalled) else _INTERRUPTED
        self._here[self.me] = _LOST if isinstance(error, ProcessLost) else code
        Fence().fence()
        for own in self._own:  # also who did not see yet that it had come
            for where in own[:2]:
                self.words[where] = -1

    def progress(self) -> None:
        """Let MPI go on, which others may need to come, and our own thread."""
        self._probe()
        if threading.active_count() > 1:  # nor may Python stand still
            time.sleep(_REST if self._busy() else 0)

    def behind(self, ranks: Sequence[int], row: slice, number: int) -> list[int]:
        """Those of some ranks whose word in a row is below a number."""
        first = row.start // _WORD
        at = {rank: first + self.ranks.index(rank) for rank in ranks}
        return [rank for rank in ranks if self.words[at[rank]] < number]

    def free(self) -> None:
        """Give the memory back, as far as nobody looks at it any more."""
        self.words.release()
        with suppress(BufferError):
            self._memory.close()


def shared(comm: MPI.Intracomm, ranks: Sequence[int], nbytes: int, tag: int) -> mmap:
    """Memory of zeros that some ranks share, made by them together with messages of a
    tag; `MemoryError` on all of them where one cannot, which says why."""
    first, *others = ranks
    if not others:
        return mmap(-1, nbytes)
    if comm.Get_rank() != first:
        path = receive(comm, first, tag)
        found, why = _attempt(partial(_mapped, path, nbytes))
        comm.send(why, first, tag)
        why = receive(comm, first, tag)
    else:
        path, why = _attempt(partial(_file, nbytes))
        found = None
        if path:
            found, why = _attempt(partial(_mapped, path, nbytes))
        try:
            for rank in others:
                comm.send(path or "", rank, tag)
            answers = [receive(comm, rank, tag) for rank in others]
        finally:  # also if a limit or a signal ends the wait
            if path:
                os.unlink(path)
        why = next(filter(None, [why, *answers]), "")
        for rank in others:
            comm.send(why, rank, tag)
    if found is None or why:
        if found is not None:
            found.close()
        raise MemoryError(why)
    return found  # type: ignore[no-any-return]


def receive(comm: MPI.Intracomm, source: int, tag: int) -> Any:
    """A short value from another rank. A blocking receive would probe first, and in a
    probe MPICH does not give way to who shares the core (8 ranks on two cores: 20 ms
    instead of 1)."""
    return comm.irecv(None, source, tag).wait()


def _attempt(make: Callable[[], Any]) -> tuple[Any, str]:
    """What is made; or None, and why the system refuses."""
    try:
        return make(), ""
    except OSError as error:
        return None, error.strerror or str(error) or type(error).__name__


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


class Turn(Fence):
    """A plan's way through a room of the memory, call by call."""

    spins = 0

    def __init__(self, memory: NodeMemory, room: int, ranks: Sequence[int]) -> None:
        super().__init__()
        self.memory, self.room = memory, room
        self.ranks, self.number = ranks, -1
        own, rows = memory._own[room], memory._rows[room]
        self._own = own[:2]
        words = memory.words.cast("B")
        #: for each of two rows, what reads the words of these ranks, and how many
        self._rows = [
            [
                (words[row.start + x.start : row.start + x.stop].tobytes, n)
                for x in memory.words_of(ranks)
                for n in [(x.stop - x.start) // _WORD]
            ]
            for row in rows[:2]
        ]

    def test(self) -> bool:
        """Whether the room is free for the call."""
        if not self.memory.is_free(self.number):
            return False
        self.fence()
        return True

    def progress(self) -> None:
        """Let others go on."""
        self.memory.progress()

    def missing(self) -> list[int]:
        """The ranks that are not done with what was in the room."""
        m = self.memory
        return m.behind(m.ranks, m._rows[self.room][2], self.number)

    def has(self) -> str:
        """What is there already."""
        return "not begun"

    def end(self) -> None:
        """The call is over."""
        self.fence()  # what was read before this is known
        self.memory.done(self.number)


class Meeting:
    """The k-th meeting of a call."""

    __slots__ = ("_awaited", "_fence", "_k", "_own", "_rows", "_words", "turn")
    spins = 0

    def __init__(self, turn: Turn, k: int) -> None:
        self.turn, self._k = turn, k + 1
        memory, row = turn.memory, k % 2
        self._words, self._fence = memory.words, turn.fence
        self._own, self._rows = turn._own[row], turn._rows[row]
        self._awaited: list[tuple[Callable[[], bytes], bytes]] = []

    @property
    def _number(self) -> int:
        """The word of who has come; not 0, which is there at first."""
        return self.turn.number * _MEETINGS + self._k + 1

    def arrive(self) -> None:
        """Say that this rank has come."""
        self._fence()
        number = self._number
        self._words[self._own] = number
        word = _packed(number)
        self._awaited = [(read, word * n) for read, n in self._rows]

    def test(self) -> bool:
        """Whether all have come."""
        for read, awaited in self._awaited:
            if read() != awaited:
                self.turn.memory.check()
                return False
        self._fence()
        return True

    def progress(self) -> None:
        """Let others go on."""
        self.turn.memory.progress()

    def missing(self) -> list[int]:
        """The ranks that have not come."""
        turn, row = self.turn, (self._k - 1) % 2
        rows = turn.memory._rows[turn.room]
        return turn.memory.behind(turn.ranks, rows[row], self._number)

    def has(self) -> str:
        """How many have come."""
        n = len(self.turn.ranks)
        return f"{n - len(self.missing())} of {n} ranks at meeting {self._k}"


class Saying(Meeting):
    """A meeting before the first one of a call, at which ranks that follow each other
    say something, each as much as the others."""

    __slots__ = ("_place", "_said", "_what")

    def __init__(self, turn: Turn, what: bytes) -> None:
        """This rank says up to SAID bytes."""
        super().__init__(turn, -1)
        memory, n = turn.memory, len(what)
        start = memory.ranks.index(turn.ranks[0]) * SAID
        self._said = memory.said[turn.room][start : start + len(turn.ranks) * n]
        k = turn.ranks.index(memory.ranks[memory.me])
        self._place, self._what = slice(k * n, (k + 1) * n), what

    def arrive(self) -> None:
        """Say it, and that this rank has come."""
        self._said[self._place] = self._what
        super().arrive()

    def heard(self) -> bytes:
        """What these ranks have said, one after the other."""
        return self._said.tobytes()
