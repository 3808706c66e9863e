"""Calls with arrays on a device: done on the host memory that stands for them.

What a plan reads first is copied from the device in that order, and every message
leaves as soon as its data are there; what is written for the last time is copied back
at once. So copies in both directions run while messages do.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, zip_longest
from typing import Any

from mpi4py import MPI

from ...schedules.ir import Copy, Recv, Round, Send
from ...schedules.program import extent
from ..memory import memory
from ..memory.memory import Piece
from ..memory.node_memory import Meeting, Turn
from ..memory.staged import Copies
from ..operations.call import Call
from ..waiting.waiting import Awaited, Messages
from . import requests
from .plan import Binding, Plan, Stage, Step, request

#: bytes that are copied at once: long enough for full speed, short beside long messages
PIECE = 1 << 21
#: so many copies from a device are begun ahead of the one that is awaited; a GPU does
#: those of one process before those of the next
AHEAD = 3
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


def is_direct(call: Call) -> bool:
    """Whether a call that asks nobody only sends from and receives into the buffers,
    so that an MPI library that takes device memory can do it."""
    if call.operator is not None or call.negotiation is not None:
        return False
    if call.name in ("native", "library") or call.fallback or call.recipe is None:
        return True
    found = call.recipe()
    if found.entry.node_memory or not all(x.is_dense for x in (*call.send, *call.recv)):
        return False
    return not (found.in_place and call.root is None) and not any(
        r.then or extent(found.rounds, "tmp") for r in found.rounds
    )


# -- all of it before, and all of it after


def whole(plan: Plan, slot: Slot) -> Plan:
    """A plan whose steps do not say what they read and write."""
    plan.before = [slot.bring, *plan.before]
    plan.after, plan.slot = [*plan.after, slot.take], slot
    return plan


def around(slot: Slot, native: Callable[..., Any]) -> Callable[..., Any]:
    """The MPI library's own blocking call."""

    def call(*args: Any) -> None:
        slot.bring()
        native(*args)
        slot.take()

    return call


def beside(start: Callable[[], MPI.Request], copies: Copies, owner: Any) -> MPI.Request:
    """A nonblocking call of the MPI library's, started when the data are there."""

    def steps() -> Iterator[Awaited]:
        copies.bring()
        yield Messages([start()])
        copies.take()

    return requests.start(steps(), owner, copies)


def again(native: MPI.Prequest, copies: Copies, owner: Any) -> MPI.Prequest:
    """A persistent call of the MPI library's, as one round."""
    plan = Plan([Stage(start=[native], wait=[native])], owner.limit)
    return requests.persistent([whole(plan, Slot(copies))], owner, copies)


