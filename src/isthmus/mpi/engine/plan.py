"""A schedule bound to buffers: persistent requests, started round by round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count
from typing import Any, Protocol

import numpy as np
from mpi4py import MPI

from ...schedules.ahead import posting
from ...schedules.ir import Copy, Data, Library, Local, Pieces, Recv, Round, Send, Span
from ...schedules.program import meanwhile
from ..memory import memory
from ..memory.memory import Given, Piece, View
from ..memory.node_memory import Meeting, Turn
from ..memory.reducing import Operator
from ..waiting.bounded import bounded
from ..waiting.waiting import Awaited, Limit, Messages, wait

Step = Callable[[], Any]


class Met(Awaited, Protocol):
    """What ends a round: a meeting, or what has to do with a device."""

    def arrive(self) -> None:
        """Say that this rank has come."""


_startall = MPI.Prequest.Startall


@dataclass(frozen=True, slots=True)
class Binding:
    """Where the buffers of a schedule lie, and the bytes of an element of each."""

    views: dict[str, View]
    units: dict[str, int]
    #: where messages are taken from, if that is somewhere else
    sources: dict[str, View] = field(default_factory=dict)
    operator: Operator | None = None
    #: the user's buffers, if they are known only when a call is made: their views say
    #: where in them the data lie
    given: Given | None = None

    @property
    def source(self) -> Binding:
        """The same, for what is sent."""
        return Binding(self.views | self.sources, self.units)

    def step(self, s: Local) -> Step:
        """A local step, as a function."""
        src, dst = self.pieces((s.src,)), self.pieces((s.dst,))
        frm, to = self._given(s.src), self._given(s.dst)
        if isinstance(s, Copy):
            if self.given is not None and (frm or to):
                return memory.given_copier(self.given, src, dst, frm, to)
            return memory.copier(src, dst)
        assert self.operator is not None
        (x,), (y,) = src, dst
        if self.given is not None and (frm or to):
            return self.operator.given_step(self.given, x, y, frm, to)
        return self.operator.step(x, y)

    def _given(self, span: Span) -> str:
        """The name of a buffer that is known only when a call is made."""
        if self.given is None or span.buf not in ("send", "recv"):
            return ""
        return span.buf

    def pieces(self, spans: Data) -> list[Piece]:
        """The memory of some spans, in order."""
        if isinstance(spans, Pieces):
            start = spans.start * self.units[spans.buf]
            stop = start + spans.size * self.units[spans.buf]
            return self.views[spans.buf].many(start, stop)
        found: list[Piece] = []
        for s in spans:
            unit = self.units[s.buf]
            found += self.views[s.buf].pieces(s.start * unit, (s.start + s.size) * unit)
        return found


@dataclass(slots=True)
class Tag:
    """The tag of a call, where a plan is kept for calls of different tags."""

    value: int = 0


class Tagged(MPI.Prequest):
    """A message that gets its tag when it is started: to the engine, a persistent
    request."""

    _datatype: MPI.Datatype
    _make: Callable[[int], MPI.Request]
    _tag: Tag
    _request = MPI.REQUEST_NULL

    def Start(self) -> None:
        """Start it."""
        self._request = self._make(self._tag.value)

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Whether it is complete."""
        return self._request.Test(status)

    def Get_status(self, status: MPI.Status | None = None) -> bool:
        """The same; it stays as it is."""
        return self._request.Get_status(status)

    def Free(self) -> None:
        """Give it back."""
        memory.release(self._datatype)


@dataclass(slots=True)
class Stage:
    """One round: what to start, what to do meanwhile, what to wait for, what to do
    then, and whom to meet."""

    start: list[MPI.Prequest] = field(default_factory=list)
    meanwhile: list[Step] = field(default_factory=list)
    wait: list[MPI.Prequest] = field(default_factory=list)
    call: list[Callable[[], MPI.Request]] = field(default_factory=list)
    then: list[Step] = field(default_factory=list)
    meet: Met | None = None
    #: requests of what it meets
    held: Sequence[MPI.Prequest] = ()
    #: the other ends of what it waits for and of what it calls
    peers: list[int] = field(default_factory=list)
    called: list[int] = field(default_factory=list)

    def messages(self) -> Messages:
        """What must be complete; this makes its calls."""
        if not self.call:
            return Messages(self.wait, self.peers)
        more = [call() for call in self.call]
        return Messages([*more, *self.wait], [*self.called, *self.peers])


