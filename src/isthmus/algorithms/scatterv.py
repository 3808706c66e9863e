"""Scatterv inside a group: Gatherv backwards, from the root's "send" to "recv"."""

from __future__ import annotations

from ..schedules.ir import Index, Program
from ..schedules.layout import Blocks
from ..schedules.program import backwards
from ..schedules.registry import algorithm
from . import gatherv
from .parts.patterns import doubling_cost, turns_cost


@algorithm("scatterv", paper="MPICH; Open MPI", cost=turns_cost)
def linear(p: int, r: Index, blocks: Blocks, root: int) -> Program:
    """The root sends everyone a block, all at once.

    A single round, of p - 1 messages at the root. A rank knows no block but its own.
    """
    return backwards(gatherv.linear(p, r, blocks, root))


@algorithm("scatterv", paper="folklore", cost=doubling_cost, own_counts=True)
def binomial(p: int, r: Index, blocks: Blocks, root: int) -> Program:
    """Subtrees hand down their blocks in a binomial tree that begins at the root.

    ceil(log2 p) rounds, and every byte leaves the root once. A rank knows the blocks of
    its own subtree, and holds them in "tmp".
    """
    return backwards(gatherv.binomial(p, r, blocks, root))
