"""The virtual machine: the dialogues of all ranks in one process, counted.

Messages are synchronous: one moves when both its ends are there, so a dialogue that
leans on buffering ends in `Deadlock`. A round is a link of the longest chain of steps
that had to wait for each other. Virtual time follows the alpha-beta model: a message
takes alpha + n beta of its sender's port and of its receiver's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..machine import BadMessage, Deadlock
from .dialogue import Allgather, Dialogue, Exchange, Post, Step, nbytes
from .memory import footprint


@dataclass(frozen=True, slots=True)
class Message:
    """A value that moved from one rank to another; rounds count from 0."""

    round: int
    source: int
    target: int
    value: Any


@dataclass(slots=True)
class Tally:
    """What one rank did: its rounds, what it sent, its memory, when it was done."""

    rounds: int = 0
    messages: int = 0
    bytes: int = 0
    memory: int = 0
    time: float = 0.0


@dataclass(frozen=True)
class Run:
    """What came of a run: every rank's result and tally, and the messages if kept."""

    results: list[Any]
    ranks: list[Tally]
    trace: list[Message] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        """The longest chain of steps that waited for each other."""
        return max((t.rounds for t in self.ranks), default=0)

    @property
    def time(self) -> float:
        """When the last rank was done."""
        return max((t.time for t in self.ranks), default=0.0)

    @property
    def messages(self) -> int:
        """All messages."""
        return sum(t.messages for t in self.ranks)

    @property
    def bytes(self) -> int:
        """The bytes of all messages."""
        return sum(t.bytes for t in self.ranks)

    @property
    def peak(self) -> int:
        """The most bytes that a rank held at a time."""
        return max((t.memory for t in self.ranks), default=0)


class _Rank:
    """Where one rank stands: its step, and what of it is still open."""

    __slots__ = (
        "dialogue",
        "got",
        "latest",
        "open",
        "recv_free",
        "send_free",
        "slots",
        "start",
        "step",
        "tally",
    )

    def __init__(self, dialogue: Dialogue[Any] | None) -> None:
        self.dialogue = dialogue
        self.tally = Tally()
        self.step: Step = Exchange()
        self.got: Any = None  # what starts a generator
        self.slots: dict[int, int] = {}
        self.open = 0
        self.start = self.latest = 0
        self.send_free = self.recv_free = 0.0


