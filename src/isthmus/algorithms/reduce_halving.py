"""Rabenseifner's reduction to rank 0, as a building block: all of it travels twice.

Partners at distance 1, 2, 4, … halve between them what both combine, until everyone has
a piece; the pieces go back the same way. What is combined is always of consecutive
ranks, and so in their order. Of p ranks as many as make it a power of two first hand
all they have to their neighbours.
"""

from __future__ import annotations

from ..ir import Copy, Index, Mask, Program, Recv, Reduce, Round, Send, Span
from ..layout import Shares, pick
from .patterns import log2


def cost(p: int, total: float, alpha: float, beta: float) -> float:
    """The time until rank 0 has all, for p a power of two."""
    return 2 * log2(p) * alpha + 2 * (1 - 1 / p) * total * beta


def _halvings(p: int) -> int:
    return p.bit_length() - 1


def rounds(p: int) -> int:
    """The number of rounds, with the first, in which nothing is sent."""
    return 1 + (p & (p - 1) > 0) + 2 * _halvings(p)


def result(p: int, total: int) -> Span:
    """Where rank 0 has all in the end: a room or the other, in turns."""
    arrivals = _halvings(p) + (p & (p - 1) > 0)
    return Span("tmp", arrivals % 2 * total, total)


def _in_room(room: Index, pieces: Shares, lo: Index, n: int) -> Span:
    """So many pieces from one on, in one of two rooms for all."""
    (found,) = pieces.range(lo, lo + n)
    return Span("tmp", found.start + room * pieces.total, found.size)


def program(p: int, r: Index, total: int) -> Program:
    """Reduce "send" to rank 0, where `result` says.

    2 log2 p rounds, for p a power of two; else one more, of all. Room for two messages.
    """
    d = _halvings(p)
    extra = p - (1 << d)
    first = r < 2 * extra
    out = first & (r % 2 == 1)
    own, whole = Span("send", 0, total), Shares(1, total)
    yield Round(then=(Copy(own, _in_room(0, whole, 0, 1), out ^ True),))
    into = first & (out ^ True)
    if extra:
        came = _in_room(1, whole, 0, 1)
        yield Round(
            (Recv(r + 1, (came,), into), Send(r - 1, (own,), out)),
            (Reduce(own, came, into),),
        )
    v = pick(first, r // 2, r - extra)
    yield from _halve(d, extra, v, out ^ True, 1 * into, Shares(1 << d, total))


def _halve(
    d: int, extra: int, v: Index, at_work: Mask, room: Index, pieces: Shares
) -> Program:
    """Halve d times among ranks numbered v, and gather at the first."""

    def partner(k: int) -> Index:
        other = v ^ (1 << k)
        return pick(other < extra, 2 * other, other + extra)

    lo = 0 * v
    for k in range(d):
        n, upper = 1 << (d - k - 1), v >> k & 1
        keep, give = lo + upper * n, lo + (1 - upper) * n
        mine, came = (_in_room(x, pieces, keep, n) for x in (room, 1 - room))
        given = _in_room(room, pieces, give, n)
        yield Round(
            (
                Recv(partner(k), (came,), at_work),
                Send(partner(k), (given,), at_work),
            ),
            (
                Reduce(mine, came, at_work & (upper == 0)),
                Reduce(came, mine, at_work & (upper == 1)),
            ),
        )
        room, lo = pick(upper == 1, room, 1 - room), keep
    for k in reversed(range(d)):
        n, upper = 1 << (d - k - 1), v >> k & 1
        left = at_work & (v < 2 << k)
        came, mine = (_in_room(room, pieces, x, n) for x in (lo + n, lo))
        yield Round(
            (
                Recv(partner(k), (came,), left & (upper == 0)),
                Send(partner(k), (mine,), left & (upper == 1)),
            )
        )
