"""Memory that the ranks of a node share: two halves for calls in turn, and meetings.

Calls are numbered, alike on all ranks that have a part in them, and a number says the
half. So a rank may begin a call while others still read what belongs to the one before:
it waits for a half until all ranks of the node have ended the call before the last.

In a meeting a rank writes its word, which says the call and the meeting, and waits for
the same word of the others. A rank may be one meeting ahead of another, so two rows of
words take turns.

The memory is a file without a name in memory, not a shared window of MPI: a window is
freed by all its ranks together only, and MPICH 4 and 5 do not end while one is open.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from mmap import mmap
from struct import Struct
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from mpi4py import MPI

from ..waiting.errors import ProcessLost, Stalled

#: calls that can use the memory at the same time
HALVES = 2
#: bytes of a half of a communicator's memory
HALF_BYTES = 1 << 22
#: bytes that a rank can say at a meeting: those that come from memory at once
SAID_BYTES = 64
_SHARED_FOLDER = "/dev/shm"
#: bytes of a half for calls with a root: of each direction between groups there are two
ROOTED_HALF_BYTES = 1 << 20
#: rows of words in each half: two of meetings, one of calls that have ended, one of
#: what ranks believe to contribute, and one in which a root is told that it may begin
_ROWS = 5
_ENDED, _CONTRIBUTED, _GO = 2, 3, 4
_WORD = 8
_packed = Struct("q").pack
_PAGE = 4096
#: meetings of a call that have words of their own
_MEETINGS = 1 << 20
#: the word of a rank that has ended all calls, as it never begins one
_NEVER_BEGINS = 1 << 62
#: why a rank comes no more, the gravest last
REASONS = ("interrupted", "stalled", "lost")

#: places of ranks on the node, each range from one to another
Ranges: TypeAlias = tuple[tuple[int, int], ...]
#: what reads some words, and how many these are
Reads: TypeAlias = list[tuple[Callable[[], bytes], int]]
#: the word that all must have, and what reads theirs
AwaitedWords: TypeAlias = tuple[bytes, Reads]


def fence_lock() -> threading.Lock:
    """A lock that its one user holds: to release it and acquire it again is a memory
    fence. What a thread writes before is seen before what it writes after.

    Either is an atomic read-modify-write, with release and with acquire order at the
    least. On x86-64 that is a locked instruction, which nothing passes, streaming
    stores included. On ARMv8 nothing passes a release downwards or an acquire upwards,
    nor an acquire an earlier release (they are RCsc), so nothing passes the two.

    It is for one thread at a time: between release and acquire another one would find
    the lock released. A function that calls both would take as long as both, four times
    in a short call, so who needs a fence calls them itself.
    """
    lock = threading.Lock()
    lock.acquire()
    return lock


class Numbered(Protocol):
    """A call that has a number, and so a half of the memory."""

    number: int
    half: int
    #: of a call between a root and the other group
    turn: RootedTurn | None


class Segment:
    """Two halves of a node's memory, and the words of its ranks that go with them."""

    def __init__(self, memory: memoryview, ranks: Sequence[int], place: int) -> None:
        """Of zeros, as large as `segment_bytes` says, for ranks of which this one is at
        a place."""
        self.ranks, self.place = tuple(ranks), place
        n = len(ranks)
        words = HALVES * _ROWS * n * _WORD
        head = _pages(words)
        size = (memory.nbytes - head) // HALVES
        #: bytes of data in a half; what each rank says lies behind them
        self.half = size - _pages(n * SAID_BYTES)
        self.halves = [
            memory[head + k * size : head + (k + 1) * size] for k in range(HALVES)
        ]
        self._bytes, self.words = memory[:words], memory[:words].cast("q")
        #: of each half, where this rank says what it contributes to a call, before it
        #: comes to the first meeting
        self.contributed_at = [
            self.word_at(k, _CONTRIBUTED, place) for k in range(HALVES)
        ]
        #: words that somebody reads: as long as they are, the memory cannot be unmapped
        self._read: list[memoryview] = []
        #: of each half, row and ranges, the own word and what reads the others'
        self._known_rows: dict[tuple[int, int, Ranges], tuple[int, Reads]] = {}

    def ranges(self, ranks: Sequence[int]) -> Ranges:
        """The places of those of some ranks that are on this node, as a few ranges."""
        places = sorted(self.ranks.index(rank) for rank in {*ranks} & {*self.ranks})
        result: list[tuple[int, int]] = []
        for place in places:
            if result and result[-1][1] == place:
                result[-1] = result[-1][0], place + 1
            else:
                result.append((place, place + 1))
        return tuple(result)

    def said_at(self, place: int) -> int:
        """The offset in a half of what the rank at a place says."""
        return self.half + place * SAID_BYTES

    def word_at(self, half: int, row: int, place: int) -> int:
        """The index of a rank's word in a row of a half."""
        return (half * _ROWS + row) * len(self.ranks) + place

    def reader(self, half: int, row: int, low: int, high: int) -> Callable[[], bytes]:
        """What reads the words of the ranks from one place to another.

        They are compared as bytes, which takes less time.
        """
        start, stop = (self.word_at(half, row, place) * _WORD for place in (low, high))
        words = self._bytes[start:stop]
        self._read.append(words)
        return words.tobytes

    def arrive(
        self, half: int, code: int, meeting: int, ranges: Ranges
    ) -> AwaitedWords:
        """Come to a meeting of a call, by its code; what to wait for then.

        To come twice to one meeting does no harm: who is interrupted comes again.
        """
        row = meeting % 2
        known = self._known_rows.get((half, row, ranges))
        own, reads = known or self._row(half, row, ranges)
        self.words[own] = word = code * _MEETINGS + meeting + 1
        return _packed(word), reads

    def _row(self, half: int, row: int, ranges: Ranges) -> tuple[int, Reads]:
        """The place of the own word in a row, and what reads the words of ranges."""
        readers = [(self.reader(half, row, a, b), b - a) for a, b in ranges]
        known = self.word_at(half, row, self.place), readers
        self._known_rows[half, row, ranges] = known
        return known

    def not_come(self, half: int, code: int, meeting: int, ranges: Ranges) -> list[int]:
        """The ranks of some ranges that have not come to a meeting."""
        word, row = code * _MEETINGS + meeting + 1, meeting % 2
        later = (word, word + 1)  # or to the next one, if that is in the other row
        return [
            self.ranks[place]
            for a, b in ranges
            for place in range(a, b)
            if self.words[self.word_at(half, row, place)] not in later
        ]

    def contributed(self, half: int, ranges: Ranges) -> list[bytes]:
        """How many bytes the ranks of some ranges contribute to a call, once they have
        come to a meeting of it."""
        known = self._known_rows.get((half, _CONTRIBUTED, ranges))
        _, reads = known or self._row(half, _CONTRIBUTED, ranges)
        return [read() for read, _ in reads]

    def withdraw(self) -> None:
        """Come to no meeting: whoever has not seen that this rank had come, hears that
        it failed, in place of going on for a while."""
        for half in range(HALVES):
            for row in range(2):
                self.words[self.word_at(half, row, self.place)] = -1

    def release(self) -> None:
        """Look at the memory no more."""
        self._known_rows.clear()
        for view in (*self._read, *self.halves, self.words, self._bytes):
            view.release()
        self._read, self.halves = [], []


