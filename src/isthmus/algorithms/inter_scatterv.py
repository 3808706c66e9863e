"""Scatter(v) from a root to the leaves of another group: Gather(v) backwards.

The root is vertex 0 of p, and its block is empty. The blocks go from the root's "send"
to the "recv" of the leaves, vertices 1 to p - 1.
"""

from __future__ import annotations

from ..schedules.ir import Index, Program
from ..schedules.layout import Leaves
from ..schedules.program import backwards
from ..schedules.registry import algorithm
from . import inter_gatherv
from .parts.patterns import doubling_cost, turns_cost

INTER_SCATTERS = ("inter_scatter", "inter_scatterv")


@algorithm(*INTER_SCATTERS, paper="Silva, Silva 1999; MPICH", cost=turns_cost)
def linear(p: int, v: Index, blocks: Leaves) -> Program:
    """The root sends every leaf a block, all at once.

    A single round, of p - 1 messages at the root. A leaf knows no block but its own.
    """
    return backwards(inter_gatherv.linear(p, v, blocks))


@algorithm(*INTER_SCATTERS, paper="folklore", cost=doubling_cost, own_counts=True)
def binomial(p: int, v: Index, blocks: Leaves) -> Program:
    """A tree with the root itself on top: subtrees of leaves hand down their blocks.

    ceil(log2 p) rounds, and every byte leaves the root once. A leaf knows the blocks of
    its own subtree, and holds them in "tmp".
    """
    return backwards(inter_gatherv.binomial(p, v, blocks))


@algorithm(
    *INTER_SCATTERS, paper="isthmus", cost=inter_gatherv.mixed_cost, own_counts=True
)
def mixed(
    p: int, v: Index, blocks: Leaves, size: int = inter_gatherv.LARGE_BLOCK_BYTES
) -> Program:
    """Large blocks go straight to their leaves, small ones down a tree.

    One round for the large blocks, and ceil(log2 p); every byte leaves the root once. A
    leaf knows the small blocks of its own subtree, and holds them in "tmp".
    """
    return backwards(inter_gatherv.mixed(p, v, blocks, size))
