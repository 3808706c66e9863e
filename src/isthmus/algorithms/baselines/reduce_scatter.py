"""Reduce_scatter inside a group through rank 0."""

from __future__ import annotations

from ...schedules.ir import (
    Index,
    Program,
)
from ...schedules.layout import GroupBlocks, Side
from ...schedules.program import pad
from ...schedules.registry import algorithm
from ..parts.leaders import scatter, tree_cost, tree_rounds, tree_sum
from ..reduce_scatter import pairwise_cost


@algorithm(
    "reduce_scatter",
    paper="MPICH 1",
    cost=lambda p, m, alpha, beta: (
        tree_cost(p, m, alpha, beta) + pairwise_cost(p, m, alpha, beta)
    ),
)
def leader(p: int, r: Index, blocks: GroupBlocks) -> Program:
    """A tree sums up at rank 0, which sends everyone a block.

    As libraries did in 1999: ceil(log2 p) rounds of all data, then p - 1 messages of
    rank 0 in turn.
    """
    yield from pad(tree_sum(p, r, blocks.total), tree_rounds(p))
    yield scatter(r, Side(0, blocks), blocks.within("tmp"))
