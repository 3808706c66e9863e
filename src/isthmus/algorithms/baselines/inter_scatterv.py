"""Scatter(v) from a root to another group through the first leaf of the group.

The root is vertex 0 of p, and its block is empty; the leaves are vertices 1 to p - 1.
"""

from __future__ import annotations

from ...schedules.ir import Index, Program
from ...schedules.layout import Leaves
from ...schedules.program import backwards
from ...schedules.registry import algorithm
from ..inter_scatterv import INTER_SCATTERS
from . import inter_gatherv


@algorithm(
    *INTER_SCATTERS, paper="Open MPI", cost=inter_gatherv.leader_cost, own_counts=True
)
def leader(p: int, v: Index, blocks: Leaves) -> Program:
    """The root sends all to the first leaf, which sends every other leaf a block.

    Two rounds, the second of p - 2 messages at the first leaf; all but a block travels
    twice.
    """
    return backwards(inter_gatherv.leader(p, v, blocks))


@algorithm(
    *INTER_SCATTERS,
    paper="MPICH, for short blocks",
    cost=inter_gatherv.leader_tree_cost,
    own_counts=True,
)
def leader_tree(p: int, v: Index, blocks: Leaves) -> Program:
    """The root sends all to the first leaf, and blocks go down a tree of the leaves.

    1 + ceil(log2(p - 1)) rounds; all but a block leaves two processes.
    """
    return backwards(inter_gatherv.leader_tree(p, v, blocks))
