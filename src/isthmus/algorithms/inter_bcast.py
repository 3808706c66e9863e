"""Bcast from a root to another group, of a buffer in "recv".

The root is vertex 0 of p, the leaves are vertices 1 to p - 1. With the root counted as
a rank of the group, an algorithm inside a group serves unchanged.
"""

from __future__ import annotations

from ..schedules.ir import Index, Program, Recv, Round, Send
from ..schedules.layout import Leaves, Shares
from ..schedules.program import shift
from ..schedules.registry import algorithm
from . import bcast
from .allgatherv import ring
from .parts.patterns import STARTUP_ELEMENTS, log2, outer, startup_in, turns_cost


@algorithm("inter_bcast", paper="Open MPI, nonblocking", cost=turns_cost)
def linear(p: int, v: Index, m: int) -> Program:
    """The root sends all data to every leaf.

    One round, of p - 1 messages at the root.
    """
    whole = Shares(1, m)[0]
    if outer(v):
        yield Round(tuple(Send(i, whole) for i in range(1, p)))
    else:
        yield Round((Recv(0, whole),))


@algorithm("inter_bcast", paper="folklore", cost=bcast.binomial_cost)
def binomial(p: int, v: Index, m: int) -> Program:
    """A tree with the root itself on top: every vertex that has all data sends them on.

    ceil(log2 p) rounds of all data: for short messages.
    """
    return bcast.binomial(p, v, m, 0)


def scatter_allgather_cost(p: int, m: float, alpha: float, beta: float) -> float:
    """The time of a tree with half of the data at each level, and of a ring."""
    q = p - 1
    return (log2(p) + q - 1) * alpha + (2 - 1 / q) * m * beta


@algorithm(
    "inter_bcast",
    paper="van de Geijn; Thakur, Rabenseifner, Gropp 2005",
    cost=scatter_allgather_cost,
)
def scatter_allgather(p: int, v: Index, m: int) -> Program:
    """The root scatters over the leaves, and a ring of the leaves collects the pieces.

    ceil(log2 p) + p - 2 rounds; all data travel twice.
    """
    pieces = Shares(p - 1, m)
    yield from bcast.scatter(p, v, Leaves(pieces))
    if not outer(v):
        yield from shift(ring(p - 1, v - 1, pieces), 1)


def links(p: int, m: int, startup: float = STARTUP_ELEMENTS) -> int:
    """The number of segments for which a chain is fastest."""
    return bcast.fastest(p - 2, m, startup)


def chain_cost(
    p: int,
    m: float,
    alpha: float,
    beta: float,
    n: int = 0,
    startup: float | None = None,
) -> float:
    """The time of a round for each segment, and p - 2 to fill the chain.

    The number of segments is `n`, or the best for `startup`, or else for alpha and
    beta.
    """
    n = n or links(p, int(m), startup or startup_in(alpha, beta))
    return (n + p - 2) * (alpha + m / n * beta)


@algorithm("inter_bcast", paper="folklore", cost=chain_cost)
def chain(
    p: int, v: Index, m: int, n: int = 0, startup: float = STARTUP_ELEMENTS
) -> Program:
    """Segments flow from the root down the chain of the leaves.

    n + p - 2 rounds of an n-th.
    """
    return bcast.chain(p, v, m, 0, n or links(p, m, startup))


@algorithm(
    "inter_bcast", paper="Träff 2025, circulant graphs", cost=bcast.circulant_cost
)
def circulant(
    p: int, v: Index, m: int, n: int = 0, startup: float = STARTUP_ELEMENTS
) -> Program:
    """In n parts on a circulant graph of the root and the leaves: in the fewest rounds.

    n - 1 + ceil(log2 p) rounds; every leaf receives every part once.
    """
    return bcast.circulant(p, v, m, 0, n, startup)
