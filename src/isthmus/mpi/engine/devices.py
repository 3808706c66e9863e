"""Calls with arrays on a device: done on the host memory that stands for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from .flow import Arrival, Exchange, Flow, Part, Slot
from .plan import Binding, Plan, Stage, Step, request


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


class Binder:
    """Binds rounds to host memory that stands for arrays on a device."""

    def __init__(
        self, at: Binding, comm: MPI.Intracomm, tag: int, cut: int, slot: Slot
    ) -> None:
        self._at, self._comm, self._tag, self._cut = at, comm, tag, cut
        self.flow = Flow(slot)
        self.stages = [Stage()]
        self._come = -1

    def _after(self, pieces: Sequence[Piece]) -> Stage:
        """The stage in which some memory can be read."""
        number = self.flow.reads(pieces)
        if number > self._come:
            self._come = number
            self._next().meet = Arrival(self.flow, number, self._comm)
        return self.stages[-1]

    def _next(self) -> Stage:
        """Begin another stage; the one before."""
        self.stages.append(Stage())
        return self.stages[-2]

    def _moves(self, moves: Sequence[tuple[Any, Any, Step]]) -> list[Part]:
        """Steps that copy memory, as parts of no message."""
        found = []
        for src, dst, step in moves:
            part = Part(copies=[step], number=self.flow.reads(src))
            self.flow.writes(dst, part)
            found.append(part)
        return found

    def _parts(self, c: Send | Recv, at: Binding) -> Iterator[Part]:
        """A message in pieces."""
        peer = c.to if isinstance(c, Send) else c.frm
        for pieces in memory.parts(at.pieces(c.data), self._cut):
            made = request(self._comm, c, pieces, self._tag)
            yield Part(made, peer, sum(n for _, n in pieces), pieces=pieces)

    def _sends(self, r: Round) -> list[Part]:
        """What is sent, to all ranks in turns: what goes to several comes from the
        device once, and none of them waits for the others."""
        ranks: dict[int, list[Part]] = {}
        for c in r.comm:
            if isinstance(c, Send):
                ranks.setdefault(c.to, []).extend(self._parts(c, self._at.source))
        turns = zip_longest(*ranks.values())
        found = [x for turn in turns for x in turn if x is not None]
        for x in found:
            x.number = self.flow.reads(x.pieces)
        return found

    def _receives(self, r: Round) -> list[Part]:
        """What is received."""
        every = (c for c in r.comm if isinstance(c, Recv))
        found = [x for c in every for x in self._parts(c, self._at)]
        for x in found:
            self.flow.writes(x.pieces, x)
        return found

    def add(self, r: Round, moves: Sequence[tuple[Any, Any, Step]] = ()) -> None:
        """A round, with moves while its messages are on their way."""
        parts = self._sends(r), self._receives(r), self._moves(moves)
        if any(parts):
            stage = self._next()
            stage.meet = made = Exchange(self.flow, *parts)
            stage.held = made.requests
            self._come = max(self._come, made.number)
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
    if moves:
        binder.add(Round(), moves)
    binder.flow.complete(binder.stages)
    return binder.stages, binder.flow