def each(steps: Sequence[Step]) -> None:
    """Do some steps, one after the other."""
    for step in steps:
        step()


class Plan:
    """What one rank does in one call, ready to be run any number of times."""

    #: the copies of a call with arrays on a device, of a plan that is kept
    slot: Any = None
    #: of the call that is made, where it is kept for nonblocking ones
    tag: Tag

    def __init__(
        self,
        stages: list[Stage],
        limit: Limit,
        before: Sequence[Step] = (),
        after: Sequence[Step] = (),
        scratch: Sequence[np.ndarray] = (),
        meanwhile: Sequence[Step] = (),
        turn: Turn | None = None,
        given: Given | None = None,
        library: bool = False,
    ) -> None:
        """No wait in it takes longer than a limit; `library` says that a step is a
        blocking call of the MPI library."""
        self.stages, self.limit, self.library = stages, limit, library
        self.before, self.after, self.scratch = before, after, scratch
        self.turn, self.given = turn, given
        if meanwhile:
            stages[:] = stages or [Stage()]
            stages[0].meanwhile += meanwhile

    def run(self) -> None:
        """Make the call once."""
        if self.library and self.limit.seconds is not None:
            bounded(partial(each, self.calls), self.limit)
        else:
            each(self.calls)

    def steps(self) -> Iterator[Awaited]:
        """Start each round; yield what must be complete to go on."""
        for call in self.first:
            call()
        yield from self.rounds()

    def rounds(self) -> Iterator[Awaited]:
        """As `steps`, once what begins it is done."""
        if self.turn is not None:
            yield self.turn
            for call in self._second:
                call()
        for k, stage in enumerate(self.stages):
            if k:
                for call in self._starts[k]:
                    call()
            if stage.wait or stage.call:
                yield stage.messages()
            for step in stage.then:
                step()
            if stage.meet is not None:
                stage.meet.arrive()
                yield stage.meet
        for step in self._last:
            step()

    @cached_property
    def _starts(self) -> list[list[Step]]:
        return [_started(stage) for stage in self.stages]

    @property
    def _second(self) -> list[Step]:
        return [*self.before, *(_started(self.stages[0]) if self.stages else ())]

    @property
    def _last(self) -> list[Step]:
        return [*([self.turn.end] if self.turn else ()), *self.after]

    @cached_property
    def first(self) -> list[Step]:
        """What begins it: its first round, if that has to wait for no other call."""
        return self._second if self.turn is None else []

    @cached_property
    def rest(self) -> list[Step]:
        """All that comes after, with all waiting, as plain calls one by one."""
        calls: list[Step] = []
        if self.turn is not None:
            calls = [partial(wait, self.turn, self.limit), *self._second]
        for k, stage in enumerate(self.stages, 1):
            calls += _started(stage) if k > 1 else []
            if stage.call:
                calls.append(partial(_call_and_wait, stage, self.limit, k))
            elif stage.wait:
                calls.append(partial(wait, stage.messages(), self.limit, k))
            calls += stage.then
            if stage.meet:
                calls += [stage.meet.arrive, partial(wait, stage.meet, self.limit, k)]
        return [*calls, *self._last]

    @cached_property
    def calls(self) -> list[Step]:
        """All of it, with all waiting."""
        return [*self.first, *self.rest]

    @property
    def only_request(self) -> MPI.Prequest | None:
        """The one message that is all there is to do, if so."""
        if len(self.stages) != 1 or self.before or self.after or self.turn:
            return None
        stage = self.stages[0]
        if len(stage.wait) != 1 or stage.meanwhile or stage.call or stage.then:
            return None
        return stage.wait[0]

    @property
    def scratch_bytes(self) -> int:
        """How much memory of our own the plan holds."""
        return sum(x.nbytes for x in self.scratch)

    def free(self) -> None:
        """Give the requests back."""
        for stage in self.stages:
            for request in (*stage.wait, *stage.held):
                request.Free()
        self.stages = []