def segment_bytes(ranks: int, half: int) -> int:
    """The bytes of a segment for so many ranks, whose halves have so many for data."""
    words = _pages(HALVES * _ROWS * ranks * _WORD)
    return words + HALVES * (_pages(half) + _pages(ranks * SAID_BYTES))


def _pages(nbytes: int) -> int:
    return -(-nbytes // _PAGE) * _PAGE


class Turns:
    """The halves of a segment, which calls take in turn that all ranks of it count.

    A rank may use a half for a call when all ranks have ended the call before the last.
    """

    def __init__(self, segment: Segment, users: Sequence[int]) -> None:
        """For those of the segment's ranks that make the calls."""
        self.segment = segment
        self._size = n = len(segment.ranks)
        self._read_ended = [segment.reader(k, _ENDED, 0, n) for k in range(HALVES)]
        #: of each half the first call that has not ended, and those that have after it
        self._open = list(range(HALVES))
        self._ended: set[int] = set()
        self._lock = threading.Lock()
        self._ended_at = [
            segment.word_at(k, _ENDED, segment.place) for k in range(HALVES)
        ]
        idle = set(segment.ranks).difference(users)
        for k in range(HALVES):
            segment.words[self._ended_at[k]] = k
            for rank in idle:
                place = segment.ranks.index(rank)
                segment.words[segment.word_at(k, _ENDED, place)] = _NEVER_BEGINS

    def is_free(self, call: Numbered) -> bool:
        """Whether all ranks have ended the calls that had the half of a call before."""
        number = call.number
        row = self._read_ended[call.half]()
        if row == _packed(number) * self._size:
            return True
        return bool(np.frombuffer(row, np.int64).min() >= number)

    def not_ended(self, call: Numbered) -> list[int]:
        """The ranks that have not ended what had the half of a call before."""
        row = np.frombuffer(self._read_ended[call.half](), np.int64)
        return [self.segment.ranks[i] for i in np.flatnonzero(row < call.number)]

    def end(self, call: Numbered) -> None:
        """Tell the others that a call is over on this rank, whether or not it has used
        the memory; what it read there is read, by a fence of whoever calls this.

        Calls may end in any order, and in several threads.
        """
        number, half = call.number, call.half
        with self._lock:
            if number != self._open[half]:
                self._ended.add(number)
                return
            number += HALVES
            while self._ended and number in self._ended:
                self._ended.remove(number)
                number += HALVES
            self._open[half] = self.segment.words[self._ended_at[half]] = number


class _InOrder:
    """The word that says up to which of its calls in a half a rank has ended all.

    Calls may end in any order, and in several threads.
    """

    def __init__(self, segment: Segment, at: int) -> None:
        self._words, self._at = segment.words, at
        #: calls that were begun and have not ended, or after one that has not
        self._open: deque[int] = deque()
        self._ended: set[int] = set()
        self._lock = threading.Lock()

    def begin(self, number: int) -> None:
        """A call has the half after all that were begun before."""
        self._open.append(number)

    def end(self, number: int) -> None:
        """A call is over."""
        with self._lock:
            if number != self._open[0]:
                self._ended.add(number)
                return
            self._open.popleft()
            while self._ended and self._open and self._open[0] in self._ended:
                number = self._open.popleft()
                self._ended.remove(number)
            self._words[self._at] = number + 1


class RootedTurns:
    """The halves of a segment, which calls between a root and the other group take.

    Only the ranks of that group know all such calls, and count them; a root counts its
    own, and the others of its group know none. The half is that of the root's number.
    A rank of the other group waits until all who had the half before have ended: its
    own group, and the root of that call. A root waits until one rank of the other group
    on its node has come so far and says so.
    """

    def __init__(self, segment: Segment, others: Sequence[int]) -> None:
        """For the ranks of the group that has no root."""
        self.segment = segment
        self._places = [segment.ranks.index(r) for r in others if r in segment.ranks]
        self._tells = self._places[:1] == [segment.place]
        self.counts_all = segment.place in self._places
        #: calls of all roots
        self._calls = 0
        #: of each half the call that had it last: its number among all, and the place
        #: of its root with the number among those of the root
        self._last: list[tuple[int, int | None, int]] = [(-1, None, -1)] * HALVES
        #: of each half the places of words: from which one on ranks say what they have
        #: ended, and where a root is told that it may begin
        self._ended_at = [segment.word_at(k, _ENDED, 0) for k in range(HALVES)]
        self._go_at = [segment.word_at(k, _GO, 0) for k in range(HALVES)]
        self._own = [_InOrder(segment, at + segment.place) for at in self._ended_at]
        ranges = segment.ranges(others)
        self._read_ended = [
            [(segment.reader(k, _ENDED, a, b), b - a) for a, b in ranges]
            for k in range(HALVES)
        ]

    def begin(self, call: Numbered, root: int) -> None:
        """A call of a root, by its number among those of the root, takes a half."""
        ranks, half, number = self.segment.ranks, call.half, call.number
        place = ranks.index(root) if root in ranks else None
        sequence = number
        if self.counts_all:
            sequence = self._calls
            self._calls += 1
        before, self._last[half] = self._last[half], (sequence, place, number)
        self._own[half].begin(sequence)
        call.turn = RootedTurn(sequence, number, place, before)

    def is_free(self, call: Numbered) -> bool:
        """Whether a call may use its half."""
        turn, half, words = call.turn, call.half, self.segment.words
        assert turn is not None
        if not self.counts_all:
            go = self._go_at[half] + self.segment.place
            return not self._places or words[go] > turn.number
        sequence, root_place, number = turn.before
        if (
            root_place is not None
            and words[self._ended_at[half] + root_place] <= number
        ):
            return False
        ended = _packed(sequence + 1)
        for read, n in self._read_ended[half]:
            row = read()
            if row != ended * n and np.frombuffer(row, np.int64).min() <= sequence:
                return False
        if self._tells and turn.root_place is not None:
            words[self._go_at[half] + turn.root_place] = turn.number + 1
        return True

    def _awaited(self, turn: RootedTurn, half: int) -> list[int]:
        """The places of those who have not ended the call that had a half before."""
        sequence, root_place, number = turn.before
        words, at = self.segment.words, self._ended_at[half]
        waiting = [x for x in self._places if words[at + x] <= sequence]
        if root_place is not None and words[at + root_place] <= number:
            waiting.append(root_place)
        return waiting

    def not_ended(self, call: Numbered) -> list[int]:
        """The ranks that have not ended the call that had a half before; a root waits
        for one that says so."""
        assert call.turn is not None
        places = self._places[:1]
        if self.counts_all:
            places = self._awaited(call.turn, call.half)
        return [self.segment.ranks[place] for place in places]

    def end(self, call: Numbered) -> None:
        """Tell the others that a call is over on this rank."""
        assert call.turn is not None
        self._own[call.half].end(call.turn.sequence)


class RootedTurn(NamedTuple):
    """A call between a root and the other group."""

    #: its number among all of this group's calls, or on a root among those of the root
    sequence: int
    #: its number among those of the root, and the place of the root, if that is here
    number: int
    root_place: int | None
    #: the call that had the half before, in the same terms
    before: tuple[int, int | None, int]


class NodeMemory:
    """The memory that some ranks of a communicator share, all on one node."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        ranks: Sequence[int],
        halves: Sequence[int] = (HALF_BYTES,),
        *,
        tag: int = 0,
        users: Sequence[int] | None = None,
    ) -> None:
        """Made with messages of a tag by those of the ranks that use it, or by all; a
        segment for each size of halves. `MemoryError` on all of them where one has
        none."""
        users = ranks if users is None else users
        self.ranks, self.place = tuple(ranks), ranks.index(comm.Get_rank())
        n = len(ranks)
        sizes = [segment_bytes(n, half) for half in halves]
        head = _pages(n)
        self._memory = shared_memory(comm, users, head + sum(sizes), tag)
        self._whole = memoryview(self._memory)
        self._gone = self._whole[:n]
        self._read_gone, self._nobody = self._gone.tobytes, bytes(n)
        #: the segments; the first one is for calls that all ranks count
        self.segments: list[Segment] = []
        for size in sizes:
            part = self._whole[head : head + size]
            self.segments.append(Segment(part, ranks, self.place))
            head += size
        self.turns = Turns(self.segments[0], users)

    def leave(self, error: BaseException | None = None) -> None:
        """Tell whoever waits for this rank, or will, that it comes no more, and why."""
        if self.segments:  # else it was freed, and nobody waits there
            self._gone[self.place] = REASONS.index(reason_of(error)) + 1
            fence = fence_lock()
            fence.release()
            fence.acquire()
            for segment in self.segments:
                segment.withdraw()

    def gone(self) -> tuple[int, str] | None:
        """A rank that comes no more, and why, if there is one."""
        codes = self._read_gone()
        if codes == self._nobody:
            return None
        code = max(codes)
        return self.ranks[codes.index(code)], REASONS[code - 1]

    def free(self) -> None:
        """Give the memory back to the system at once."""
        if not self.segments:
            return
        self._read_gone = partial(bytes, self._nobody)
        for segment in self.segments:
            segment.release()
        self.segments = []
        self._gone.release()
        with suppress(BufferError):  # a call that failed may hold some of it
            self._whole.release()
            self._memory.close()


def reason_of(error: BaseException | None) -> str:
    """Why a rank comes no more that was left in a call by an error."""
    if isinstance(error, Stalled):
        return "stalled"
    return "lost" if isinstance(error, ProcessLost) else "interrupted"


def shared_memory(
    comm: MPI.Intracomm, ranks: Sequence[int], nbytes: int, tag: int
) -> mmap:
    """Memory of zeros that some ranks share, made by them together with messages of a
    tag; `MemoryError` on all of them where one cannot, which says why."""
    first, *others = ranks
    if not others:
        return mmap(-1, nbytes)
    if comm.Get_rank() != first:
        path = receive(comm, first, tag)
        memory, why = _attempt(partial(_mapped, path, nbytes))
        comm.send(why, first, tag)
        why = receive(comm, first, tag)
    else:
        path, why = _attempt(partial(_file, nbytes))
        memory = None
        if path:
            memory, why = _attempt(partial(_mapped, path, nbytes))
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
    if memory is None or why:
        if memory is not None:
            memory.close()
        raise MemoryError(why)
    return memory  # type: ignore[no-any-return]


def receive(comm: MPI.Intracomm, source: int, tag: int) -> Any:
    """A short value from another rank. A blocking receive would probe first, and in a
    probe MPICH does not give way to who shares the core (8 ranks on two cores: 20 ms
    instead of 1)."""
    return comm.irecv(None, source, tag).wait()


def _attempt(make: Callable[[], Any]) -> tuple[Any, str]:
    """The result; or None, and why the system refuses."""
    try:
        return make(), ""
    except OSError as error:
        return None, error.strerror or str(error) or type(error).__name__


def _file(nbytes: int) -> str:
    """The path of a file of zeros, in memory if there is a folder for such.

    All of it is allocated: memory that turns out to be missing ends a process.
    """
    folder = _SHARED_FOLDER if os.path.isdir(_SHARED_FOLDER) else None
    handle, path = tempfile.mkstemp(prefix=f"isthmus-{os.getpid()}-", dir=folder)
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
