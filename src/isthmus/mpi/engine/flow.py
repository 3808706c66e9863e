"""What is copied from and to a device, and when, while a plan runs.

What the plan reads first is copied from the device in that order, and every message
leaves as soon as its data are there; what is written for the last time is copied back
at once. So copies in both directions run while messages do.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from mpi4py import MPI

from ..memory.memory import Piece
from ..memory.staged import Copies
from ..waiting.waiting import SPINS
from .plan import Stage, Step, each

#: bytes that are copied at once: long enough for full speed, short beside long messages
PIECE = 1 << 21
#: a long array goes in about so many copies; from the device, where what is needed lies
#: side by side, in some of at least LEAST bytes
COPIES, LEAST = 32, 1 << 20
#: how many copies from the device are begun ahead
AHEAD = 3
#: bytes for which receives from a rank are posted at once
POSTED = 2 * PIECE
#: part of the memory of an array, by its number in the call
Range = tuple[int, int, int]


@dataclass(slots=True, eq=False)
class Slot:
    """The copies of the call that is being made: a plan may serve many."""

    now: Copies | None = None

    @property
    def copies(self) -> Copies:
        """Those of the call."""
        assert self.now is not None
        return self.now

    def bring(self) -> None:
        """Copy everything from the devices."""
        self.copies.bring()

    def take(self) -> None:
        """Copy back what may be written."""
        self.copies.take()


class _Known:
    """Which bytes of an array are known to be somewhere, and a number for each."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._found: list[tuple[int, int]] = []

    def missing(self, start: int, stop: int) -> list[tuple[int, int]]:
        """What is not known of a range."""
        found = []
        for low, high, _ in self.inside(start, stop):
            if low > start:
                found.append((start, low))
            start = max(start, high)
        return [*found, (start, stop)] if start < stop else found

    def inside(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """What is known of a range, in order."""
        i = max(bisect_right(self._starts, start) - 1, 0)
        while i < len(self._starts) and self._starts[i] < stop:
            if self._found[i][0] > start:
                yield self._starts[i], *self._found[i]
            i += 1

    def add(self, start: int, stop: int, number: int) -> None:
        """Know a range that was missing."""
        i = bisect_right(self._starts, start)
        self._starts.insert(i, start)
        self._found.insert(i, (stop, number))


class Flow:
    """What a plan reads before it writes it, in that order, and what it writes last."""

    def __init__(self, slot: Slot) -> None:
        self.slot, spans = slot, slot.copies.spans
        order = sorted(range(len(spans)), key=lambda k: spans[k][0])
        self._order = [(spans[k][0], spans[k][0] + spans[k][1], k) for k in order]
        self._known = [_Known() for _ in spans]
        #: bytes that are copied at once from the device, and back
        self._fetched = LEAST
        self._stored = max([PIECE, *(n // COPIES for _, n in spans)])
        #: what is read, in that order
        self._needed: list[Range] = []
        #: what is copied from devices, and for each that is read, the last of the
        #: copies that must be complete
        self._fetches: list[Range] = []
        self._last: list[int] = []
        self._writes: list[tuple[Stage | Part, Range]] = []
        #: what was written, and is not copied yet
        self._written: list[Range] = []
        #: what was begun, how many of it have come, and the bytes of the others
        self._events: list[Callable[[], bool]] = []
        self._come = self._under_way = 0

    def _ranges(self, pieces: Sequence[Piece]) -> Iterator[Range]:
        """The parts of some memory that stand for an array."""
        for address, n in pieces:
            for low, high, k in self._order:
                start, stop = max(low, address), min(high, address + n)
                if start < stop:
                    yield k, start - low, stop - low

    def reads(self, pieces: Sequence[Piece]) -> int:
        """Some memory is read: the number of what must be there, or -1."""
        last = -1
        for k, start, stop in self._ranges(pieces):
            known = self._known[k]
            if not self.slot.copies.read[k]:
                continue
            for low, high in known.missing(start, stop):
                for at in range(low, high, PIECE):
                    end = min(at + PIECE, high)
                    known.add(at, end, len(self._needed))
                    self._needed.append((k, at, end))
            last = max([last, *(x for *_, x in known.inside(start, stop))])
        return last

    def _join(self) -> None:
        """Copy what lies side by side at once: when the first of it is needed."""
        self._fetched = most = max(_nbytes(self._needed) // COPIES, LEAST)
        starts = {(k, start): i for i, (k, start, _) in enumerate(self._needed)}
        copy: dict[int, int] = {}
        for i, (k, start, stop) in enumerate(self._needed):
            if i not in copy:
                copy[i] = len(self._fetches)
                while (j := starts.get((k, stop))) is not None and j not in copy:
                    if self._needed[j][2] - start > most:
                        break
                    copy[j], stop = len(self._fetches), self._needed[j][2]
                self._fetches.append((k, start, stop))
            self._last.append(max([copy[i], *self._last[-1:]]))

    def writes(self, pieces: Sequence[Piece], writer: Stage | Part) -> None:
        """Some memory is written, in a stage or by a part of a message."""
        for k, start, stop in self._ranges(pieces):
            for low, high in self._known[k].missing(start, stop):
                self._known[k].add(low, high, -1)
            self._writes.append((writer, (k, start, stop)))

    def complete(self, stages: Sequence[Stage]) -> None:
        """All rounds are known: find what is copied when."""
        self._join()
        come = -1
        for stage in stages:
            if isinstance(stage.meet, Arrival | Exchange) and stage.meet.number >= 0:
                last = self._last[stage.meet.number]
                if last <= come and isinstance(stage.meet, Arrival):
                    stage.meet = None  # others waited for it
                come = max(come, last)
        last_writes = [_Known() for _ in self._known]
        found: dict[int, tuple[Stage | Part, list[Range]]] = {}
        for writer, (k, start, stop) in reversed(self._writes):
            for low, high in last_writes[k].missing(start, stop):
                last_writes[k].add(low, high, 0)
                found.setdefault(id(writer), (writer, []))[1].append((k, low, high))
        for writer, ranges in found.values():
            if isinstance(writer, Part):
                writer.ranges = ranges
            else:
                writer.then.append(partial(self.store, ranges))

    # -- while the plan runs

    def begin(self) -> None:
        """Begin to copy what is needed, in order."""
        self.slot.copies.begin()
        self._events, self._written = [], []
        self._come = self._under_way = 0
        self._fetch_ahead()

    def _fetch_ahead(self) -> None:
        """Begin some copies ahead of the one that is awaited: the first message should
        not wait until all of them are begun."""
        while len(self._events) < len(self._fetches):
            if self._under_way >= AHEAD * self._fetched:
                break
            k, start, stop = self._fetches[len(self._events)]
            self._events.append(self.slot.copies.fetch(k, start, stop))
            self._under_way += stop - start

    def has_come(self, number: int) -> bool:
        """Whether what is read is there, by its number; if that is negative, it comes
        from no device."""
        if number < 0:
            return True
        while self._come <= self._last[number]:
            if not self._events[self._come]():
                return False
            _, start, stop = self._fetches[self._come]
            self._come += 1
            self._under_way -= stop - start
            self._fetch_ahead()
        return True

    def store(self, some: Sequence[Range]) -> None:
        """Ranges were written for the last time: copy them back, when there is enough
        to be worth it."""
        self._written += some
        if _nbytes(self._written) >= self._stored:
            self._store()

    def _store(self) -> None:
        self.slot.copies.store(_joined(self._written))
        self._written = []

    def end(self) -> None:
        """Copy back what is left, and wait for all of it."""
        self._store()
        self.slot.copies.wait(True)


def _joined(some: Sequence[Range]) -> list[Range]:
    """Ranges, of which those that follow each other become one."""
    found: list[Range] = []
    for k, low, high in sorted(some):
        if found and found[-1][0] == k and found[-1][2] == low:
            low = found.pop()[1]
        found.append((k, low, high))
    return found


def _nbytes(some: Sequence[Range]) -> int:
    return sum(high - low for _, low, high in some)


class Arrival:
    """Waiting for a copy from a device."""

    spins = 0

    def __init__(self, flow: Flow, number: int, comm: MPI.Intracomm) -> None:
        self._flow, self.number, self._comm = flow, number, comm

    def arrive(self) -> None:
        """There is nobody to be told."""

    def test(self) -> bool:
        """Whether it is complete."""
        if self._flow.has_come(self.number):
            return True
        self._comm.Iprobe(MPI.ANY_SOURCE)  # lets messages that are sent go on
        return False

    def progress(self) -> None:
        """Let other threads go on."""
        time.sleep(0)

    def missing(self) -> Sequence[int]:
        """No rank is needed."""
        return ()

    def has(self) -> str:
        """What is there already."""
        return "no copy from the device"


@dataclass(slots=True, eq=False)
class Part:
    """A message of a round, a part of one, or copies without a message."""

    request: MPI.Prequest = field(default_factory=MPI.Prequest)
    #: the rank at its other end
    peer: int = MPI.PROC_NULL
    nbytes: int = 0
    #: what packs or unpacks it
    copies: list[Step] = field(default_factory=list)
    #: where its data lie
    pieces: Sequence[Piece] = ()
    #: of one that is sent: the number of what must be there, and how many of those
    #: before it must be complete
    number: int = -1
    after: int = 0
    #: of one that is received: what is copied to a device then
    ranges: list[Range] = field(default_factory=list)


class _Source:
    """What comes from one rank, in its order."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.begin()

    def begin(self) -> None:
        """For a call."""
        self.started = self.come = self._nbytes = 0

    def start(self) -> None:
        """Post some receives, not all: an MPI library that can copy all that comes does
        so, and keeps this rank from sending and from copying to its device."""
        while self.started < len(self.parts) and self._nbytes < POSTED:
            part = self.parts[self.started]
            part.request.Start()
            self.started += 1
            self._nbytes += part.nbytes

    @property
    def is_complete(self) -> bool:
        """Whether all of it has come."""
        return self.come == len(self.parts)

    def next(self) -> Part | None:
        """The next that has come, if one has."""
        if self.come == self.started or not self.parts[self.come].request.Test():
            return None
        part = self.parts[self.come]
        self.come += 1
        self._nbytes -= part.nbytes
        return part


class Exchange:
    """The messages of a round. Each is sent as soon as its data are there; what came
    is copied back while others come."""

    spins = SPINS

    def __init__(
        self,
        flow: Flow,
        sends: Sequence[Part],
        receives: Sequence[Part],
        moves: Sequence[Part] = (),
    ) -> None:
        """Moves are made once all are sent."""
        self._flow, self._sends, self._moves = flow, sends, moves
        ranks: dict[int, list[Part]] = {}
        for part in receives:
            ranks.setdefault(part.peer, []).append(part)
        self._sources = [_Source(parts) for parts in ranks.values()]
        self._sent = self._complete = self._moved = 0
        #: which are to be given back
        self.requests = [x.request for x in (*sends, *receives)]
        #: of what is there when all are sent
        self.number = max([-1, *(x.number for x in (*sends, *moves))])

    def arrive(self) -> None:
        """Begin."""
        self._sent = self._complete = self._moved = 0
        for source in self._sources:
            source.begin()

    def _send(self) -> None:
        """Send what can be sent, and see what was."""
        sends = self._sends
        while self._sent < len(sends):
            part = sends[self._sent]
            if part.after > self._complete or not self._flow.has_come(part.number):
                break
            each(part.copies)
            part.request.Start()
            self._sent += 1
        while self._complete < self._sent and sends[self._complete].request.Test():
            self._complete += 1

    def test(self) -> bool:
        """Go on; whether all of it is complete."""
        self._send()
        for source in self._sources:
            source.start()
            if (part := source.next()) is not None:
                self._copy(part)
                source.start()
                self._send()
        while self._sent == len(self._sends) and self._moved < len(self._moves):
            part = self._moves[self._moved]
            if not self._flow.has_come(part.number):
                break
            self._moved += 1
            self._copy(part)
        is_sent = self._complete == len(self._sends)
        is_moved = self._moved == len(self._moves)
        return is_sent and is_moved and all(x.is_complete for x in self._sources)

    def _copy(self, part: Part) -> None:
        each(part.copies)
        self._flow.store(part.ranges)

    def progress(self) -> None:
        """Let other threads go on."""
        time.sleep(0)

    def missing(self) -> Sequence[int]:
        """The other ends of those that are not complete."""
        found = {x.peer for x in self._sends[self._complete :]}
        for x in self._sources:
            found |= {part.peer for part in x.parts[x.come :]}
        return sorted(found)

    def has(self) -> str:
        """How many are complete."""
        n = len(self._sends) + sum(len(x.parts) for x in self._sources)
        come = self._complete + sum(x.come for x in self._sources)
        return f"{come} of {n} messages of this round"
