"""A schedule of all ranks in steps, for pictures.

A step is what ranks do at once: every message moves of which both ends are in their
round, so that a column of a picture has both ends of all its messages; then the ranks
do their local steps, and those of a node meet. A round without messages takes a step of
its own only if it uses the memory of a node, or meets.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ..errors import Deadlock
from ..ir import Comm, Data, Library, Local, Pieces, Recv, Reduce, Round, Send
from ..marks import Memory, blank, combine
from ..program import data_of, extent
from ..schedules import Schedule
from .palette import Node, nodes_of


@dataclass(frozen=True)
class Message:
    """Elements that moved from one rank to another, as their marks; and whether they
    left from the memory of a node, and arrived in it."""

    source: int
    target: int
    data: np.ndarray
    from_node: bool = False
    to_node: bool = False


@dataclass(frozen=True)
class Moved:
    """Elements that a rank copied or reduced into the memory of its node, or out of it,
    or inside it, as their marks."""

    rank: int
    src: str
    dst: str
    data: np.ndarray
    reduced: bool


@dataclass(frozen=True)
class Step:
    """The messages of a step, the groups whose library was called (first rank, size),
    and what every rank holds after it; what ranks did with the memory of their nodes,
    the nodes whose ranks met in the end, and what each node holds."""

    messages: tuple[Message, ...]
    library: tuple[tuple[int, int], ...]
    memory: tuple[Memory, ...]
    moved: tuple[Moved, ...] = ()
    meetings: tuple[int, ...] = ()
    shared: tuple[np.ndarray, ...] = ()


@dataclass
class _Meeting:
    """The ranks of a node, and those that have come to its next meeting."""

    node: Node
    come: list[_Rank] = field(default_factory=list)

    def end(self) -> bool:
        """Let everyone go on, if all have come."""
        if len(self.come) < len(self.node.ranks):
            return False
        for rank in self.come:
            rank.waits = False
        self.come.clear()
        return True


def _in_node(data: Data) -> bool:
    if isinstance(data, Pieces):
        return data.buf == "node"
    return any(s.buf == "node" for s in data)


def _takes_time(r: Round) -> bool:
    """Whether a round takes a step: it has messages, uses the memory of a node, or
    meets."""
    return bool(r.comm) or r.meet or any(map(_in_node, data_of(r)))


class _Rank:
    """A rank's rounds, its memory, and what of its round is still in flight."""

    def __init__(self, number: int, rounds: list[Round], memory: Memory) -> None:
        self.number, self.memory = number, memory
        self.rounds = deque(rounds)
        #: the round that it is in, or none
        self.round: Round | None = None
        self.open: list[Comm] = []
        #: whether it waits for the others of its node
        self.waits = False

    def load(self, spans: Data) -> np.ndarray:
        parts = [self.memory[s.buf][s.start : s.start + s.size] for s in spans]
        return np.concatenate(parts) if parts else blank(0)

    def store(self, spans: Data, data: np.ndarray) -> None:
        for s in spans:
            self.memory[s.buf][s.start : s.start + s.size] = data[: s.size]
            data = data[s.size :]

    def enter(self) -> list[Comm]:
        """Take the next round that takes time."""
        if self.round is not None or self.waits:
            return []
        self.skip()
        self.round = self.rounds.popleft() if self.rounds else None
        self.open = list(self.round.comm) if self.round else []
        return self.open

    def leave(self) -> Iterator[Moved]:
        """Do the local steps once nothing is in flight, and the rounds that follow and
        take no time."""
        if self.round is None or self.open:
            return
        yield from self.work(self.round.then)
        self.waits, self.round = self.round.meet, None
        if not self.waits:
            self.skip()

    def skip(self) -> None:
        """Do the rounds that take no time."""
        while self.rounds and not _takes_time(self.rounds[0]):
            for _ in self.work(self.rounds.popleft().then):
                pass

    def work(self, steps: tuple[Local, ...]) -> Iterator[Moved]:
        """Do local steps; those that have to do with the memory of the node."""
        for s in steps:
            data = self.load((s.src,))
            if _in_node((s.src, s.dst)):
                reduced = isinstance(s, Reduce)
                yield Moved(self.number, s.src.buf, s.dst.buf, data, reduced)
            if isinstance(s, Reduce):
                own = self.load((s.dst,))
                combine(data, own)
                data = own
            self.store((s.dst,), data)


