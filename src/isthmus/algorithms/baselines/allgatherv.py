"""Allgatherv inside a group through rank 0, and by the MPI library's own call."""

from __future__ import annotations

import numpy as np

from ...schedules.ir import Index, Library, Program, Recv, Round, Send
from ...schedules.layout import Blocks
from ...schedules.registry import algorithm
from ..parts.patterns import doubling_cost, log2, tree


def _gather_bcast_cost(p: int, k: float, alpha: float, beta: float) -> float:
    """The time of all messages in turn at rank 0, and of all data in a tree."""
    return (p - 1) * (alpha + k * beta) + log2(p) * (alpha + p * k * beta)


@algorithm("allgatherv", paper="Open MPI, for short blocks", cost=_gather_bcast_cost)
def gather_bcast(p: int, r: Index, blocks: Blocks) -> Program:
    """Everyone sends a block to rank 0, and all blocks come back down a tree.

    1 + ceil(log2 p) rounds, the first of p - 1 messages at rank 0; each level of the
    binomial tree carries everything.
    """
    root, whole = r == 0, blocks.range(0, p)
    receives = (Recv(i, blocks[i], root) for i in range(1, p))
    yield Round((*receives, Send(0, blocks[r], r > 0)))
    for step, below, above in reversed(list(tree(p, r))):
        yield Round((Recv(r - step, whole, below), Send(r + step, whole, above)))


@algorithm("allgatherv", paper="the MPI library", cost=doubling_cost)
def library(p: int, r: Index, blocks: Blocks) -> Program:
    """Call the MPI library's own Allgatherv inside the group."""
    if p > 1:
        offsets = np.asarray(blocks.offset(np.arange(p + 1))).tolist()
        yield Round((Library(0, blocks.buf, tuple(offsets)),))
