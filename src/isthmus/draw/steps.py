"""A schedule of all ranks in steps, with all data, for pictures.

`order` has the events of each step; here they are done, on marks.
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
from .order import Done, MatchedMessage, in_node
from .palette import nodes_of


@dataclass(frozen=True)
class MessagePicture:
    """Elements that moved from one rank to another, as their marks.

    `from_node` and `to_node` say whether they left from, and arrived in, node memory.
    """

    source: int
    target: int
    data: np.ndarray
    from_node: bool = False
    to_node: bool = False


@dataclass(frozen=True)
class Moved:
    """Elements that a rank copied or reduced into, out of or inside node memory."""

    rank: int
    src: str
    dst: str
    data: np.ndarray
    reduced: bool


@dataclass(frozen=True)
class StepPicture:
    """The messages of a step, and the memory of every rank after it.

    `library` are the groups whose library was called (first rank, size), `moved` the
    steps on node memory, `meetings` the nodes whose ranks met in the end, and `shared`
    the memory of each node.
    """

    messages: tuple[MessagePicture, ...]
    library: tuple[tuple[int, int], ...]
    memory: tuple[Memory, ...]
    moved: tuple[Moved, ...] = ()
    meetings: tuple[int, ...] = ()
    shared: tuple[np.ndarray, ...] = ()


class _Data:
    """The memory of every rank and every node."""

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

    def message(self, m: MatchedMessage) -> MessagePicture:
        data = self.load(m.source, m.send.data)
        self.store(m.target, m.recv.data, data)
        ends = in_node(m.send.data), in_node(m.recv.data)
        return MessagePicture(m.source, m.target, data, *ends)

    def library(self, call: Library) -> tuple[int, int]:
        for i in range(call.n):
            block = (call.block(i),)
            for member in range(call.base, call.base + call.n):
                self.store(member, block, self.load(call.base + i, block))
        return call.base, call.n

    def work(self, done: tuple[Done, ...]) -> Iterator[Moved]:
        """Do local steps, and yield those that touch node memory."""
        for rank, s in done:
            data = self.load(rank, (s.src,))
            if in_node((s.src, s.dst)):
                yield Moved(rank, s.src.buf, s.dst.buf, data, isinstance(s, Reduce))
            if isinstance(s, Reduce):
                own = self.load(rank, (s.dst,))
                combine(data, own)
                data = own
            self.store(rank, (s.dst,), data)

    def step(self, events: order.StepEvents) -> StepPicture:
        """Do the events of a step."""
        before = tuple(self.work(events.first))
        messages = tuple(map(self.message, events.messages))
        library = tuple(map(self.library, events.library))
        moved = (*before, *self.work(events.then))
        held = tuple(map(_copied, self.ranks))
        shared = tuple(buf.copy() for buf in self.shared)
        return StepPicture(messages, library, held, moved, events.meetings, shared)


def _copied(memory: Memory) -> Memory:
    """A copy of a rank's own buffers."""
    return {name: buf.copy() for name, buf in memory.items() if name != "node"}


def steps(schedule: Schedule) -> Iterator[StepPicture]:
    """The steps of a schedule, until every rank has done its rounds."""
    programs = schedule.all_ranks()
    data = _Data(schedule, programs)
    yield from map(data.step, order.order(schedule, programs))
