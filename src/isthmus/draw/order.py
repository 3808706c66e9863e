"""The steps of a schedule: what ranks do at once, as far as messages let them.

In a step every message moves of which both ends are in their round, so that a picture
of it has both ends of all its messages; then the ranks do their local steps, and those
of a node meet. A round without messages takes a step of its own only if it uses the
memory of a node, or meets. No data are needed for that: `steps` adds them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..schedules.ir import Comm, Data, Library, Local, Pieces, Recv, Round, Send
from ..schedules.program import data_of
from ..schedules.schedule import Schedule
from ..verify.errors import Deadlock
from .palette import Node, nodes_of

#: a local step, and the rank that does it
Done = tuple[int, Local]


@dataclass(frozen=True)
class Sent:
    """Both ends of a message."""

    source: int
    target: int
    send: Send
    recv: Recv


@dataclass(frozen=True)
class Step:
    """What happens in a step, in this order: local steps before the first message of a
    schedule, messages, calls of the MPI library, local steps, and the meetings of the
    nodes of these numbers."""

    first: tuple[Done, ...]
    messages: tuple[Sent, ...]
    library: tuple[Library, ...]
    then: tuple[Done, ...]
    meetings: tuple[int, ...]


def in_node(data: Data) -> bool:
    """Whether some of the data lie in the memory of a node."""
    if isinstance(data, Pieces):
        return data.buf == "node"
    return any(s.buf == "node" for s in data)


def _takes_time(r: Round) -> bool:
    """Whether a round takes a step: it has messages, uses the memory of a node, or
    meets."""
    return bool(r.comm) or r.meet or any(map(in_node, data_of(r)))


class _Rank:
    """A rank's rounds, and what of its round is still in flight."""

    def __init__(self, number: int, rounds: list[Round]) -> None:
        self.number, self.rounds = number, deque(rounds)
        #: the round that it is in, or none
        self.round: Round | None = None
        self.open: list[Comm] = []
        #: whether it waits for the others of its node
        self.waits = False

    def enter(self) -> list[Comm]:
        """Take the next round, if it is in none."""
        if self.round is not None or self.waits:
            return []
        self.round = self.rounds.popleft() if self.rounds else None
        self.open = list(self.round.comm) if self.round else []
        return self.open

    def leave(self) -> Iterator[Done]:
        """End the round; the local steps of it, and of those that follow and take no
        time."""
        assert self.round is not None
        yield from self.work(self.round)
        self.waits, self.round = self.round.meet, None
        if not self.waits:
            yield from self.skip()

    def skip(self) -> Iterator[Done]:
        """The local steps of the rounds that follow and take no time."""
        while self.rounds and not _takes_time(self.rounds[0]):
            yield from self.work(self.rounds.popleft())

    def work(self, r: Round) -> Iterator[Done]:
        """The local steps of a round."""
        return ((self.number, s) for s in r.then)


@dataclass
class _Meeting:
    """The ranks of a node, and those that have come to its next meeting."""

    node: Node
    come: list[_Rank] = field(default_factory=list)

    def end(self) -> list[_Rank]:
        """Let everyone go on, if all have come."""
        if len(self.come) < len(self.node.ranks):
            return []
        everyone, self.come = self.come, []
        for rank in everyone:
            rank.waits = False
        return everyone


class _Machine:
    """All ranks, and the ends of messages that wait for their other end."""

    def __init__(self, schedule: Schedule, programs: list[list[Round]]) -> None:
        self.ranks = [_Rank(r, rounds) for r, rounds in enumerate(programs)]
        nodes = nodes_of(schedule.nodes or range(schedule.n))
        self.meetings = [_Meeting(node) for node in nodes]
        self.where = {r: k for k, node in enumerate(nodes) for r in node.ranks}
        self.sends: dict[tuple[int, int], deque[Send]] = defaultdict(deque)
        self.recvs: dict[tuple[int, int], deque[Recv]] = defaultdict(deque)
        self.halls: dict[tuple[int, int], list[Library]] = defaultdict(list)

    def begin(self) -> tuple[Done, ...]:
        """The local steps before all messages."""
        return tuple(x for rank in self.ranks for x in rank.skip())

    def enter(self) -> bool:
        """Let every rank that is free take its next round; whether any is at work."""
        for number, rank in enumerate(self.ranks):
            for c in rank.enter():
                if isinstance(c, Send):
                    self.sends[number, c.to].append(c)
                elif isinstance(c, Recv):
                    self.recvs[c.frm, number].append(c)
                else:
                    self.halls[c.base, c.n].append(c)
        return any(rank.round or rank.waits for rank in self.ranks)

    def messages(self) -> Iterator[Sent]:
        """Move every message that has both its ends."""
        for (source, target), sends in self.sends.items():
            recvs = self.recvs[source, target]
            while sends and recvs:
                found = Sent(source, target, sends.popleft(), recvs.popleft())
                _drop(self.ranks[source].open, found.send)
                _drop(self.ranks[target].open, found.recv)
                yield found

    def library(self) -> Iterator[Library]:
        """Call the library in every group that has come as a whole."""
        for (base, n), calls in self.halls.items():
            if len(calls) < n:
                continue
            for member, call in zip(self.ranks[base : base + n], calls, strict=True):
                _drop(member.open, call)
            yield calls[0]
            calls.clear()

    def step(self, first: tuple[Done, ...]) -> Step:
        """One step of all ranks."""
        messages, library = tuple(self.messages()), tuple(self.library())
        ready = [x for x in self.ranks if x.round is not None and not x.open]
        then = [x for rank in ready for x in rank.leave()]
        for rank in ready:
            if rank.waits:
                self.meetings[self.where[rank.number]].come.append(rank)
        met = []
        for k, meeting in enumerate(self.meetings):
            if everyone := meeting.end():
                met.append(k)
                then += [x for rank in everyone for x in rank.skip()]
        if not (messages or library or ready):
            raise Deadlock("ranks wait for each other for ever")
        return Step(first, messages, library, tuple(then), tuple(met))


def _drop(open_: list[Comm], c: Comm) -> None:
    """Take away this very end, or the only call of the library."""
    same = (
        x is c or (isinstance(x, Library) and isinstance(c, Library)) for x in open_
    )
    del open_[next(i for i, is_it in enumerate(same) if is_it)]


def order(
    schedule: Schedule, programs: list[list[Round]] | None = None
) -> Iterator[Step]:
    """The steps of a schedule, until every rank has done its rounds; `programs` are
    those of all ranks, where they are at hand."""
    machine = _Machine(schedule, programs or schedule.all_ranks())
    first = machine.begin()
    while machine.enter():
        yield machine.step(first)
        first = ()
    if first:
        yield Step(first, (), (), (), ())
