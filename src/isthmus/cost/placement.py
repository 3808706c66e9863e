"""The default machine, and machines with their ranks on a schedule's nodes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from ..schedules.schedule import Model, Schedule
from .machine import AlphaBeta, Level, Machine, Memory

#: the machine of commands that name none: 2 µs and 12 GB/s
MACHINE = AlphaBeta(2e-6, 1 / 12e9)
#: alpha and beta inside a node, and the node's memory, for machines without nodes
NODE_ALPHA_BETA = (5e-7, 1 / 8e9)
NODE_MEMORY = Memory(alone=1 / 10e9, together=1 / 100e9, meeting=1e-6)


def nodes(schedule: Schedule) -> tuple[Hashable, ...]:
    """The node of each rank, if the schedule has several or uses node memory."""
    uses_nodes = schedule.node_memory or len(set(schedule.nodes)) > 1
    return schedule.nodes if uses_nodes else ()


def on_nodes(machine: Machine, node_of_rank: Sequence[Hashable]) -> Machine:
    """A machine with its ranks on nodes.

    A machine without nodes keeps its speed between nodes, and gets usual costs inside
    nodes, since its description has none.
    """
    number = {node: k for k, node in enumerate(dict.fromkeys(node_of_rank))}
    placement = tuple(number[node] for node in node_of_rank)
    if machine.flat:
        levels = Level(len(node_of_rank), *NODE_ALPHA_BETA), machine.levels[-1]
        return replace(machine, levels=levels, placement=placement, memory=NODE_MEMORY)
    return replace(machine, placement=placement)


def placed(model: Model, schedule: Schedule) -> Model:
    """A machine with the ranks of a schedule on the schedule's nodes, if any."""
    node_of_rank = nodes(schedule)
    if not node_of_rank or not isinstance(model, Machine):
        return model
    return on_nodes(model, node_of_rank)