class _Machine:
    """All ranks, and the ends of messages that wait for their other end."""

    def __init__(self, schedule: Schedule) -> None:
        contract, programs = schedule.contract, schedule.all_ranks()
        self.ranks: list[_Rank] = []
        self.meetings: list[_Meeting] = []
        self.shared: list[np.ndarray] = []
        where: dict[int, int] = {}
        for k, node in enumerate(nodes_of(schedule.nodes or range(schedule.n))):
            room = max(extent(programs[r], "node") for r in node.ranks)
            self.shared.append(blank(room, contract.mark))
            self.meetings.append(_Meeting(node))
            where |= dict.fromkeys(node.ranks, k)
        for r, rounds in enumerate(programs):
            memory = _copied(contract.before(r))
            memory["tmp"] = blank(extent(rounds, "tmp"), contract.mark)
            self.ranks.append(
                _Rank(r, rounds, memory | {"node": self.shared[where[r]]})
            )
        self.where = where
        self.sends: dict[tuple[int, int], deque[Send]] = defaultdict(deque)
        self.recvs: dict[tuple[int, int], deque[Recv]] = defaultdict(deque)
        self.halls: dict[tuple[int, int], list[Library]] = defaultdict(list)

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

    def messages(self) -> Iterator[Message]:
        """Move every message that has both its ends."""
        for (source, target), sends in self.sends.items():
            recvs = self.recvs[source, target]
            while sends and recvs:
                send, recv = sends.popleft(), recvs.popleft()
                data = self.ranks[source].load(send.data)
                self.ranks[target].store(recv.data, data)
                _drop(self.ranks[source].open, send)
                _drop(self.ranks[target].open, recv)
                ends = _in_node(send.data), _in_node(recv.data)
                yield Message(source, target, data, *ends)

    def library(self) -> Iterator[tuple[int, int]]:
        """Do the library's allgather in every group that has come as a whole."""
        for (base, n), calls in self.halls.items():
            if len(calls) < n:
                continue
            members = self.ranks[base : base + n]
            for i, owner in enumerate(members):
                block = (calls[0].block(i),)
                for member in members:
                    member.store(block, owner.load(block))
            for member, call in zip(members, calls, strict=True):
                _drop(member.open, call)
            calls.clear()
            yield base, n

    def step(self) -> Step:
        """One step of all ranks."""
        messages, library = tuple(self.messages()), tuple(self.library())
        ready = [x for x in self.ranks if x.round is not None and not x.open]
        moved = tuple(x for rank in ready for x in rank.leave())
        for rank in ready:
            if rank.waits:
                self.meetings[self.where[rank.number]].come.append(rank)
        meetings = tuple(k for k, x in enumerate(self.meetings) if x.end())
        if not (messages or library or ready):
            raise Deadlock("ranks wait for each other for ever")
        held = tuple(_copied(r.memory) for r in self.ranks)
        shared = tuple(buf.copy() for buf in self.shared)
        return Step(messages, library, held, moved, meetings, shared)


def _copied(memory: Memory) -> Memory:
    """What is a rank's own, as it is now."""
    return {name: buf.copy() for name, buf in memory.items() if name != "node"}


def _drop(open_: list[Comm], c: Comm) -> None:
    """Take away this very end, or the only call of the library."""
    same = (
        x is c or (isinstance(x, Library) and isinstance(c, Library)) for x in open_
    )
    del open_[next(i for i, is_it in enumerate(same) if is_it)]


def steps(schedule: Schedule) -> Iterator[Step]:
    """The steps of a schedule, until every rank has done its rounds."""
    machine = _Machine(schedule)
    while machine.enter():
        yield machine.step()
