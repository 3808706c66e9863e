"""Bcast from a root to another group through the first leaf of the group.

The root is vertex 0 of p, the leaves are vertices 1 to p - 1.
"""

from __future__ import annotations

from collections.abc import Callable

from ...schedules.ir import Index, Program, Recv, Round, Send
from ...schedules.layout import Shares
from ...schedules.program import shift
from ...schedules.registry import algorithm
from .. import bcast
from ..parts.patterns import outer


def _by_leader(p: int, v: Index, m: int, local: Callable[..., Program]) -> Program:
    """The data to the first leaf, and on by a broadcast inside the group."""
    whole = Shares(1, m)[0]
    if outer(v):
        yield Round((Send(1, whole),))
    else:
        yield Round((Recv(0, whole, v == 1),))
        yield from shift(local(p - 1, v - 1, m, 0), 1)


def leader_cost(p: int, m: float, alpha: float, beta: float) -> float:
    """The time of one message, and of a tree of the leaves."""
    return alpha + m * beta + bcast.binomial_cost(p - 1, m, alpha, beta)


@algorithm("inter_bcast", paper="Silva, Silva 1999; MPICH", cost=leader_cost)
def leader(p: int, v: Index, m: int) -> Program:
    """The root sends all data to the first leaf, and a tree of leaves carries them on.

    1 + ceil(log2(p - 1)) rounds of all data.
    """
    return _by_leader(p, v, m, bcast.binomial)


def leader_ring_cost(p: int, m: float, alpha: float, beta: float) -> float:
    """The time for p - 1 a power of two: one message, and all data twice."""
    return alpha + m * beta + bcast.scatter_allgather_cost(p - 1, m, alpha, beta)


@algorithm("inter_bcast", paper="MPICH, for long messages", cost=leader_ring_cost)
def leader_ring(p: int, v: Index, m: int) -> Program:
    """The root sends all data to the first leaf, which scatters them to a ring.

    1 + ceil(log2(p - 1)) + p - 2 rounds; all data travel three times.
    """
    return _by_leader(p, v, m, bcast.scatter_allgather)
