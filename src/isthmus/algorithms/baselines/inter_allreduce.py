"""Allreduce between two groups through one process of each group.

Each function is the program of rank r of the local group, `here`.
"""

from __future__ import annotations

from ...schedules.ir import Index, Program, Span
from ...schedules.layout import Side
from ...schedules.program import pad, shift
from ...schedules.registry import algorithm
from .. import bcast
from ..parts.leaders import (
    halves_cost,
    halves_rounds,
    halves_sum,
    hand_over,
    tree_cost,
    tree_rounds,
    tree_sum,
)
from ..parts.patterns import log2


def _tree_sums(r: Index, here: Side, there: Side, m: int) -> Program:
    """The sums of both groups at their leaders, padded so that the leaders can swap."""
    program = shift(tree_sum(here.n, r, m), here.base)
    return pad(program, tree_rounds(max(here.n, there.n)))


@algorithm(
    "inter_allreduce",
    paper="Silva, Silva 1999",
    cost=lambda p, q, m, alpha, beta: (
        (log2(max(p, q)) + log2(p) + log2(q) + 2) * (alpha + m * beta)
    ),
)
def three_phase(r: Index, here: Side, there: Side, m: int) -> Program:
    """Sum up at the leaders; then one group broadcasts to the other, and back.

    The reductions overlap, the broadcasts do not: about 3 log p + 2 rounds of all data.
    """
    sent, received = (Span("tmp", 0, m),), (Span("recv", 0, m),)
    local = shift(bcast.binomial(here.n, r, m, 0), here.base)
    yield from _tree_sums(r, here, there, m)
    if here.base < there.base:
        yield hand_over(r, there, sent, None)
        # the local group pauses for the rounds of the remote group's broadcast
        yield from pad(iter(()), log2(there.n))
        yield hand_over(r, there, None, received)
        yield from local
    else:
        yield hand_over(r, there, None, received)
        yield from local
        yield hand_over(r, there, sent, None)


@algorithm(
    "inter_allreduce",
    paper="MPICH and Open MPI, for short vectors",
    cost=lambda p, q, m, alpha, beta: (2 * log2(max(p, q)) + 1) * (alpha + m * beta),
)
def leaders(r: Index, here: Side, there: Side, m: int) -> Program:
    """Sum up at the leaders, let the leaders swap, broadcast: all in trees.

    2 ceil(log2 p) + 1 rounds of all data.
    """
    yield from _tree_sums(r, here, there, m)
    yield hand_over(r, there, (Span("tmp", 0, m),), (Span("recv", 0, m),))
    yield from shift(bcast.binomial(here.n, r, m, 0), here.base)


def _leaders_long_cost(p: int, q: int, m: float, alpha: float, beta: float) -> float:
    """The time of the slower reduction in pieces, a swap, and a broadcast in pieces."""
    return (
        max(halves_cost(n, m, alpha, beta) for n in (p, q))
        + tree_cost(2, m, alpha, beta)
        + max(bcast.scatter_allgather_cost(n, m, alpha, beta) for n in (p, q))
    )


@algorithm(
    "inter_allreduce",
    paper="MPICH and Open MPI, for long vectors",
    cost=_leaders_long_cost,
)
def leaders_long(r: Index, here: Side, there: Side, m: int) -> Program:
    """Sum up at the leaders in pieces, let the leaders swap, broadcast in pieces.

    All data travel five times: twice to the leader, once across, twice from the leader.
    """
    program = shift(halves_sum(here.n, r, m), here.base)
    yield from pad(program, max(halves_rounds(n) for n in (here.n, there.n)))
    yield hand_over(r, there, (Span("tmp", 0, m),), (Span("recv", 0, m),))
    yield from shift(bcast.scatter_allgather(here.n, r, m, 0), here.base)