# -- piece by piece


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
        #: what is copied from devices
        self.fetches: list[Range] = []
        self._writes: list[tuple[Stage, Range]] = []
        self._arriving: dict[int, Arriving] = {}
        #: what is on its way, and how much of it has come
        self._events: list[Callable[[], bool]] = []
        self._come = 0

    def _ranges(self, pieces: Sequence[Piece]) -> Iterator[Range]:
        """The parts of some memory that stand for an array."""
        for address, n in pieces:
            for low, high, k in self._order:
                start, stop = max(low, address), min(high, address + n)
                if start < stop:
                    yield k, start - low, stop - low

    def reads(self, pieces: Sequence[Piece]) -> int:
        """Some memory is read: the number of the copy that must be complete, or -1."""
        last = -1
        for k, start, stop in self._ranges(pieces):
            known = self._known[k]
            if not self.slot.copies.read[k]:
                continue
            for low, high in known.missing(start, stop):
                for at in range(low, high, PIECE):
                    self._fetch(k, at, min(at + PIECE, high))
            last = max([last, *(x for *_, x in known.inside(start, stop))])
        return last

    def _fetch(self, k: int, start: int, stop: int) -> None:
        """Copy one more range, with the one before if it follows that."""
        if self.fetches:
            other, low, high = self.fetches[-1]
            if (other, high) == (k, start) and stop - low <= PIECE:
                self.fetches.pop()
                self.fetches.append((k, low, stop))
                self._known[k].add(start, stop, len(self.fetches) - 1)
                return
        self.fetches.append((k, start, stop))
        self._known[k].add(start, stop, len(self.fetches) - 1)

    def writes(self, pieces: Sequence[Piece], stage: Stage) -> None:
        """Some memory is written in a stage."""
        for k, start, stop in self._ranges(pieces):
            for low, high in self._known[k].missing(start, stop):
                self._known[k].add(low, high, -1)
            self._writes.append((stage, (k, start, stop)))

    def arriving(self, stage: Stage, last: int, round_: list[Arriving]) -> None:
        """Messages that a stage waits for are copied when they are there, also if that
        is while data of the round are awaited that are to be sent."""
        self._arriving[id(stage)] = found = Arriving(self, list(stage.wait), last)
        round_.append(found)

    def stores(self, stages: Sequence[Stage]) -> None:
        """Copy what was written for the last time, when it is enough to be worth it;
        what is left, at the end."""
        last = [_Known() for _ in self._known]
        found: dict[int, list[Range]] = {}
        for stage, (k, start, stop) in reversed(self._writes):
            for low, high in last[k].missing(start, stop):
                last[k].add(low, high, 0)
                found.setdefault(id(stage), []).append((k, low, high))
        some: list[Range] = []
        for stage in stages:
            arrived = self._arriving.get(id(stage))
            if arrived is not None:
                arrived.ranges = _joined(found.get(id(stage), []))
                stage.then.append(arrived.end)
                continue
            some += found.get(id(stage), [])
            if _nbytes(some) >= PIECE:
                stage.then.append(partial(self.store, _joined(some)))
                some = []
        self._left = _joined(some)

    # -- while the plan runs

    def begin(self) -> None:
        """Begin to copy what is needed, in order."""
        self.slot.copies.begin()
        self._events, self._come = [], 0
        self._fetch_ahead()

    def _fetch_ahead(self) -> None:
        """Begin some copies ahead of the one that is awaited: the first message should
        not wait until all of them are begun."""
        for x in self.fetches[len(self._events) : self._come + AHEAD]:
            self._events.append(self.slot.copies.fetch(*x))

    def has_come(self, i: int) -> bool:
        """Whether the copies up to one are complete."""
        while self._come <= i:
            if not self._events[self._come]():
                return False
            self._come += 1
            self._fetch_ahead()
        return True

    def store(self, some: Sequence[Range]) -> None:
        """Begin to copy ranges back."""
        self.slot.copies.store(some)

    def end(self) -> None:
        """Copy back what is left, and wait for all of it."""
        self.slot.copies.store(self._left)
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


class Arriving:
    """Messages of a round, and what is copied back once they are there."""

    def __init__(self, flow: Flow, requests: list[MPI.Prequest], last: int) -> None:
        self._flow, self._requests = flow, requests
        #: how many receives of the round are started when these are
        self.last = last
        self.ranges: list[Range] = []
        self.done = False

    def test(self) -> bool:
        """Whether they are there; then copy them."""
        if not self.done and MPI.Request.Testall(self._requests):
            self.done = True
            self._flow.store(self.ranges)
        return self.done

    def end(self) -> None:
        """They are there: copy them, if nobody did."""
        if not self.done:
            self._flow.store(self.ranges)
        self.done = False


class Arrival:
    """Waiting for a copy from a device; messages of the round go on meanwhile."""

    spins = 0

    def __init__(
        self,
        flow: Flow,
        number: int,
        comm: MPI.Intracomm,
        arriving: Sequence[Arriving] = (),
        started: int = 0,
    ) -> None:
        self._flow, self._number, self._comm = flow, number, comm
        self._arriving, self._started = arriving, started

    def arrive(self) -> None:
        """There is nobody to be told."""

    def test(self) -> bool:
        """Whether it is complete."""
        if self._flow.has_come(self._number):
            return True
        for x in self._arriving:
            if x.last > self._started or not x.test():
                break
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