class _Machine:
    """All ranks, and the ends of messages that wait for their other end."""

    def __init__(
        self,
        dialogues: Iterable[Dialogue[Any] | None],
        alpha: float,
        beta: float,
        memory: Container[int],
        trace: bool,
        carry: Callable[[Any], Any] | None,
    ) -> None:
        self.ranks = [_Rank(d) for d in dialogues]
        self.results: list[Any] = [None] * len(self.ranks)
        self.ready = deque(i for i, r in enumerate(self.ranks) if r.dialogue)
        self.busy = len(self.ready)
        self.alpha, self.beta, self.memory, self.carry = alpha, beta, memory, carry
        self.trace: list[Message] | None = [] if trace else None
        self.offers: dict[tuple[int, int], Any] = {}
        self.wanted: set[tuple[int, int]] = set()
        self.boxes: dict[int, deque[tuple[int, Any]]] = {}
        self.hall: list[int] = []

    def run(self) -> None:
        """Let whoever can go on, until all are done."""
        while self.ready:
            me = self.ready.popleft()
            self.resume(me, self.ranks[me])
        if self.busy:
            stuck = [i for i, r in enumerate(self.ranks) if r.dialogue]
            raise Deadlock("; ".join(_waits(i, self.ranks[i]) for i in stuck[:8]))

    def resume(self, me: int, rank: _Rank) -> None:
        """Hand a rank what it heard and take its next step."""
        dialogue = rank.dialogue
        assert dialogue is not None
        try:
            step = dialogue.send(rank.got)
        except StopIteration as end:
            self.results[me], rank.dialogue = end.value, None
            self.busy -= 1
            return
        rank.step, rank.start = step, rank.tally.rounds
        rank.latest = rank.start
        rank.send_free = rank.recv_free = rank.tally.time
        if me in self.memory:
            self.weigh(rank, step)
        if type(step) is Exchange:
            self.exchange(me, rank, step)
        elif isinstance(step, Post):
            self.post(me, rank, step)
        elif isinstance(step, Allgather):
            self.meet(me, rank)
        else:
            raise BadMessage(f"rank {me}: {step!r} is no step of a dialogue")

    def weigh(self, rank: _Rank, heard: Any) -> None:
        """Keep the most that a rank held: its frames, and a step or what it heard."""
        held = footprint(rank.dialogue, heard) if rank.dialogue else 0
        rank.tally.memory = max(rank.tally.memory, held)

    def exchange(self, me: int, rank: _Rank, step: Exchange) -> None:
        """Put both kinds of ends in flight, and move what has its other end."""
        _check(me, len(self.ranks), dict(step.sends), len(step.sends))
        rank.slots = {frm: i for i, frm in enumerate(step.recvs)}
        _check(me, len(self.ranks), rank.slots, len(step.recvs))
        rank.got = [None] * len(step.recvs)
        rank.open = 1 + len(step.sends) + len(step.recvs)
        for frm in step.recvs:
            if (frm, me) in self.offers:
                self.move(frm, me, self.offers.pop((frm, me)))
            else:
                self.wanted.add((frm, me))
        for to, value in step.sends:
            if (me, to) in self.wanted:
                self.wanted.remove((me, to))
                self.move(me, to, value)
            else:
                self.offers[me, to] = value
        self.close(me, rank)

    def post(self, me: int, rank: _Rank, step: Post) -> None:
        """Put values into boxes, and empty the own one."""
        rank.slots, rank.got = {}, []
        rank.open = 1 + len(step.sends) + step.expect
        for to, value in step.sends:
            self.boxes.setdefault(to, deque()).append((me, value))
            self.empty(to)
        self.empty(me)
        self.close(me, rank)

    def empty(self, me: int) -> None:
        """Hand a rank that expects values what is in its box."""
        rank, box = self.ranks[me], self.boxes.get(me)
        while (
            box
            and isinstance(rank.step, Post)
            and rank.open
            and len(rank.got) < rank.step.expect
        ):
            source, value = box.popleft()
            rank.slots[source] = len(rank.got)
            rank.got.append(None)
            self.move(source, me, value)

    def move(self, source: int, target: int, value: Any) -> None:
        """Carry a value from its sender to its receiver, and count it."""
        a, b = self.ranks[source], self.ranks[target]
        if a.latest < b.start:
            a.latest = b.start
        if b.latest < a.start:
            b.latest = a.start
        if source != target:
            size = nbytes(value)
            a.tally.messages += 1
            a.tally.bytes += size
            begin = max(a.send_free, b.recv_free)
            a.send_free = b.recv_free = begin + self.alpha + self.beta * size
        if self.trace is not None:
            self.trace.append(Message(max(a.start, b.start), source, target, value))
        b.got[b.slots[source]] = self.carry(value) if self.carry else value
        self.close(source, a)
        self.close(target, b)

    def close(self, me: int, rank: _Rank) -> None:
        """One end less; after the last, the rank can go on."""
        rank.open -= 1
        if rank.open:
            return
        step = rank.step
        if isinstance(step, Allgather) or step.sends or rank.got:
            rank.tally.rounds = rank.latest + 1
        rank.tally.time = max(rank.send_free, rank.recv_free)
        if me in self.memory:
            self.weigh(rank, rank.got)
        self.ready.append(me)

    def meet(self, me: int, rank: _Rank) -> None:
        """The library's allgather: counted as one that doubles what all have.

        That is ⌈log n⌉ rounds, in which every rank sends and hears all but one value.
        """
        rank.open = 1
        self.hall.append(me)
        if len(self.hall) < len(self.ranks):
            return
        values = [r.step.value for r in self.ranks if isinstance(r.step, Allgather)]
        rounds = (len(values) - 1).bit_length()
        total = sum(map(nbytes, values))
        latest = max(r.start for r in self.ranks)
        begin = max(r.tally.time for r in self.ranks)
        self.hall = []
        for i, r in enumerate(self.ranks):
            size = total - nbytes(values[i])
            r.tally.messages += rounds
            r.tally.bytes += size
            r.send_free = begin + rounds * self.alpha + self.beta * size
            r.latest = latest + rounds - 1
            r.slots = {}
            r.got = [self.carry(v) for v in values] if self.carry else values
            self.close(i, r)


def _check(me: int, n: int, others: dict[int, Any], count: int) -> None:
    """Raise if a step names a rank twice, itself, or one there is not."""
    if me in others or len(others) < count:
        raise BadMessage(f"rank {me}: messages with {list(others)} in one step")
    for other in others:
        if not 0 <= other < n:
            raise BadMessage(f"rank {me}: there is no rank {other}")


def _waits(me: int, rank: _Rank) -> str:
    """What a stuck rank waits for."""
    step = rank.step
    where = f"rank {me}, round {rank.start}"
    if isinstance(step, Allgather):
        return f"{where} waits for all others"
    if isinstance(step, Post):
        return f"{where} has heard {len(rank.got)} of {step.expect} values"
    return (
        f"{where} waits to send to {[to for to, _ in step.sends]} "
        f"and to hear from {list(step.recvs)}"
    )


def run(
    dialogues: Iterable[Dialogue[Any] | None],
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    memory: Container[int] = (),
    trace: bool = False,
    carry: Callable[[Any], Any] | None = None,
) -> Run:
    """Run the dialogue of every rank; None is a rank that takes no part.

    `memory` are the ranks of which all that they hold is weighed, which takes its time;
    `trace` keeps the messages; `carry` is applied to each on its way, as pickling is.
    """
    machine = _Machine(dialogues, alpha, beta, memory, trace, carry)
    machine.run()
    tallies = [rank.tally for rank in machine.ranks]
    return Run(machine.results, tallies, machine.trace or [])
