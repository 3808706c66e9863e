"""Gather(v) to a root outside the group through the first leaf of the group.

The root is vertex 0 of p, and its block is empty; the leaves are vertices 1 to p - 1.
"""

from __future__ import annotations

from collections.abc import Callable

from ...schedules.ir import Index, Program, Recv, Round, Send, Span
from ...schedules.layout import Leaves, Side
from ...schedules.program import pad
from ...schedules.registry import algorithm
from ..inter_gatherv import (
    INTER_GATHERS,
)
from ..parts import gather
from ..parts.patterns import doubling_cost, log2, outer


def _by_leader(
    v: Index, blocks: Leaves, local: Callable[..., Program], rounds: int
) -> Program:
    """Gather at the first leaf in a number of rounds, and send all on to the root."""
    if outer(v):
        yield from pad(iter(()), rounds)
        yield Round((Recv(1, blocks.range(0, blocks.n)),))
    else:
        yield from local(v - 1, Side(1, blocks.group))
        yield Round((Send(0, (Span("tmp", 0, blocks.total),), v == 1),))


def leader_cost(p: int, k: float, alpha: float, beta: float) -> float:
    """The time of all messages in turn at the first leaf, and of all data again."""
    return (p - 1) * alpha + (2 * p - 3) * k * beta


@algorithm(*INTER_GATHERS, paper="Open MPI", cost=leader_cost, own_counts=True)
def leader(p: int, v: Index, blocks: Leaves) -> Program:
    """Every leaf sends a block to the first leaf, which sends all to the root.

    Two rounds, the first of p - 2 messages at the first leaf; all but a block travels
    twice.
    """
    return _by_leader(v, blocks, gather.linear, 2)


def leader_tree_cost(p: int, k: float, alpha: float, beta: float) -> float:
    """The time of a tree of the leaves, and of all data again."""
    return doubling_cost(p - 1, k, alpha, beta) + alpha + (p - 1) * k * beta


@algorithm(
    *INTER_GATHERS,
    paper="MPICH, for short blocks",
    cost=leader_tree_cost,
    own_counts=True,
)
def leader_tree(p: int, v: Index, blocks: Leaves) -> Program:
    """Blocks go up a tree of the leaves, and the first leaf sends all to the root.

    1 + ceil(log2(p - 1)) rounds; all but a block comes to two processes.
    """
    return _by_leader(v, blocks, gather.binomial, 1 + log2(p - 1))
