"""The virtual machine: runs the dialogues of all ranks in one process, and counts.

Messages are synchronous: a message moves when both ends are posted, so a dialogue that
relies on buffering ends in `Deadlock`. A round is a link of the longest chain of steps
that had to wait for each other. Virtual time follows the alpha-beta model: a message
takes alpha + n beta of its sender's port and of its receiver's. A step begins when the
last rank that takes part has begun it, and ends when the busier port is done, in
whatever order the messages move.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Container, Iterable
from typing import Any

from ..verify.errors import BadMessage, Deadlock
from .dialogue import AllgatherStep, Dialogue, ExchangeStep, PostStep, Step, nbytes
from .footprint import footprint
from .run_result import RankTally, RunResult, TracedMessage


class _DialogueRank:
    """The state of a rank: step, received values, and number of pending messages."""

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
        self, number: int, dialogue: Dialogue[Any] | None, tally: RankTally
    ) -> None:
        self.number = number
        self.dialogue = dialogue
        self.tally = tally
        self.step: Step = ExchangeStep()
        self.received: Any = None  # None starts a generator
        self.expects = 0  # posted values that have not arrived
        self.open = 0  # pending messages of the step, and one until all are posted
        self.latest = 0  # the last round of its partners before this step
        self.begin = 0.0  # the time at which the last partner began the step
        self.outgoing = self.incoming = 0.0  # seconds for which either port is busy


class _DialogueMachine:
    """All ranks, and the messages with only one end posted."""

    def __init__(
        self,
        dialogues: Iterable[Dialogue[Any] | None],
        alpha: float,
        beta: float,
        memory: Container[int],
        trace: bool,
        carry: Callable[[Any], Any] | None,
        tallies: Iterable[RankTally] | None,
    ) -> None:
        rank_tallies = iter(RankTally, None) if tallies is None else tallies
        # strict=False, as there is no end of new tallies
        pairs = zip(dialogues, rank_tallies, strict=False)
        self.ranks = [_DialogueRank(i, *x) for i, x in enumerate(pairs)]
        self.n = len(self.ranks)
        self.results: list[Any] = [None] * self.n
        self.ready = deque(r for r in self.ranks if r.dialogue)
        self.alpha, self.beta, self.memory, self.carry = alpha, beta, memory, carry
        self.trace: list[TracedMessage] | None = [] if trace else None
        # by source * n + target: offered values, and slots of wanted values
        self.offers: dict[int, Any] = {}
        self.wanted: dict[int, int] = {}
        self.mailboxes: dict[int, deque[tuple[_DialogueRank, Any]]] = {}
        self.arrived = 0

    def run(self) -> None:
        """Resume ranks that are ready, until all are done."""
        while self.ready:
            self.resume(self.ready.popleft())
        stuck = [rank for rank in self.ranks if rank.dialogue]
        if stuck:
            raise Deadlock("; ".join(map(_waits, stuck[:8])))

    def resume(self, rank: _DialogueRank) -> None:
        """Hand a rank the received values and take its next step."""
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
        if type(step) is ExchangeStep:
            self.exchange(rank, step)
        elif isinstance(step, PostStep):
            self.post(rank, step)
        elif isinstance(step, AllgatherStep):
            self.allgather(rank)
        else:
            raise BadMessage(f"rank {rank.number}: {step!r} is no step of a dialogue")

    def measure(self, rank: _DialogueRank, values_in_flight: Any) -> None:
        """Raise the peak memory of a rank to its frames and the values in flight."""
        if rank.dialogue:
            held_bytes = footprint(rank.dialogue, values_in_flight)
            rank.tally.memory = max(rank.tally.memory, held_bytes)

    def exchange(self, rank: _DialogueRank, step: ExchangeStep) -> None:
        """Post receives and sends; move messages with both ends posted."""
        number, n, ranks = rank.number, self.n, self.ranks
        rank.received = [None] * len(step.recvs)
        rank.open = 1 + len(step.sends) + len(step.recvs)
        for slot, source in enumerate(step.recvs):
            pair = source * n + number
            if pair in self.wanted or source == number or not 0 <= source < n:
                raise BadMessage(
                    f"rank {number} cannot receive from {list(step.recvs)}"
                )
            if pair in self.offers:
                self.move(ranks[source], rank, self.offers.pop(pair), slot)
            else:
                self.wanted[pair] = slot
        for target, value in step.sends:
            pair = number * n + target
            if pair in self.offers or target == number or not 0 <= target < n:
                raise BadMessage(f"rank {number} cannot send to {_targets(step)}")
            if pair in self.wanted:
                self.move(rank, ranks[target], value, self.wanted.pop(pair))
            else:
                self.offers[pair] = value
        self.close(rank)

    def post(self, rank: _DialogueRank, step: PostStep) -> None:
        """Put values into mailboxes, and deliver values in the rank's own mailbox."""
        rank.received, rank.expects = [], step.expect
        rank.open = 1 + len(step.sends) + step.expect
        for target, value in step.sends:
            self.mailboxes.setdefault(target, deque()).append((rank, value))
            self.deliver(target)
        self.deliver(rank.number)
        self.close(rank)

    def deliver(self, number: int) -> None:
        """Deliver values from the mailbox of a rank, as many as the rank expects."""
        rank, mailbox = self.ranks[number], self.mailboxes.get(number)
        while mailbox and rank.expects:
            source, value = mailbox.popleft()
            rank.expects -= 1
            rank.received.append(None)
            self.move(source, rank, value, len(rank.received) - 1)

    def move(
        self, sender: _DialogueRank, receiver: _DialogueRank, value: Any, slot: int
    ) -> None:
        """Carry a value from sender to receiver, and count the message."""
        if sender is not receiver:
            size = nbytes(value)
            sender_tally = sender.tally
            receiver_tally = receiver.tally
            sender_tally.messages += 1
            sender_tally.bytes += size
            transfer_time = self.alpha + self.beta * size
            sender.outgoing += transfer_time
            receiver.incoming += transfer_time
            if sender.begin < receiver_tally.time:
                sender.begin = receiver_tally.time
            if receiver.begin < sender_tally.time:
                receiver.begin = sender_tally.time
            if sender.latest < receiver_tally.rounds:
                sender.latest = receiver_tally.rounds
            if receiver.latest < sender_tally.rounds:
                receiver.latest = sender_tally.rounds
        if self.trace is not None:
            round_number = max(sender.tally.rounds, receiver.tally.rounds)
            self.trace.append(
                TracedMessage(round_number, sender.number, receiver.number, value)
            )
        receiver.received[slot] = self.carry(value) if self.carry else value
        self.close(sender)
        self.close(receiver)

    def close(self, rank: _DialogueRank) -> None:
        """Take a pending message off a rank; after the last one the rank is ready."""
        rank.open -= 1
        if rank.open:
            return
        step = rank.step
        if isinstance(step, AllgatherStep) or step.sends or rank.received:
            rank.tally.rounds = rank.latest + 1
        rank.tally.time = rank.begin + max(rank.outgoing, rank.incoming)
        if rank.number in self.memory:
            self.measure(rank, rank.received)
        self.ready.append(rank)

    def allgather(self, rank: _DialogueRank) -> None:
        """The library's allgather, counted as recursive doubling.

        ⌈log n⌉ rounds, in which every rank receives all values but its own.
        """
        rank.open = 1
        self.arrived += 1
        if self.arrived < self.n:
            return
        self.arrived = 0
        values = [r.step.value for r in self.ranks if isinstance(r.step, AllgatherStep)]
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


def _targets(step: ExchangeStep | PostStep) -> list[int]:
    """The targets of a step's values."""
    return [target for target, _ in step.sends]


def _waits(rank: _DialogueRank) -> str:
    """The messages for which a stuck rank waits, in words."""
    step = rank.step
    where = f"rank {rank.number}, round {rank.tally.rounds}"
    if isinstance(step, AllgatherStep):
        return f"{where} waits for all others"
    if isinstance(step, PostStep):
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
    tallies: Iterable[RankTally] | None = None,
) -> RunResult:
    """Run the dialogue of every rank; None is a rank that takes no part.

    `memory` are the ranks to measure the memory of, which takes time; `trace` records
    the messages; `carry` is applied to each value on its way, as pickling is; `tallies`
    count earlier rounds, messages and bytes of the ranks.
    """
    machine = _DialogueMachine(dialogues, alpha, beta, memory, trace, carry, tallies)
    collects = gc.isenabled()
    gc.disable()  # to look for cycles among many dialogues takes a third of the time
    try:
        machine.run()
    finally:
        if collects:
            gc.enable()
    tallies = [rank.tally for rank in machine.ranks]
    return RunResult(machine.results, tallies, machine.trace or [])
