"""Both groups reduce their vectors into shares and swap the shares.

Reduce_scatter and Allreduce between groups are made of this exchange. Shares are
reduced inside their own group first, because then every element crosses between the
groups once.
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
    """How a group reduces its vectors into shares and collects shares."""

    scatter: Callable[[int, Index, Blocks], Program]
    collect: Stage
    #: rounds of `scatter`, local rounds too
    rounds: int
    #: the share of a rank; its own inverse, and so the rank of a share too
    number: Callable[[Index], Index]


def ordered(n: int) -> Scheme:
    """The scheme for any operator: halving, or pairwise if n is not a power of two."""
    if is_power(n):
        return Scheme(halving, doubling, log2(n) + 1, lambda r: reverse(r, n))
    return Scheme(reduce_scatter.pairwise, allgatherv.bruck, n + 1, lambda r: r)


def commutative(n: int) -> Scheme:
    """The scheme for operators that commute, in ceil(log2 n) rounds for any n."""
    return Scheme(reduce_scatter.bruck, allgatherv.bruck, log2(n) + 2, lambda r: r)


def sums_across(
    r: Index,
    here: Side,
    there: Side,
    total: int,
    schemes: tuple[Scheme, Scheme],
    wanted: tuple[Blocks, Blocks],
    at: Span,
    numbered: bool = False,
) -> Program:
    """Rank r ends with its block of the remote group's sum at `at`.

    `schemes` and `wanted` are the local group's and the remote group's. Blocks are
    wanted in the order of ranks; if `numbered`, in the order of the shares.
    """
    (local_scheme, remote_scheme), shares = schemes, Shares(here.n, total)
    scratch = {"recv": ("tmp", 0), "tmp": ("tmp", shares.size(0))}
    reduced = shift(lay(local_scheme.scatter(here.n, r, shares), scratch), here.base)
    yield from pad(reduced, max(local_scheme.rounds, remote_scheme.rounds))

    def owner(i: Index) -> Index:
        return there.base + remote_scheme.number(i)

    def taker(i: Index) -> Index:
        return owner(i) if numbered else there.base + i

    own, block = local_scheme.number(r), local_scheme.number(r) if numbered else r
    held = Shares(there.n, total)
    yield Round(
        (
            *receives(block, held, wanted[0], owner, at),
            *sends(own, shares, wanted[1], taker, Span("tmp", 0, 0)),
        )
    )
