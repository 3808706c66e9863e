"""The machine where none is named, and machines with ranks on a schedule's nodes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from ..schedules.schedule import Model, Schedule
from .machine import AlphaBeta, Level, Machine, Memory

#: the machine where none is named: 2 µs and 12 GB/s
MACHINE = AlphaBeta(2e-6, 1 / 12e9)
#: the same between nodes, whose ranks share a port; for schedules that use node memory
INSIDE, MEMORY = (5e-7, 1 / 8e9), Memory(1 / 10e9, 1 / 100e9, 1e-6)


def nodes(made: Schedule) -> tuple[Hashable, ...]:
    """The nodes of a schedule that uses their memory, or that has several."""
    return made.nodes if made.node_memory or len(set(made.nodes)) > 1 else ()


def on_nodes(model: Model, where: tuple[Hashable, ...]) -> Model:
    """A machine with its ranks on these nodes: without any of its own, as fast between
    them, and inside as most are."""
    number = {node: k for k, node in enumerate(dict.fromkeys(where))}
    placement = tuple(number[node] for node in where)
    if not isinstance(model, Machine):
        return model
    if model.flat:
        levels = Level(len(where), *INSIDE), model.levels[-1]
        return replace(model, levels=levels, placement=placement, memory=MEMORY)
    return replace(model, placement=placement)


def placed(model: Model, made: Schedule) -> Model:
    """A machine with the ranks of a schedule where it says they are."""
    where = nodes(made)
    return on_nodes(model, where) if where else model
