"""Rabenseifner's reduction, as a building block: all of it travels twice.

Partners at distance 1, 2, 4, … halve between them what both combine, until everyone has
a piece; the pieces go back the same way to rank 0, or to a root outside in its place.
What is combined is always of consecutive ranks, and so in their order. If p is no power
of two, some ranks first hand all they have to their neighbours and are out.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from ..schedules.ir import Copy, Index, Mask, Program, Recv, Reduce, Round, Send, Span
from ..schedules.layout import Shares, pick
from .patterns import log2


def cost(p: int, total: float, alpha: float, beta: float) -> float:
    """The time until rank 0 has all, for p a power of two."""
    return 2 * log2(p) * alpha + 2 * (1 - 1 / p) * total * beta


def _halvings(p: int) -> int:
    return p.bit_length() - 1


def halving_rounds(p: int) -> int:
    """The number of rounds until everyone has a piece; in the first nothing is sent."""
    return 1 + (p & (p - 1) > 0) + _halvings(p)


def rounds(p: int) -> int:
    """The number of all rounds."""
    return halving_rounds(p) + _halvings(p)


def result(p: int, total: int) -> Span:
    """Where rank 0 has all in the end: a room or the other, in turns."""
    return Span("tmp", (halving_rounds(p) - 1) % 2 * total, total)


def _in_room(room: Index, pieces: Shares, lo: Index, n: int) -> Span:
    """So many pieces from one on, in one of two rooms for all."""
    (found,) = pieces.range(lo, lo + n)
    return Span("tmp", found.start + room * pieces.total, found.size)


@dataclass(frozen=True)
class _Ranks:
    """Those that halve, d times: numbered v, two ranks in one for the first few."""

    d: int
    extra: int
    pieces: Shares

    def rank(self, v: Index) -> Index:
        """The rank with a number."""
        return pick(v < self.extra, 2 * v, v + self.extra)

    def share(self, k: int) -> int:
        """The pieces that one combines after the halving k, or gathers before it."""
        return 1 << (self.d - k - 1)


def _ranks(p: int, total: int) -> _Ranks:
    d = _halvings(p)
    return _Ranks(d, p - (1 << d), Shares(1 << d, total))


def program(p: int, r: Index, total: int, outside: bool = False) -> Program:
    """Reduce "send" to rank 0, where `result` says, or to a root outside, rank -1.

    2 log2 p rounds, for p a power of two; else one more, of all. Room for two messages.
    """
    ranks = _ranks(p, total)
    first = r < 2 * ranks.extra
    out, into = first & (r % 2 == 1), first & (r % 2 == 0)
    own, came = Span("send", 0, total), Span("tmp", total, total)
    yield Round(then=(Copy(own, Span("tmp", 0, total), (first ^ True)),))
    if ranks.extra:
        yield Round(
            (Recv(r + 1, (came,), into), Send(r - 1, (own,), out)),
            (Reduce(own, came, into),),
        )
    v = pick(first, r // 2, r - ranks.extra)
    room, lo = yield from _halve(ranks, v, 1 * into, out ^ True)
    yield from _gather(ranks, v, room, lo, out ^ True, outside)


def _halve(
    ranks: _Ranks, v: Index, room: Index, at_work: Mask
) -> Generator[Round, None, tuple[Index, Index]]:
    """Halve until everyone has a piece; return in which room it lies, and its place."""
    lo, pieces = 0 * v, ranks.pieces
    for k in range(ranks.d):
        n, upper, partner = ranks.share(k), v >> k & 1, ranks.rank(v ^ (1 << k))
        keep, give = lo + upper * n, lo + (1 - upper) * n
        mine, came = (_in_room(x, pieces, keep, n) for x in (room, 1 - room))
        given = _in_room(room, pieces, give, n)
        yield Round(
            (Recv(partner, (came,), at_work), Send(partner, (given,), at_work)),
            (
                Reduce(mine, came, at_work & (upper == 0)),
                Reduce(came, mine, at_work & (upper == 1)),
            ),
        )
        room, lo = pick(upper == 1, room, 1 - room), keep
    return room, lo


def _gather(
    ranks: _Ranks, v: Index, room: Index, lo: Index, at_work: Mask, outside: bool
) -> Program:
    """Gather at number 0; if the root is outside, it gets all in the place of that."""
    first = at_work & (v == 0) & outside
    if outside:
        yield Round((Send(-1, (_in_room(room, ranks.pieces, 0, 1),), first),))
    for k in reversed(range(ranks.d)):
        n, upper, other = ranks.share(k), v >> k & 1, v ^ (1 << k)
        left = at_work & (v < 2 << k) & (first ^ True)
        came, mine = (_in_room(room, ranks.pieces, x, n) for x in (lo + n, lo))
        to = pick(outside & (other == 0), -1, ranks.rank(other))
        yield Round(
            (
                Recv(ranks.rank(other), (came,), left & (upper == 0)),
                Send(to, (mine,), left & (upper == 1)),
            )
        )


def collect(p: int, total: int) -> Program:
    """What a root outside does, once everyone has a piece: take them, in "recv"."""
    ranks = _ranks(p, total)
    yield Round((Recv(0, ranks.pieces[0]),))
    for k in reversed(range(ranks.d)):
        n = ranks.share(k)
        yield Round((Recv(ranks.rank(1 << k), ranks.pieces.range(n, 2 * n)),))
