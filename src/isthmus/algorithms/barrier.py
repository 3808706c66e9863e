"""Barrier inside a group: messages without data."""

from __future__ import annotations

from ..schedules.ir import Index, Program
from ..schedules.registry import algorithm
from .inter_barrier import circle
from .parts.patterns import log2


@algorithm(
    "barrier",
    paper="Hensgen, Finkel, Manber 1988",
    cost=lambda p, alpha, beta: log2(p) * alpha,
)
def dissemination(p: int, r: Index) -> Program:
    """Tell the rank 1, 2, 4, … further on, in a circle.

    ceil(log2 p) rounds.
    """
    return circle(p, r)
