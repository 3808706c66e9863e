"""The virtual machine: runs the dialogues of all ranks in one process, and counts.

Messages are synchronous: one moves when both its ends are there, so a dialogue that
relies on buffering ends in `Deadlock`. A round is a link of the longest chain of steps
that had to wait for each other. Virtual time follows the alpha-beta model: a message
takes alpha + n beta of its sender's port and of its receiver's. A step begins when the
last of the ranks that take part has begun it, and ends when the busier port is done, in
whatever order the messages move.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Container, Iterable
from typing import Any

from ..verify.errors import BadMessage, Deadlock
from .dialogue import Allgather, Dialogue, Exchange, Post, Step, nbytes
from .memory import footprint
from .tally import Message, Run, Tally


class _Rank:
    """The state of one rank: its step, and how many messages of it are pending."""

    __slots__ = (
        "begin",
        "dialogue",
        "expects",
        "incoming",
        "latest",
        "number",
        "open",
        "outgoing",
        "received",
        "step",
        "tally",
    )

    def __init__(
        self, number: int, dialogue: Dialogue[Any] | None, tally: Tally
    ) -> None:
        self.number = number
        self.dialogue = dialogue
        self.tally = tally
        self.step: Step = Exchange()
        self.received: Any = None  # what starts a generator
        self.expects = 0  # posted values
        self.open = 0
        self.latest = 0  # the last round of its partners before this step
        self.begin = 0.0  # when the last of its partners began the step
        self.outgoing = self.incoming = 0.0  # how long either port is busy


class _Machine:
    """All ranks, and the messages that are posted at one end only."""

    def __init__(
        self,
        dialogues: Iterable[Dialogue[Any] | None],
        alpha: float,
        beta: float,
        memory: Container[int],
        trace: bool,
        carry: Callable[[Any], Any] | None,
        tallies: Iterable[Tally] | None,
    ) -> None:
        done = iter(Tally, None) if tallies is None else tallies
        pairs = zip(dialogues, done, strict=False)  # there is no end of new tallies
        self.ranks = [_Rank(i, *x) for i, x in enumerate(pairs)]
        self.n = len(self.ranks)
        self.results: list[Any] = [None] * self.n
        self.ready = deque(r for r in self.ranks if r.dialogue)
        self.alpha, self.beta, self.memory, self.carry = alpha, beta, memory, carry
        self.trace: list[Message] | None = [] if trace else None
        # a pair is source * n + target: values on offer, and where wanted ones go
        self.offers: dict[int, Any] = {}
        self.wanted: dict[int, int] = {}
        self.mailboxes: dict[int, deque[tuple[_Rank, Any]]] = {}
        self.arrived = 0

    def run(self) -> None:
        """Resume the ranks that can go on, until all are done."""
        while self.ready:
            self.resume(self.ready.popleft())
        stuck = [rank for rank in self.ranks if rank.dialogue]
        if stuck:
            raise Deadlock("; ".join(map(_waits, stuck[:8])))

    def resume(self, rank: _Rank) -> None:
        """Hand a rank what it received and take its next step."""
        dialogue = rank.dialogue
        assert dialogue is not None
        try:
            step = dialogue.send(rank.received)
        except StopIteration as end:
            self.results[rank.number], rank.dialogue = end.value, None
            return
        rank.step, rank.latest = step, rank.tally.rounds
        rank.begin, rank.outgoing, rank.incoming = rank.tally.time, 0.0, 0.0
        if rank.number in self.memory:
            self.measure(rank, step)
        if type(step) is Exchange:
            self.exchange(rank, step)
        elif isinstance(step, Post):
            self.post(rank, step)
        elif isinstance(step, Allgather):
            self.allgather(rank)
        else:
            raise BadMessage(f"rank {rank.number}: {step!r} is no step of a dialogue")

    def measure(self, rank: _Rank, more: Any) -> None:
        """Update the peak memory of a rank: its frames, and a step or what came."""
        if rank.dialogue:
            held = footprint(rank.dialogue, more)
            rank.tally.memory = max(rank.tally.memory, held)

    def exchange(self, rank: _Rank, step: Exchange) -> None:
        """Post receives and sends, and move what is posted at both ends."""
        me, n, ranks = rank.number, self.n, self.ranks
        rank.received = [None] * len(step.recvs)
        rank.open = 1 + len(step.sends) + len(step.recvs)
        for i, source in enumerate(step.recvs):
            pair = source * n + me
            if pair in self.wanted or source == me or not 0 <= source < n:
                raise BadMessage(f"rank {me} cannot receive from {list(step.recvs)}")
            if pair in self.offers:
                self.move(ranks[source], rank, self.offers.pop(pair), i)
            else:
                self.wanted[pair] = i
        for target, value in step.sends:
            pair = me * n + target
            if pair in self.offers or target == me or not 0 <= target < n:
                raise BadMessage(f"rank {me} cannot send to {_targets(step)}")
            if pair in self.wanted:
                self.move(rank, ranks[target], value, self.wanted.pop(pair))
            else:
                self.offers[pair] = value
        self.close(rank)

    def post(self, rank: _Rank, step: Post) -> None:
        """Put values into mailboxes, and take those in the own one."""
        rank.received, rank.expects = [], step.expect
        rank.open = 1 + len(step.sends) + step.expect
        for target, value in step.sends:
            self.mailboxes.setdefault(target, deque()).append((rank, value))
            self.deliver(target)
        self.deliver(rank.number)
        self.close(rank)

    def deliver(self, me: int) -> None:
        """Deliver what is in the mailbox of a rank that expects values."""
        rank, box = self.ranks[me], self.mailboxes.get(me)
        while box and rank.expects:
            source, value = box.popleft()
            rank.expects -= 1
            rank.received.append(None)
            self.move(source, rank, value, len(rank.received) - 1)

    def move(self, a: _Rank, b: _Rank, value: Any, slot: int) -> None:
        """Carry a value from its sender to its receiver, and count it."""
        if a is not b:
            size, done, met = nbytes(value), a.tally, b.tally
            done.messages += 1
            done.bytes += size
            takes = self.alpha + self.beta * size
            a.outgoing += takes
            b.incoming += takes
            if a.begin < met.time:
                a.begin = met.time
            if b.begin < done.time:
                b.begin = done.time
            if a.latest < met.rounds:
                a.latest = met.rounds
            if b.latest < done.rounds:
                b.latest = done.rounds
        if self.trace is not None:
            late = max(a.tally.rounds, b.tally.rounds)
            self.trace.append(Message(late, a.number, b.number, value))
        b.received[slot] = self.carry(value) if self.carry else value
        self.close(a)
        self.close(b)

    def close(self, rank: _Rank) -> None:
        """One pending message less; after the last, the rank can go on."""
        rank.open -= 1
        if rank.open:
            return
        step = rank.step
        if isinstance(step, Allgather) or step.sends or rank.received:
            rank.tally.rounds = rank.latest + 1
        rank.tally.time = rank.begin + max(rank.outgoing, rank.incoming)
        if rank.number in self.memory:
            self.measure(rank, rank.received)
        self.ready.append(rank)

    def allgather(self, rank: _Rank) -> None:
        """The library's allgather: counted as one that doubles what all have.

        That is ⌈log n⌉ rounds, in which every rank receives all values but its own.
        """
        rank.open = 1
        self.arrived += 1
        if self.arrived < self.n:
            return
        self.arrived = 0
        values = [r.step.value for r in self.ranks if isinstance(r.step, Allgather)]
        rounds, sizes = (self.n - 1).bit_length(), [nbytes(v) for v in values]
        latest = max(r.tally.rounds for r in self.ranks)
        begin, total = max(r.tally.time for r in self.ranks), sum(sizes)
        for r, size in zip(self.ranks, sizes, strict=True):
            received = total - size
            r.tally.messages += rounds
            r.tally.bytes += received
            r.begin, r.outgoing = begin, rounds * self.alpha + self.beta * received
            r.latest = latest + rounds - 1
            r.received = [self.carry(v) for v in values] if self.carry else values
            self.close(r)


def _targets(step: Exchange | Post) -> list[int]:
    return [target for target, _ in step.sends]


def _waits(rank: _Rank) -> str:
    """What a stuck rank waits for."""
    step = rank.step
    where = f"rank {rank.number}, round {rank.tally.rounds}"
    if isinstance(step, Allgather):
        return f"{where} waits for all others"
    if isinstance(step, Post):
        return f"{where} has received {len(rank.received)} of {step.expect} values"
    sources = list(step.recvs)
    return f"{where} waits to send to {_targets(step)} and to receive from {sources}"


def run(
    dialogues: Iterable[Dialogue[Any] | None],
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    memory: Container[int] = (),
    trace: bool = False,
    carry: Callable[[Any], Any] | None = None,
    tallies: Iterable[Tally] | None = None,
) -> Run:
    """Run the dialogue of every rank; None is a rank that takes no part.

    `memory` are the ranks whose memory is measured, which takes time;
    `trace` keeps the messages; `carry` is applied to each on its way, as pickling is;
    `tallies` are what the ranks have done before.
    """
    machine = _Machine(dialogues, alpha, beta, memory, trace, carry, tallies)
    collects = gc.isenabled()
    gc.disable()  # to look for cycles among many dialogues takes a third of the time
    try:
        machine.run()
    finally:
        if collects:
            gc.enable()
    tallies = [rank.tally for rank in machine.ranks]
    return Run(machine.results, tallies, machine.trace or [])
