"""Allreduce between two groups: everyone ends with the sum of the other group.

Each function says what rank r of the group `here` does; the other group, `there`, runs
the same function seen from its side. Everyone contributes "send", of m elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..schedules.ir import Index, Program
from ..schedules.layout import Shares, Side
from ..schedules.program import lay, shift
from ..schedules.registry import algorithm
from . import inter_reduce_scatter
from .allgatherv import ring
from .inter_reduce_scatter import across_cost, ordered_cost
from .inter_shares import Way, commutative, ordered as by_rank, sums_across
from .reduce_scatter import bruck_cost


def _in_shares(
    r: Index, here: Side, there: Side, m: int, way: Callable[[int], Way]
) -> Program:
    """Everyone gets a share of the other group's sum; then both groups collect."""
    ways = way(here.n), way(there.n)
    wanted = Shares(here.n, m), Shares(there.n, m)
    place = wanted[0][ways[0].number(r)][0]
    yield from sums_across(r, here, there, m, ways, wanted, place, numbered=True)
    yield from shift(ways[0].collect(here.n, r, wanted[0]), here.base)


def _ordered_cost(p: int, q: int, m: float, alpha: float, beta: float) -> float:
    return (
        max(ordered_cost(n, m, alpha, beta) for n in (p, q))
        + across_cost(p, q, m, alpha, beta)
        + bruck_cost(max(p, q), m, alpha, beta)
    )


@algorithm(
    "inter_allreduce",
    paper="Rabenseifner 2004, halving; Kang, Träff et al. 2019, the exchange",
    cost=_ordered_cost,
)
def ordered(r: Index, here: Side, there: Side, m: int) -> Program:
    """Reduce into shares inside each group, swap the shares, collect them.

    For any operator: 2 log2 p rounds and the exchange, or log p + p - 1 if p is not a
    power of two. For p = q nothing is sent that need not be.
    """
    return _in_shares(r, here, there, m, by_rank)


@algorithm(
    "inter_allreduce",
    paper="Träff 2024, on circulant graphs; Kang, Träff et al. 2019, the exchange",
    cost=lambda p, q, m, alpha, beta: (
        2 * bruck_cost(max(p, q), m, alpha, beta) + across_cost(p, q, m, alpha, beta)
    ),
    commutative=True,
)
def bruck(r: Index, here: Side, there: Side, m: int) -> Program:
    """The same in as few rounds for any group, combined in any order.

    2 ceil(log2 p) rounds and the exchange.
    """
    return _in_shares(r, here, there, m, commutative)


def _direct_cost(p: int, q: int, m: float, alpha: float, beta: float) -> float:
    """A share of everyone's vector in each round, then a ring of the shares."""
    n = max(p, q)
    return n * (alpha + m / min(p, q) * beta) + (n - 1) * (alpha + m / n * beta)


@algorithm("inter_allreduce", paper="folklore", cost=_direct_cost)
def direct(r: Index, here: Side, there: Side, m: int) -> Program:
    """Everyone sends each of the other group a share to combine, then both collect.

    2 max(p, q) - 1 rounds of a share, for any operator. For p = q nothing is sent that
    need not be, and nobody sends what it has just received; else ranks of the smaller
    group get more shares than they send. Room for two shares.
    """
    shares = Shares(here.n, m)
    sides = replace(here, blocks=shares), replace(there, blocks=Shares(there.n, m))
    own = {"recv": ("recv", shares.offset(r))}
    yield from lay(inter_reduce_scatter.direct(r, *sides), own)
    yield from shift(ring(here.n, r, shares), here.base)
