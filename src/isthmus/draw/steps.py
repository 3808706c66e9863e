"""A schedule of all ranks in steps, with all data, for pictures.

`order` says what happens in a step; here it is done, on marks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..schedules.ir import Data, Library, Reduce, Round
from ..schedules.schedule import Schedule
from ..verify.marks import Memory, blank, combine
from ..verify.verify import memories
from . import order
from .order import Done, Sent, in_node
from .palette import nodes_of


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


class _Data:
    """What every rank and every node holds."""

    def __init__(self, schedule: Schedule, programs: list[list[Round]]) -> None:
        self.ranks = memories(programs, schedule.contract, schedule.nodes)
        nodes = nodes_of(schedule.nodes or range(schedule.n))
        self.shared = [self.ranks[node.ranks[0]]["node"] for node in nodes]

    def load(self, rank: int, spans: Data) -> np.ndarray:
        memory = self.ranks[rank]
        parts = [memory[s.buf][s.start : s.start + s.size] for s in spans]
        return np.concatenate(parts) if parts else blank(0)

    def store(self, rank: int, spans: Data, data: np.ndarray) -> None:
        for s in spans:
            self.ranks[rank][s.buf][s.start : s.start + s.size] = data[: s.size]
            data = data[s.size :]

    def message(self, m: Sent) -> Message:
        data = self.load(m.source, m.send.data)
        self.store(m.target, m.recv.data, data)
        ends = in_node(m.send.data), in_node(m.recv.data)
        return Message(m.source, m.target, data, *ends)

    def library(self, call: Library) -> tuple[int, int]:
        for i in range(call.n):
            block = (call.block(i),)
            for member in range(call.base, call.base + call.n):
                self.store(member, block, self.load(call.base + i, block))
        return call.base, call.n

    def work(self, done: tuple[Done, ...]) -> Iterator[Moved]:
        """Do local steps; those that have to do with the memory of the node."""
        for rank, s in done:
            data = self.load(rank, (s.src,))
            if in_node((s.src, s.dst)):
                yield Moved(rank, s.src.buf, s.dst.buf, data, isinstance(s, Reduce))
            if isinstance(s, Reduce):
                own = self.load(rank, (s.dst,))
                combine(data, own)
                data = own
            self.store(rank, (s.dst,), data)

    def step(self, found: order.Step) -> Step:
        """Do what a step does."""
        before = tuple(self.work(found.first))
        messages = tuple(map(self.message, found.messages))
        library = tuple(map(self.library, found.library))
        moved = (*before, *self.work(found.then))
        held = tuple(map(_copied, self.ranks))
        shared = tuple(buf.copy() for buf in self.shared)
        return Step(messages, library, held, moved, found.meetings, shared)


def _copied(memory: Memory) -> Memory:
    """What is a rank's own, as it is now."""
    return {name: buf.copy() for name, buf in memory.items() if name != "node"}


def steps(schedule: Schedule) -> Iterator[Step]:
    """The steps of a schedule, until every rank has done its rounds."""
    programs = schedule.all_ranks()
    data = _Data(schedule, programs)
    yield from map(data.step, order.order(schedule, programs))
