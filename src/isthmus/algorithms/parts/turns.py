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
from .patterns import STARTUP, startup_in

#: a piece takes so many times as long as a start-up
LONG = 32
#: bytes: no longer start-up than that, or pieces get so long that they queue
SHORT = 1 << 12


def _way(here: Side, there: Side) -> int:
    """Up or down."""
    return 1 if here.base < there.base else -1


def partners(r: Index, here: Side, there: Side) -> list[Index]:
    """Whom rank r meets in each of max(p, q) turns; beyond the other group, nobody."""
    most, way = max(here.n, there.n), _way(here, there)
    return [(r + way * t) % most for t in range(most)]


def first_partner(r: Index, here: Side, there: Side) -> Index:
    """The first of the other group that rank r meets."""
    return pick(r < there.n, r, 0 if _way(here, there) > 0 else there.n - 1)


def all_partners(r: Index, here: Side, there: Side) -> list[Index]:
    """All of the other group in the order in which rank r meets them."""
    first, way = first_partner(r, here, there), _way(here, there)
    return [(first + way * t) % there.n for t in range(there.n)]


def piece_size(startup: float = STARTUP) -> int:
    """Elements of a piece, if so many pass in the time of a start-up."""
    return max(round(LONG * startup), 1)


def piece(blocks: Blocks, j: Index, start: int, most: int) -> Spans:
    """At most so many elements of block j, from one of them on."""
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
    """max(p, q) turns of k elements, in pieces as long as alpha and beta say, unless a
    start-up is given."""
    most = piece_size(startup or min(startup_in(alpha, beta), max(k, 1.0)))
    return max(p, q) * (max(ceil(k / most), 1) * alpha + k * beta)
