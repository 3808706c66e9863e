"""A schedule of all ranks in steps, with all data, for pictures.

`order` has the events of each step; this file applies the events to marks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..schedules.ir import Data, Library, Reduce, Round
from ..schedules.program import in_node
from ..schedules.schedule import Schedule
from ..verify.marks import Memory, blank, combine
from ..verify.verify import memories
from . import order
from .order import MatchedMessage, RankStep
from .palette import nodes_of


@dataclass(frozen=True)
class MessagePicture:
    """A message with its data, as marks.

    `from_node` and `to_node` say whether the data lay in node memory, before and after.
    """

    source: int
    target: int
    data: np.ndarray
    from_node: bool = False
    to_node: bool = False


@dataclass(frozen=True)
class NodeMemoryStep:
    """A copy or a reduction into, out of or inside node memory, with its data."""

    rank: int
    src: str
    dst: str
    data: np.ndarray
    is_reduction: bool


@dataclass(frozen=True)
class StepPicture:
    """The messages of a step, and the memory of every rank afterwards."""

    messages: tuple[MessagePicture, ...]
    #: the groups that called the MPI library: first rank, and number of ranks
    library: tuple[tuple[int, int], ...]
    memory: tuple[Memory, ...]
    node_steps: tuple[NodeMemoryStep, ...] = ()
    #: the nodes whose ranks met at the end
    meetings: tuple[int, ...] = ()
    #: the memory of each node
    shared: tuple[np.ndarray, ...] = ()


class _Memories:
    """The memory of every rank and every node, on which steps are replayed."""

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

    def work(self, rank_steps: tuple[RankStep, ...]) -> Iterator[NodeMemoryStep]:
        """Do local steps, and yield the steps on node memory."""
        for rank, s in rank_steps:
            data = self.load(rank, (s.src,))
            is_reduction = isinstance(s, Reduce)
            if in_node((s.src, s.dst)):
                ends = s.src.buf, s.dst.buf
                yield NodeMemoryStep(rank, *ends, data, is_reduction)
            if is_reduction:
                own = self.load(rank, (s.dst,))
                combine(data, own)
                data = own
            self.store(rank, (s.dst,), data)

    def step(self, events: order.StepEvents) -> StepPicture:
        """Do the events of a step, and copy the memory, since later steps change it."""
        first = tuple(self.work(events.first))
        messages = tuple(map(self.message, events.messages))
        library = tuple(map(self.library, events.library))
        node_steps = (*first, *self.work(events.then))
        return StepPicture(
            messages=messages,
            library=library,
            memory=tuple(map(_copied, self.ranks)),
            node_steps=node_steps,
            meetings=events.meetings,
            shared=tuple(buf.copy() for buf in self.shared),
        )


def _copied(memory: Memory) -> Memory:
    """A copy of a rank's own buffers."""
    return {name: buf.copy() for name, buf in memory.items() if name != "node"}


def steps(schedule: Schedule) -> Iterator[StepPicture]:
    """The steps of a schedule with data, up to the end of all ranks."""
    programs = schedule.all_ranks()
    memories_of_ranks = _Memories(schedule, programs)
    yield from map(memories_of_ranks.step, order.order(schedule, programs))
