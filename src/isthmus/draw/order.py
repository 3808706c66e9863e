"""The steps of a schedule: messages and local steps at once, as far as ranks can go.

In a step, every message moves whose two ends are in their round, so that a picture of
the step has both ends of all messages. Then ranks do local steps, and ranks of a node
meet. A round without messages is a step only if the round uses node memory, or meets.
Data play no part: `steps` adds the data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..schedules.ir import Library, Local, Recv, Round, Send
from ..schedules.program import data_of, in_node
from ..schedules.schedule import Schedule
from ..verify.matcher import Matcher, Rank
from .palette import nodes_of

#: a rank, and a local step of the rank
RankStep = tuple[int, Local]


@dataclass(frozen=True)
class MatchedMessage:
    """Both ends of a message."""

    source: int
    target: int
    send: Send
    recv: Recv


@dataclass(frozen=True)
class StepEvents:
    """The events of a step, in the order of the fields."""

    #: local steps before the first message of a schedule
    first: tuple[RankStep, ...]
    messages: tuple[MatchedMessage, ...]
    #: calls of the MPI library
    library: tuple[Library, ...]
    then: tuple[RankStep, ...]
    #: the numbers of the nodes whose ranks meet
    meetings: tuple[int, ...]


def _takes_time(r: Round) -> bool:
    """Whether a round is a step: by messages, a meeting, or use of node memory."""
    return bool(r.comm) or r.meet or any(map(in_node, data_of(r)))


@dataclass
class _EventsOfStep:
    """The events of a step, in the order of the matcher."""

    #: each with the key by which a step's messages are sorted: of the first send of the
    #: pair of ranks, the step, the sender and the place in the round
    messages: list[tuple[tuple[int, int, int], MatchedMessage]] = field(
        default_factory=list
    )
    library: list[Library] = field(default_factory=list)
    then: list[RankStep] = field(default_factory=list)
    meetings: list[int] = field(default_factory=list)

    def step(self, first: tuple[RankStep, ...] = ()) -> StepEvents:
        """The events in the order of ranks.

        Events are sorted, since the matcher's order depends on which rank is looked at
        first.
        """
        messages = tuple(m for _, m in sorted(self.messages, key=lambda x: x[0]))
        library = tuple(sorted(self.library, key=lambda call: call.base))
        then = tuple(sorted(self.then, key=lambda step: step[0]))
        return StepEvents(first, messages, library, then, tuple(sorted(self.meetings)))


class _MatchedEvents:
    """The events of every step, as reported by the matcher."""

    def __init__(self, node_of: dict[int, int]) -> None:
        self.node_of = node_of
        self.steps: dict[int, _EventsOfStep] = defaultdict(_EventsOfStep)
        #: local steps before all messages
        self.first: list[RankStep] = []
        #: ranks without any step so far
        self.early: set[int] = set()
        #: by source and target, when the first send of the pair was posted
        self.pairs: dict[tuple[int, int], tuple[int, int, int]] = {}

    def enters(self, rank: Rank, r: Round) -> None:
        if _takes_time(r):
            self.steps[rank.step]  # makes the step, which may stay empty
            self.early.discard(rank.number)
        for k, c in enumerate(r.comm):
            if isinstance(c, Send):
                when = rank.step, rank.number, k
                self.pairs.setdefault((rank.number, c.to), when)

    def moves(self, source: Rank, send: Send, target: Rank, recv: Recv) -> None:
        message = MatchedMessage(source.number, target.number, send, recv)
        when = self.pairs[source.number, target.number]
        self.steps[max(source.step, target.step)].messages.append((when, message))

    def gathers(self, ranks: Sequence[Rank], calls: Sequence[Library]) -> None:
        self.steps[max(rank.step for rank in ranks)].library.append(calls[0])

    def works(self, rank: Rank, r: Round) -> None:
        rank_steps = [(rank.number, s) for s in r.then]
        if rank.number in self.early:
            self.first += rank_steps
        elif rank_steps:
            at = rank.step if _takes_time(r) else rank.step - 1
            self.steps[at].then += rank_steps

    def meets(self, ranks: Sequence[Rank]) -> None:
        self.steps[ranks[0].step].meetings.append(self.node_of[ranks[0].number])


def order(
    schedule: Schedule, programs: list[list[Round]] | None = None
) -> Iterator[StepEvents]:
    """The steps of a schedule, up to the end of all ranks.

    `programs` are the rounds of all ranks, if a caller has built the rounds already.
    """
    node_of_rank = schedule.nodes or range(schedule.n)
    nodes = nodes_of(node_of_rank)
    steps = _MatchedEvents({r: k for k, node in enumerate(nodes) for r in node.ranks})
    steps.early = set(range(schedule.n))
    rounds = programs or schedule.all_ranks()
    Matcher(rounds, steps, node_of_rank, _takes_time).run()
    first = tuple(sorted(steps.first, key=lambda step: step[0]))
    for k in sorted(steps.steps):
        yield steps.steps[k].step(first)
        first = ()
    if first:
        yield StepEvents(first, (), (), (), ())
