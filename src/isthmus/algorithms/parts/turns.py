"""Exchanges between two groups in turns, and in pieces, so that all stay in step.

In each turn a rank has one partner at the most, with which it swaps: one group goes up
from its own number and the other down, so that partners meet.

Over TCP a message leaves as soon as it is sent, whether or not its receiver has done
with its last partner. It takes from the rate of the one that is waited for, and queues
before the answers of the other direction. So in a paced exchange two partners swap
pieces, and the next one goes when the other's has come.
"""

from __future__ import annotations

from math import ceil

from ...schedules.ir import Index, Span, Spans
from ...schedules.layout import Blocks, Side, clip, pick
from .patterns import STARTUP_ELEMENTS, startup_in

#: the time of a piece, in start-ups
PIECE_STARTUPS = 32
#: the longest start-up, in bytes that pass meanwhile: longer pieces would queue
MAX_STARTUP_BYTES = 1 << 12


def _way(here: Side, there: Side) -> int:
    """The direction in which a group meets the other: up (1) or down (-1)."""
    return 1 if here.base < there.base else -1


def partners(r: Index, here: Side, there: Side) -> list[Index]:
    """The partner of rank r in each of max(p, q) turns; a number past q is nobody."""
    most, way = max(here.n, there.n), _way(here, there)
    return [(r + way * t) % most for t in range(most)]


def first_partner(r: Index, here: Side, there: Side) -> Index:
    """The first of the other group that rank r meets."""
    return pick(r < there.n, r, 0 if _way(here, there) > 0 else there.n - 1)


def all_partners(r: Index, here: Side, there: Side) -> list[Index]:
    """All ranks of the other group in the order in which rank r meets them."""
    first, way = first_partner(r, here, there), _way(here, there)
    return [(first + way * t) % there.n for t in range(there.n)]


def piece_size(startup: float = STARTUP_ELEMENTS) -> int:
    """The elements of a piece, if `startup` of them pass in the time of a start-up."""
    return max(round(PIECE_STARTUPS * startup), 1)


def piece(blocks: Blocks, j: Index, start: int, most: int) -> Spans:
    """Elements of block j from `start` on, `most` at the most."""
    size = clip(blocks.size(j) - start, 0, most)
    return (Span(blocks.buf, blocks.offset(j) + start, size),)


def paced_cost(
    p: int,
    q: int,
    k: float,
    alpha: float,
    beta: float,
    startup: float | None = None,
) -> float:
    """The time of max(p, q) turns of k elements, in pieces that fit a start-up."""
    most = piece_size(startup or min(startup_in(alpha, beta), max(k, 1.0)))
    return max(p, q) * (max(ceil(k / most), 1) * alpha + k * beta)
