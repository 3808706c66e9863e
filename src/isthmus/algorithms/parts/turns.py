"""Exchanges between two groups in turns, and in pieces, so that all stay in step.

In each turn a rank swaps with at most one partner: one group goes up from its own
number and the other down, so that partners meet.

Over TCP a message leaves as soon as it is sent, although its receiver may still be busy
with the last partner. The message takes from the rate of the message that the receiver
waits for, and queues before the answers of the other direction. So in a paced exchange
two partners swap pieces, and the next piece goes when the partner's has come.
"""

from __future__ import annotations

from math import ceil

from ...schedules.ir import Index, Span, Spans
from ...schedules.layout import Blocks, Side, clip, pick
from .patterns import STARTUP_ELEMENTS, startup_in

#: the time of a piece, in start-ups
PIECE_STARTUPS = 32


def _direction(here: Side, there: Side) -> int:
    """The direction of a group's turns through the other: up (1) or down (-1)."""
    return 1 if here.base < there.base else -1


def partners(r: Index, here: Side, there: Side) -> list[Index]:
    """The partner of rank r in each of max(p, q) turns; a number past q is nobody."""
    turns, direction = max(here.n, there.n), _direction(here, there)
    return [(r + direction * t) % turns for t in range(turns)]


def first_partner(r: Index, here: Side, there: Side) -> Index:
    """The rank of the remote group with the first turn of rank r."""
    return pick(r < there.n, r, 0 if _direction(here, there) > 0 else there.n - 1)


def all_partners(r: Index, here: Side, there: Side) -> list[Index]:
    """All ranks of the remote group, in the order of their turns with rank r."""
    first, direction = first_partner(r, here, there), _direction(here, there)
    return [(first + direction * t) % there.n for t in range(there.n)]


def piece_size(startup: float = STARTUP_ELEMENTS) -> int:
    """The elements of a piece, if `startup` elements pass in the time of a start-up."""
    return max(round(PIECE_STARTUPS * startup), 1)


def piece(blocks: Blocks, j: Index, start: int, longest: int) -> Spans:
    """At most `longest` elements of block j, from `start` on."""
    size = clip(blocks.size(j) - start, 0, longest)
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
    piece_elements = piece_size(startup or min(startup_in(alpha, beta), max(k, 1.0)))
    return max(p, q) * (max(ceil(k / piece_elements), 1) * alpha + k * beta)
