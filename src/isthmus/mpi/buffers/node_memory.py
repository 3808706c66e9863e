"""Memory that the ranks of a node share: two halves for calls in turn, and meetings.

Calls are numbered, alike on all ranks that take part, and the number says the half. A
rank waits for a half until all ranks of the node have ended the call before the last.
So a rank may begin a call while slower ranks still read the data of the call before.

In a meeting a rank writes a word for the call and the meeting, and waits for equal
words of the other ranks. A rank may be a meeting ahead of a slower rank, so two rows of
words take turns.

The memory is a nameless file in memory, not a shared window of MPI, because only all
ranks together can free a window, and MPICH 4 and 5 do not end while a window is open.
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
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from mpi4py import MPI

from ..waiting.errors import ProcessLost, Stalled

#: the number of calls that can use the memory at a time
HALVES = 2
#: bytes of a half of a communicator's memory
HALF_BYTES = 1 << 22
#: bytes that a rank can say at a meeting: a cache line
SAID_BYTES = 64
_SHARED_FOLDER = "/dev/shm"
#: bytes of a half for calls with a root between groups; the roots of each group share
#: two halves
ROOTED_HALF_BYTES = 1 << 20
#: rows of words in each half: two of meetings, and one each of ended calls, of the
#: bytes that ranks contribute, and of the calls that a root may begin
_ROWS_PER_HALF = 5
_ENDED, _CONTRIBUTED, _GO = 2, 3, 4
_WORD_BYTES = 8
_packed = Struct("q").pack
_PAGE_BYTES = 4096
#: meetings of a call, so that the words of two calls differ
_MEETINGS_PER_CALL = 1 << 20
#: the word in the row of ended calls for a rank that never begins a call
_NEVER_BEGINS = 1 << 62
#: the reasons why a rank left the memory, the gravest last
REASONS = ("interrupted", "stalled", "lost")

Value = TypeVar("Value")
#: places of ranks on the node, as half-open ranges
Ranges: TypeAlias = tuple[tuple[int, int], ...]
#: functions that read words, each with the number of words
Reads: TypeAlias = list[tuple[Callable[[], bytes], int]]
#: the word of a meeting, and the functions that read the other ranks' words
AwaitedWords: TypeAlias = tuple[bytes, Reads]


def fence_lock() -> threading.Lock:
    """A held lock that serves as a memory fence: release, then acquire.

    Writes before the fence become visible before writes after the fence, because
    release and acquire are atomic read-modify-writes with at least release and acquire
    order. On x86-64 nothing passes such a locked instruction, streaming stores
    included. On ARMv8 nothing passes a release downwards or an acquire upwards, nor an
    acquire an earlier release (both are RCsc), so nothing passes the pair.

    A fence belongs to a single thread: between release and acquire, another thread
    would find the lock free. Callers release and acquire themselves, since a function
    around the two calls would take as long again, four times in a short call.
    """
    lock = threading.Lock()
    lock.acquire()
    return lock


class Numbered(Protocol):
    """A call with a number, and so with a half of the memory."""

    number: int
    half: int
    #: the turn of a call between a root and the remote group, otherwise None
    turn: RootedTurn | None


class Segment:
    """Two halves of a node's memory, and the words of the ranks for each half."""

    def __init__(self, memory: memoryview, ranks: Sequence[int], place: int) -> None:
        """In memory of zeros, of `segment_bytes`; the own rank is at `place`."""
        self.ranks, self.place = tuple(ranks), place
        n = len(ranks)
        words = HALVES * _ROWS_PER_HALF * n * _WORD_BYTES
        head = _pages(words)
        size = (memory.nbytes - head) // HALVES
        #: bytes of data in a half; the bytes that ranks say at meetings lie behind
        self.half_bytes = size - _pages(n * SAID_BYTES)
        self.halves = [
            memory[head + k * size : head + (k + 1) * size] for k in range(HALVES)
        ]
        self._bytes, self.words = memory[:words], memory[:words].cast("q")
        #: by half, the index of the word in which this rank writes the bytes that it
        #: contributes, before the first meeting of a call
        self.contributed_at = [
            self.word_at(k, _CONTRIBUTED, place) for k in range(HALVES)
        ]
        #: views of words: memory with a live view cannot be unmapped
        self._read: list[memoryview] = []
        #: by half, row and ranges: the index of the own word, and the readers
        self._cached_rows: dict[tuple[int, int, Ranges], tuple[int, Reads]] = {}

    def ranges(self, ranks: Sequence[int]) -> Ranges:
        """The places of the ranks that are on this node, as few ranges as possible."""
        places = sorted(self.ranks.index(rank) for rank in {*ranks} & {*self.ranks})
        result: list[tuple[int, int]] = []
        for place in places:
            if result and result[-1][1] == place:
                result[-1] = result[-1][0], place + 1
            else:
                result.append((place, place + 1))
        return tuple(result)

    def said_at(self, place: int) -> int:
        """The offset in a half of the bytes that the rank at a place says."""
        return self.half_bytes + place * SAID_BYTES

    def word_at(self, half: int, row: int, place: int) -> int:
        """The index of a rank's word in a row of a half."""
        return (half * _ROWS_PER_HALF + row) * len(self.ranks) + place

    def reader(self, half: int, row: int, low: int, high: int) -> Callable[[], bytes]:
        """A function that reads the words of the ranks at places from `low` to `high`.

        The words are read as bytes, since bytes compare faster than integers.
        """
        start, stop = (
            self.word_at(half, row, place) * _WORD_BYTES for place in (low, high)
        )
        words = self._bytes[start:stop]
        self._read.append(words)
        return words.tobytes

    def arrive(
        self, half: int, code: int, meeting: int, ranges: Ranges
    ) -> AwaitedWords:
        """Come to a meeting of the call with a code, and return the words to wait for.

        A second arrival at a meeting does no harm, since an interrupted rank arrives
        again.
        """
        row = meeting % 2
        cached = self._cached_rows.get((half, row, ranges))
        own, reads = cached or self._row(half, row, ranges)
        self.words[own] = word = code * _MEETINGS_PER_CALL + meeting + 1
        return _packed(word), reads

    def _row(self, half: int, row: int, ranges: Ranges) -> tuple[int, Reads]:
        """The index of the own word in a row, and readers of the words in ranges."""
        readers = [(self.reader(half, row, a, b), b - a) for a, b in ranges]
        index_and_reads = self.word_at(half, row, self.place), readers
        self._cached_rows[half, row, ranges] = index_and_reads
        return index_and_reads

    def not_come(self, half: int, code: int, meeting: int, ranges: Ranges) -> list[int]:
        """The ranks in ranges that have not come to a meeting."""
        word, row = code * _MEETINGS_PER_CALL + meeting + 1, meeting % 2
        later = (word, word + 1)  # a rank at the next meeting has been here
        return [
            self.ranks[place]
            for a, b in ranges
            for place in range(a, b)
            if self.words[self.word_at(half, row, place)] not in later
        ]

    def contributed(self, half: int, ranges: Ranges) -> list[bytes]:
        """The bytes that ranks in ranges contribute to a call, packed as words.

        Valid after the first meeting of the call, since a rank writes the word before.
        """
        cached = self._cached_rows.get((half, _CONTRIBUTED, ranges))
        _, reads = cached or self._row(half, _CONTRIBUTED, ranges)
        return [read() for read, _ in reads]

    def withdraw(self) -> None:
        """Erase the own words of meetings, so that no rank goes on without this rank.

        A rank that has not seen the word keeps waiting, and learns of the failure.
        """
        for half in range(HALVES):
            for row in range(2):
                self.words[self.word_at(half, row, self.place)] = -1

    def release(self) -> None:
        """Release all views, so that the memory can be unmapped."""
        self._cached_rows.clear()
        for view in (*self._read, *self.halves, self.words, self._bytes):
            view.release()
        self._read, self.halves = [], []


