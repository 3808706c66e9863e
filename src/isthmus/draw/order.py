"""The steps of a schedule: messages and local steps at once, as far as ranks can go.

In a step every message moves of which both ends are in their round, so that a picture
of it has both ends of all its messages; then the ranks do their local steps, and those
of a node meet. A round without messages takes a step of its own only if it uses the
memory of a node, or meets. No data are needed for that: `steps` adds them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..schedules.ir import Data, Library, Local, Pieces, Recv, Round, Send
from ..schedules.program import data_of
from ..schedules.schedule import Schedule
from ..verify.matcher import Matcher, Rank
from .palette import nodes_of

#: a local step, and the rank that does it
Done = tuple[int, Local]


@dataclass(frozen=True)
class MatchedMessage:
    """Both ends of a message."""

    source: int
    target: int
    send: Send
    recv: Recv


@dataclass(frozen=True)
class StepEvents:
    """The events of a step, in the order of its fields.

    `first` are local steps before the first message of a schedule, `library` the calls
    of the MPI library, `meetings` the numbers of the nodes whose ranks meet.
    """

    first: tuple[Done, ...]
    messages: tuple[MatchedMessage, ...]
    library: tuple[Library, ...]
    then: tuple[Done, ...]
    meetings: tuple[int, ...]


def in_node(data: Data) -> bool:
    """Whether data lie in the memory of a node."""
    if isinstance(data, Pieces):
        return data.buf == "node"
    return any(s.buf == "node" for s in data)


def _takes_time(r: Round) -> bool:
    """Whether a round takes a step: it has messages, a meeting, or uses node memory."""
    return bool(r.comm) or r.meet or any(map(in_node, data_of(r)))


@dataclass
class _EventsOfStep:
    """The events of a step in the order of their discovery, rank by rank."""

    #: each with the first send of its pair: its step, the sender, its place there
    messages: list[tuple[tuple[int, int, int], MatchedMessage]] = field(
        default_factory=list
    )
    library: list[Library] = field(default_factory=list)
    then: list[Done] = field(default_factory=list)
    meetings: list[int] = field(default_factory=list)

    def step(self, first: tuple[Done, ...] = ()) -> StepEvents:
        """The step, in the order of ranks."""
        messages = tuple(m for _, m in sorted(self.messages, key=lambda x: x[0]))
        library = tuple(sorted(self.library, key=lambda call: call.base))
        then = tuple(sorted(self.then, key=lambda done: done[0]))
        return StepEvents(first, messages, library, then, tuple(sorted(self.meetings)))


class _Steps:
    """The events of every step, which the matcher reports."""

    def __init__(self, node_of: dict[int, int]) -> None:
        self.node_of = node_of
        self.steps: dict[int, _EventsOfStep] = defaultdict(_EventsOfStep)
        #: local steps before all messages, and the ranks that have no other step yet
        self.first: list[Done] = []
        self.early: set[int] = set()
        #: source and target of messages, and when their first send was posted
        self.pairs: dict[tuple[int, int], tuple[int, int, int]] = {}

    def enters(self, rank: Rank, r: Round) -> None:
        if _takes_time(r):
            self.steps[rank.step]  # a step, though nothing may happen in it
            self.early.discard(rank.number)
        for k, c in enumerate(r.comm):
            if isinstance(c, Send):
                when = rank.step, rank.number, k
                self.pairs.setdefault((rank.number, c.to), when)

    def moves(self, source: Rank, send: Send, target: Rank, recv: Recv) -> None:
        sent = MatchedMessage(source.number, target.number, send, recv)
        when = self.pairs[source.number, target.number]
        self.steps[max(source.step, target.step)].messages.append((when, sent))

    def gathers(self, ranks: Sequence[Rank], calls: Sequence[Library]) -> None:
        self.steps[max(rank.step for rank in ranks)].library.append(calls[0])

    def works(self, rank: Rank, r: Round) -> None:
        done = [(rank.number, s) for s in r.then]
        if rank.number in self.early:
            self.first += done
        elif done:
            at = rank.step if _takes_time(r) else rank.step - 1
            self.steps[at].then += done

    def meets(self, ranks: Sequence[Rank]) -> None:
        self.steps[ranks[0].step].meetings.append(self.node_of[ranks[0].number])


def order(
    schedule: Schedule, programs: list[list[Round]] | None = None
) -> Iterator[StepEvents]:
    """The steps of a schedule, until every rank has done its rounds.

    `programs` are the rounds of all ranks, where a caller has built them.
    """
    nodes = nodes_of(schedule.nodes or range(schedule.n))
    steps = _Steps({r: k for k, node in enumerate(nodes) for r in node.ranks})
    steps.early = set(range(schedule.n))
    where = schedule.nodes or range(schedule.n)
    rounds = programs or schedule.all_ranks()
    Matcher(rounds, steps, where, _takes_time).run()
    first = tuple(sorted(steps.first, key=lambda done: done[0]))
    for k in sorted(steps.steps):
        yield steps.steps[k].step(first)
        first = ()
    if first:
        yield StepEvents(first, (), (), (), ())
