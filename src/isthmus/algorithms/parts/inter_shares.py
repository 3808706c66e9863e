"""Both groups reduce their vectors into shares and hand these to each other.

What Reduce_scatter and Allreduce between groups have in common. A share is reduced
inside its own group, so that it crosses once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...schedules.ir import Index, Program, Round, Span
from ...schedules.layout import Blocks, Shares, Side
from ...schedules.program import lay, pad, shift
from ...schedules.registry import Stage
from .. import allgatherv, reduce_scatter
from .block_overlap import receives, sends
from .halving import doubling, halving, reverse
from .patterns import is_power, log2


@dataclass(frozen=True)
class Scheme:
    """The ways in which a group reduces its vectors into shares and collects them."""

    scatter: Callable[[int, Index, Blocks], Program]
    collect: Stage
    #: rounds of the first, with its local ones
    rounds: int
    #: the share that a rank has, and the rank that has a share
    number: Callable[[Index], Index]


def ordered(n: int) -> Scheme:
    """For any operator: by halving, or pairwise if n is not a power of two."""
    if is_power(n):
        return Scheme(halving, doubling, log2(n) + 1, lambda r: reverse(r, n))
    return Scheme(reduce_scatter.pairwise, allgatherv.bruck, n + 1, lambda r: r)


def commutative(n: int) -> Scheme:
    """For operators that commute, in ceil(log2 n) rounds whatever n is."""
    return Scheme(reduce_scatter.bruck, allgatherv.bruck, log2(n) + 2, lambda r: r)


def sums_across(
    r: Index,
    here: Side,
    there: Side,
    total: int,
    ways: tuple[Scheme, Scheme],
    wanted: tuple[Blocks, Blocks],
    at: Span,
    numbered: bool = False,
) -> Program:
    """Rank r ends with its block of the other group's sum at `at`.

    `ways` and `wanted` are the own group's and the other's. Blocks are wanted in the
    order of ranks; if `numbered`, in that of the shares.
    """
    (mine, theirs), shares = ways, Shares(here.n, total)
    where = {"recv": ("tmp", 0), "tmp": ("tmp", shares.size(0))}
    reduced = shift(lay(mine.scatter(here.n, r, shares), where), here.base)
    yield from pad(reduced, max(mine.rounds, theirs.rounds))

    def owner(i: Index) -> Index:
        return there.base + theirs.number(i)

    def taker(i: Index) -> Index:
        return owner(i) if numbered else there.base + i

    own, block = mine.number(r), mine.number(r) if numbered else r
    held = Shares(there.n, total)
    yield Round(
        (
            *receives(block, held, wanted[0], owner, at),
            *sends(own, shares, wanted[1], taker, Span("tmp", 0, 0)),
        )
    )