def segment_bytes(ranks: int, half: int) -> int:
    """The bytes of a segment for a number of ranks and a half of `half` data bytes."""
    words = _pages(HALVES * _ROWS_PER_HALF * ranks * _WORD_BYTES)
    return words + HALVES * (_pages(half) + _pages(ranks * SAID_BYTES))


def _pages(nbytes: int) -> int:
    return -(-nbytes // _PAGE_BYTES) * _PAGE_BYTES


class Turns:
    """The turns of calls that all ranks of a segment count.

    A rank may use a half for a call when all ranks have ended the call before the last.
    """

    def __init__(self, segment: Segment, users: Sequence[int]) -> None:
        """With the ranks of the segment that make the calls."""
        self.segment = segment
        self._size = n = len(segment.ranks)
        self._read_ended = [segment.reader(k, _ENDED, 0, n) for k in range(HALVES)]
        #: by half, the first call that has not ended
        self._open = list(range(HALVES))
        #: later calls that have ended
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
        """Whether all ranks have ended the calls that used the half before."""
        number = call.number
        row = self._read_ended[call.half]()
        if row == _packed(number) * self._size:
            return True
        return bool(np.frombuffer(row, np.int64).min() >= number)

    def not_ended(self, call: Numbered) -> list[int]:
        """The ranks that have not ended the calls that used the half before."""
        row = np.frombuffer(self._read_ended[call.half](), np.int64)
        return [self.segment.ranks[i] for i in np.flatnonzero(row < call.number)]

    def end(self, call: Numbered) -> None:
        """Publish the end of a call on this rank, whether or not the call used memory.

        The caller has passed a fence, so that all reads of the call precede the word.
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
    """The word of a rank in a half: the calls of the half ended without a gap.

    Calls may end in any order, and in several threads.
    """

    def __init__(self, segment: Segment, at: int) -> None:
        self._words, self._at = segment.words, at
        #: calls from the first that has not ended on
        self._open: deque[int] = deque()
        self._ended: set[int] = set()
        self._lock = threading.Lock()

    def begin(self, number: int) -> None:
        """Append a call to the calls of the half."""
        self._open.append(number)

    def end(self, number: int) -> None:
        """Publish the end of a call, once all earlier calls have ended."""
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
    """The turns of calls between a root and the remote group.

    Only the ranks of the remote group know all such calls, and count them. A root
    counts its calls only, and the rest of a root's group knows none. The half is that
    of the root's number. A rank of the remote group waits until its group and their
    roots have ended the calls that had the half before: not the last of these alone,
    since a call by messages has a turn and waits for nobody, and the root of the call
    before it may still be in the half. A root waits for the word of a rank of the
    remote group on the node, because the root does not know the calls before.
    On a node without such a rank a root uses no half: each call has memory of its own.
    """

    def __init__(self, segment: Segment, remote: Sequence[int]) -> None:
        """With the ranks of the group without a root."""
        self.segment = segment
        self._places = [segment.ranks.index(r) for r in remote if r in segment.ranks]
        self._tells_roots = self._places[:1] == [segment.place]
        self.counts_all = segment.place in self._places
        #: whether the node of a root has no rank of the remote group: nothing keeps two
        #: calls of the root, or of two roots on the node, from using a half together
        self.is_alone = not self._places
        #: the number of calls of all roots
        self._calls = 0
        #: by half, the number of the last call among all calls, and the last call of
        #: each root that may not have ended: the root's place, and the root's number
        self._last = [-1] * HALVES
        self._open_roots: list[dict[int, int]] = [{} for _ in range(HALVES)]
        #: by half, the index of the first word in the row of ended calls, and in the
        #: row of calls that a root may begin
        self._ended_at = [segment.word_at(k, _ENDED, 0) for k in range(HALVES)]
        self._go_at = [segment.word_at(k, _GO, 0) for k in range(HALVES)]
        self._own = [_InOrder(segment, at + segment.place) for at in self._ended_at]
        ranges = segment.ranges(remote)
        self._read_ended = [
            [(segment.reader(k, _ENDED, a, b), b - a) for a, b in ranges]
            for k in range(HALVES)
        ]

    def begin(self, call: Numbered, root: int) -> None:
        """Give a call of a root the half of the call's number."""
        ranks, half, number = self.segment.ranks, call.half, call.number
        place = ranks.index(root) if root in ranks else None
        sequence = number
        if self.counts_all:
            sequence = self._calls
            self._calls += 1
        last, self._last[half] = self._last[half], sequence
        roots = self._roots_in(half)
        call.turn = RootedTurn(sequence, number, place, last, tuple(roots.items()))
        if place is not None:
            roots[place] = number
        self._open_roots[half] = roots
        self._own[half].begin(sequence)

    def _roots_in(self, half: int) -> dict[int, int]:
        """The calls of roots, by place, that have not ended in a half."""
        words, at = self.segment.words, self._ended_at[half]
        roots = self._open_roots[half].items()
        return {place: number for place, number in roots if words[at + place] <= number}

    def is_free(self, call: Numbered) -> bool:
        """Whether a call may use the half; a designated rank then tells the root."""
        turn, half, words = call.turn, call.half, self.segment.words
        assert turn is not None
        if not self.counts_all:
            go = self._go_at[half] + self.segment.place
            return self.is_alone or words[go] > turn.number
        for place, number in turn.roots_before:
            if words[self._ended_at[half] + place] <= number:
                return False
        ended = _packed(turn.before + 1)
        for read, n in self._read_ended[half]:
            row = read()
            if row != ended * n and np.frombuffer(row, np.int64).min() <= turn.before:
                return False
        if self._tells_roots and turn.root_place is not None:
            words[self._go_at[half] + turn.root_place] = turn.number + 1
        return True

    def _awaited(self, turn: RootedTurn, half: int) -> list[int]:
        """The places of ranks that have not ended the calls that had a half before."""
        words, at = self.segment.words, self._ended_at[half]
        waiting = [x for x in self._places if words[at + x] <= turn.before]
        roots = turn.roots_before
        return waiting + [x for x, number in roots if words[at + x] <= number]

    def not_ended(self, call: Numbered) -> list[int]:
        """The ranks that a call waits for: at a root, the first remote rank alone."""
        assert call.turn is not None
        places = self._places[:1]
        if self.counts_all:
            places = self._awaited(call.turn, call.half)
        return [self.segment.ranks[place] for place in places]

    def end(self, call: Numbered) -> None:
        """Publish the end of a call on this rank."""
        assert call.turn is not None
        self._own[call.half].end(call.turn.sequence)


class RootedTurn(NamedTuple):
    """The place of a call between a root and the remote group among all calls."""

    #: the number among all calls of the remote group; on a root, among the root's calls
    sequence: int
    #: the number among the calls of the root, and the root's place if on this node
    number: int
    root_place: int | None
    #: the number among all calls of the one that had the half before
    before: int
    #: the last calls of roots in that half, by the root's place and number
    roots_before: tuple[tuple[int, int], ...]


class NodeMemory:
    """The memory that ranks of a communicator share on a node."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        ranks: Sequence[int],
        half_sizes: Sequence[int] = (HALF_BYTES,),
        *,
        tag: int = 0,
        users: Sequence[int] | None = None,
    ) -> None:
        """Collective over the users (by default all ranks), with messages of a tag.

        Each of `half_sizes` has a segment. All users raise `MemoryError` if the system
        of a single user refuses, since ranks with and without memory would meet in
        different places.
        """
        users = ranks if users is None else users
        self.ranks, self.place = tuple(ranks), ranks.index(comm.Get_rank())
        n = len(ranks)
        sizes = [segment_bytes(n, half) for half in half_sizes]
        head = _pages(n)
        self._memory = shared_memory(comm, users, head + sum(sizes), tag)
        self._whole = memoryview(self._memory)
        self._gone = self._whole[:n]
        self._read_gone, self._nobody = self._gone.tobytes, bytes(n)
        #: the segments, of which the first is for calls that all ranks count
        self.segments: list[Segment] = []
        for size in sizes:
            part = self._whole[head : head + size]
            self.segments.append(Segment(part, ranks, self.place))
            head += size
        self.turns = Turns(self.segments[0], users)

    def leave(self, error: BaseException | None = None) -> None:
        """Publish that this rank comes to no more meetings, and the reason."""
        if self.segments:  # no rank waits in memory that was freed
            self._gone[self.place] = REASONS.index(reason_of(error)) + 1
            fence = fence_lock()
            fence.release()
            fence.acquire()
            for segment in self.segments:
                segment.withdraw()

    def gone(self) -> tuple[int, str] | None:
        """A rank that has left, and the reason, or None if all ranks are present."""
        codes = self._read_gone()
        if codes == self._nobody:
            return None
        code = max(codes)
        return self.ranks[codes.index(code)], REASONS[code - 1]

    def free(self) -> None:
        """Give the memory back to the system."""
        if not self.segments:
            return
        self._read_gone = partial(bytes, self._nobody)
        for segment in self.segments:
            segment.release()
        self.segments = []
        self._gone.release()
        with suppress(BufferError):  # a failed call may hold a view
            self._whole.release()
            self._memory.close()


def reason_of(error: BaseException | None) -> str:
    """The reason of a rank that leaves after an error in a call."""
    if isinstance(error, Stalled):
        return "stalled"
    return "lost" if isinstance(error, ProcessLost) else "interrupted"


def shared_memory(
    comm: MPI.Intracomm, ranks: Sequence[int], nbytes: int, tag: int
) -> mmap:
    """Memory of zeros that ranks share, created by all of them with messages of a tag.

    If the system of a single rank refuses, all raise `MemoryError` with the reason.
    """
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
        finally:  # a file would stay after a limit or a signal ends the wait
            if path:
                os.unlink(path)
        why = next(filter(None, [why, *answers]), "")
        for rank in others:
            comm.send(why, rank, tag)
    if memory is None or why:
        if memory is not None:
            memory.close()
        raise MemoryError(why)
    return memory


def receive(comm: MPI.Intracomm, source: int, tag: int) -> Any:
    """A short object from a rank, received nonblocking.

    A blocking receive of mpi4py would probe first, and a probe of MPICH does not yield
    the core to other processes (8 ranks on two cores: 20 ms instead of 1).
    """
    return comm.irecv(None, source, tag).wait()


def _attempt(allocate: Callable[[], Value]) -> tuple[Value | None, str]:
    """The result of an allocation; or None, and the reason why the system refuses."""
    try:
        return allocate(), ""
    except OSError as error:
        return None, error.strerror or str(error) or type(error).__name__


def _file(nbytes: int) -> str:
    """The path of a file of zeros, in the folder of files in memory if present.

    All pages are allocated at once, since a page missing later would kill the process.
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