def _started(stage: Stage) -> list[Step]:
    """The calls that start a round, and what is done meanwhile."""
    if len(stage.start) > 2 and not isinstance(stage.start[0], Tagged):
        return [partial(_startall, stage.start), *stage.meanwhile]
    return [*(x.Start for x in stage.start), *stage.meanwhile]  # which is faster


def _call_and_wait(stage: Stage, limit: Limit, number: int) -> None:
    wait(stage.messages(), limit, number)


def _library(
    local: MPI.Intracomm, c: Library, at: Binding
) -> Callable[[], MPI.Request]:
    """The library's own allgather, in place in a receive buffer without gaps."""
    ((base, nbytes),) = at.pieces((c.whole,))
    offsets = np.array(c.offsets) * at.units[c.buf]
    spec = [memory.buffer(base, nbytes), np.diff(offsets), offsets[:-1], MPI.BYTE]
    return lambda: local.Iallgatherv(MPI.IN_PLACE, spec)


def _at_once(
    comm: MPI.Intracomm, c: Send, pieces: Sequence[Piece], tag: int
) -> Callable[[], MPI.Request]:
    """What sends a message of one piece."""
    ((base, nbytes),) = pieces
    return partial(comm.Isend, [memory.buffer(base), nbytes, MPI.BYTE], c.to, tag)


def request(
    comm: MPI.Intracomm, c: Send | Recv, pieces: Sequence[Piece], tag: int | Tag
) -> MPI.Prequest:
    """A message of those pieces, ready to be started."""
    base, count, datatype = memory.spec(pieces)
    spec = [memory.buffer(base), count, datatype]
    if isinstance(tag, Tag):
        late = Tagged()
        late._make = (
            partial(comm.Irecv, spec, c.frm)
            if isinstance(c, Recv)
            else partial(comm.Isend, spec, c.to)
        )
        late._tag, late._datatype = tag, datatype
        return late
    if isinstance(c, Recv):
        made = comm.Recv_init(spec, c.frm, tag)
    else:
        made = comm.Send_init(spec, c.to, tag)
    memory.release(datatype)
    return made


def bind(
    rounds: Sequence[Round],
    at: Binding,
    comm: MPI.Intracomm,
    local: MPI.Intracomm,
    tag: int | Tag,
    cut: int = 0,
    inline: int = 0,
    turn: Turn | None = None,
) -> list[Stage]:
    """The rounds with requests on a communicator, receives posted ahead, messages of
    more than `cut` bytes, if it is given, in several, and short ones, of up to `inline`
    bytes, sent without a request that is kept; meetings in a turn of node memory."""
    stages = [Stage() for _ in rounds]
    source, meetings = at.source, count()
    for k, (r, posts) in enumerate(zip(rounds, posting(rounds), strict=True)):
        when = iter(posts)
        # who gets several messages in a round gets them in their order: by requests
        several = Counter(c.to for c in r.comm if isinstance(c, Send))
        for c in r.comm:
            if isinstance(c, Library):
                stages[k].call.append(_library(local, c, at))
                stages[k].called.append(MPI.PROC_NULL)
                continue
            place = at if isinstance(c, Recv) else source
            start = next(when) if isinstance(c, Recv) else k
            pieces = place.pieces(c.data)
            short = len(pieces) == 1 and pieces[0][1] <= inline
            if short and isinstance(c, Send) and several[c.to] == 1:
                assert isinstance(tag, int)
                stages[k].call.append(_at_once(comm, c, pieces, tag))
                stages[k].called.append(c.to)
                continue
            for part in memory.parts(pieces, cut):
                made = request(comm, c, part, tag)
                stages[start].start.append(made)
                stages[k].wait.append(made)
                stages[k].peers.append(c.frm if isinstance(c, Recv) else c.to)
        early, late = meanwhile(r) if r.comm and turn else ((), r.then)
        stages[k].meanwhile += map(at.step, early)
        stages[k].then += map(at.step, late)
        if r.meet:
            assert turn is not None
            stages[k].meet = Meeting(turn, next(meetings))
    return stages


def uses_library(rounds: Sequence[Round]) -> bool:
    """Whether a round calls the library's own collective."""
    return any(isinstance(c, Library) for r in rounds for c in r.comm)