class Binder:
    """Binds rounds to host memory that stands for arrays on a device."""

    def __init__(
        self, at: Binding, comm: MPI.Intracomm, tag: int, cut: int, slot: Slot
    ) -> None:
        self._at, self._comm, self._tag, self._cut = at, comm, tag, cut
        self.flow = Flow(slot)
        self.stages = [Stage()]
        self._come = -1
        #: what arrives in the round, and how many receives are started
        self._arriving: list[Arriving] = []
        self._started = 0

    def _after(self, pieces: Sequence[Piece]) -> Stage:
        """The stage in which some memory can be read."""
        number = self.flow.reads(pieces)
        if number > self._come:
            self._come = number
            what = self.flow, number, self._comm, self._arriving, self._started
            self._next().meet = Arrival(*what)
        return self.stages[-1]

    def _next(self) -> Stage:
        """Begin another stage; the one before."""
        self.stages.append(Stage())
        return self.stages[-2]

    def move(self, src: Sequence[Piece], dst: Sequence[Piece], step: Step) -> None:
        """A step that copies memory."""
        stage = self._after(src)
        stage.then.append(step)
        self.flow.writes(dst, stage)
        self._next()

    def _messages(
        self, r: Round, kind: type[Send | Recv], at: Binding
    ) -> list[tuple[MPI.Prequest, list[Piece]]]:
        """The messages of a round in pieces, those of all ranks in turns: what is sent
        to several comes from the device once, and none of them waits for the others."""
        ranks: dict[int, list[tuple[MPI.Prequest, list[Piece]]]] = {}
        for c in r.comm:
            if isinstance(c, kind):
                rank = c.to if isinstance(c, Send) else c.frm
                found = ranks.setdefault(rank, [])
                for part in memory.parts(at.pieces(c.data), self._cut):
                    found.append((request(self._comm, c, part, self._tag), part))
        turns = zip_longest(*ranks.values())
        return [x for turn in turns for x in turn if x is not None]

    def add(self, r: Round, moves: Sequence[tuple[Any, Any, Step]] = ()) -> None:
        """A round, with moves while its messages are on their way."""
        self._arriving = []
        receives = self._messages(r, Recv, self._at)
        send = self._messages(r, Send, self._at.source)
        # Each send is started before a receive, and as many receives as sends: an MPI
        # library that copies all that can be received keeps this rank from sending.
        self._started, sends = 0, [x for x, _ in send]
        for i, (sent, pieces) in enumerate(send):
            stage, upto = self._after(pieces), -(-len(receives) * (i + 1) // len(send))
            stage.start += [sent, *(x for x, _ in receives[self._started : upto])]
            self._started = upto
        self.stages[-1].start += [x for x, _ in receives[self._started :]]
        self._started = len(receives)
        if receives:
            self._next()
        for each in moves:
            self.move(*each)
        nbytes = 0
        for i, (came, pieces) in enumerate(receives):
            self.stages[-1].wait.append(came)
            self.flow.writes(pieces, self.stages[-1])
            nbytes += sum(n for _, n in pieces)
            if nbytes >= PIECE:
                self.flow.arriving(self._next(), i + 1, self._arriving)
                nbytes = 0
        self.stages[-1].wait += sends
        for s in r.then:
            src, dst = self._at.pieces((s.src,)), self._at.pieces((s.dst,))
            stage = self._after(src if isinstance(s, Copy) else [*src, *dst])
            stage.then.append(self._at.step(s))
            self.flow.writes(dst, stage)
        self._next()


def bind(
    rounds: Sequence[Round],
    at: Binding,
    comm: MPI.Intracomm,
    tag: int,
    cut: int,
    turn: Turn | None,
    slot: Slot,
    moves: Sequence[tuple[Any, Any, Step]] = (),
) -> tuple[list[Stage], Flow]:
    """The rounds with requests on a communicator, and what is copied when."""
    binder, meetings = Binder(at, comm, tag, cut, slot), count()
    for r in rounds:
        binder.add(r, moves)
        moves = ()
        if r.meet:
            assert turn is not None
            binder.stages[-2].meet = Meeting(turn, next(meetings))
    for each in moves:
        binder.move(*each)
    binder.flow.stores(binder.stages)
    return binder.stages, binder.flow
