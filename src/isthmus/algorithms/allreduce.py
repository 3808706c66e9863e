"""Allreduce inside a group: everyone ends with the sum of all in "recv".

Everyone contributes "send", of m elements.
"""

from __future__ import annotations

from ..schedules.ir import Copy, Index, Program, Recv, Round, Send, Span
from ..schedules.layout import Shares
from ..schedules.program import lay
from ..schedules.registry import algorithm
from .allgatherv import ring
from .inter_reduce_scatter import ordered_cost
from .parts import inter_shares
from .parts.folding import Folded, sums
from .parts.inter_shares import Scheme
from .reduce_scatter import bruck_cost, pairwise, pairwise_cost


def _in_shares(p: int, r: Index, m: int, scheme: Scheme) -> Program:
    """A reduce_scatter into nearly equal shares, then an allgather of the shares."""
    shares = Shares(p, m)
    own = {"recv": ("recv", shares.offset(scheme.number(r)))}
    yield from lay(scheme.scatter(p, r, shares), own)
    yield from scheme.collect(p, r, shares)


@algorithm(
    "allreduce",
    paper="Rabenseifner 2004",
    cost=lambda p, m, alpha, beta: (
        ordered_cost(p, m, alpha, beta) + bruck_cost(p, m, alpha, beta)
    ),
)
def ordered(p: int, r: Index, m: int) -> Program:
    """Halve the combined part down to a share, then double back to all.

    2 log2 p rounds, for any operator; log p + p - 1 if p is not a power of two.
    """
    return _in_shares(p, r, m, inter_shares.ordered(p))


@algorithm(
    "allreduce",
    paper="Träff 2024, on circulant graphs",
    cost=lambda p, m, alpha, beta: 2 * bruck_cost(p, m, alpha, beta),
    commutative=True,
)
def bruck(p: int, r: Index, m: int) -> Program:
    """Halve and double as `ordered`, in the fewest rounds for any group and order.

    2 ceil(log2 p) rounds; no element is sent in vain.
    """
    return _in_shares(p, r, m, inter_shares.commutative(p))


@algorithm(
    "allreduce",
    paper="folklore",
    cost=lambda p, m, alpha, beta: 2 * pairwise_cost(p, m, alpha, beta),
)
def direct(p: int, r: Index, m: int) -> Program:
    """Everyone sends each rank a share to combine, then a ring collects the shares.

    2 (p - 1) rounds of a share, for any operator. Scratch for two shares.
    """
    return _in_shares(p, r, m, Scheme(pairwise, ring, p + 1, lambda r: r))


def _doubling_cost(p: int, m: float, alpha: float, beta: float) -> float:
    """The time of whole vectors: a round for each bit, and two to fold the group."""
    folded = Folded(p)
    return (folded.bits + 2 * (folded.pairs > 0)) * (alpha + m * beta)


@algorithm("allreduce", paper="Thakur, Rabenseifner, Gropp 2005", cost=_doubling_cost)
def doubling(p: int, r: Index, m: int) -> Program:
    """Swap sums of whole vectors with the rank that differs in one bit, for every bit.

    log2 p rounds of all data, for any operator; two more if p is not a power of two.
    Scratch for two vectors.
    """
    sum_start = yield from sums(r, p, m)
    folded, result = Folded(p), Span("recv", 0, m)
    acts = folded.acts(r)
    yield Round(then=(Copy(Span("tmp", sum_start, m), result, acts),))
    below = (r < 2 * folded.pairs) & acts
    yield Round((Recv(r - 1, (result,), acts ^ True), Send(r + 1, (result,), below)))
