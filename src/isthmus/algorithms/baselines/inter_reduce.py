"""Reduce to a root outside the group through the first leaf of the group.

The root is vertex 0 of p and contributes nothing; the leaves are vertices 1 to p - 1.
"""

from __future__ import annotations

from ...schedules.ir import Index, Program, Recv, Round, Send, Span
from ...schedules.program import pad, shift
from ...schedules.registry import algorithm
from .. import reduce
from ..parts import leaders
from ..parts.patterns import log2, outer
from .inter_bcast import leader_cost


def _from_leader(m: int, rounds: int) -> Program:
    """The root's rounds: a number without messages, and the first leaf's message."""
    yield from pad(iter(()), rounds)
    yield Round((Recv(1, (Span("recv", 0, m),)),))


@algorithm("inter_reduce", paper="Silva, Silva 1999; MPICH", cost=leader_cost)
def leader(p: int, v: Index, m: int) -> Program:
    """Results go up a tree of the leaves, and the first leaf sends all to the root.

    1 + ceil(log2(p - 1)) rounds of all data, in rank order. Scratch for two messages.
    """
    if outer(v):
        return _from_leader(m, log2(p - 1))
    return shift(reduce.ordered(p - 1, v - 1, m, root=-1), 1)


def leader_halving_cost(p: int, m: float, alpha: float, beta: float) -> float:
    """The time to halve and gather at the first leaf, and of one message."""
    return alpha + m * beta + leaders.halves_cost(p - 1, m, alpha, beta)


@algorithm(
    "inter_reduce",
    paper="Rabenseifner 2004; MPICH, for long messages",
    cost=leader_halving_cost,
)
def leader_halving(p: int, v: Index, m: int) -> Program:
    """The leaves halve what they combine; the first leaf gathers and sends the sum.

    1 + 2 log2(p - 1) rounds, for p - 1 a power of two; all data travel three times, in
    rank order. Scratch as for `leaders.halves`.
    """
    if outer(v):
        yield from _from_leader(m, leaders.halves_rounds(p - 1))
    else:
        yield from shift(leaders.halves_sum(p - 1, v - 1, m), 1)
        yield Round((Send(0, (Span("tmp", 0, m),), v == 1),))
