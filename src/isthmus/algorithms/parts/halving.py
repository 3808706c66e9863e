"""Halving and doubling in the reverse order of bits, for p a power of two.

A vector lies in p pieces. Ranks that differ in the lowest bit are the first to combine:
neighbours, then neighbouring pairs, and so on, so that a reduction is in rank order.
The lowest bit decides which half of the vector a rank keeps, so rank r ends with the
piece whose number has the bits of r in reverse order. Backwards, it is an allgather.
"""

from __future__ import annotations

from ...schedules.ir import (
    Copy,
    Index,
    Local,
    Program,
    Recv,
    Reduce,
    Round,
    Send,
    Span,
    Spans,
)
from ...schedules.layout import Blocks, pick
from .patterns import log2


def reverse(i: Index, p: int) -> Index:
    """The number whose bits are those of i, as many as p - 1 has, in reverse order."""
    out = 0 * i
    for _ in range(log2(p)):
        out, i = 2 * out + i % 2, i // 2
    return out


def _half(p: int, r: Index, level: int, pieces: Blocks) -> Spans:
    """The pieces that rank r keeps when bit `level` decides."""
    first = reverse(r % (2 << level), p)
    return pieces.range(first, first + (p >> level + 1))


def halving(p: int, r: Index, pieces: Blocks) -> Program:
    """Hand over half of the sums to the rank that differs in one bit.

    log2 p rounds; every piece travels once. The own piece ends in "recv". Two buffers
    of half a vector each: one holds the sum, in the other the next part arrives.
    """
    half = pieces.offset((p + 1) // 2)
    buf, held, free, begin = "send", 0 * r, 0 * r + half, 0
    for level in range(log2(p)):
        partner, higher = r ^ 1 << level, r >> level & 1 == 1
        (stays,), (goes,) = (_half(p, i, level, pieces) for i in (r, partner))
        mine = Span(buf, held + stays.start - begin, stays.size)
        gone = Span(buf, held + goes.start - begin, goes.size)
        came = Span("tmp", free, stays.size)
        # the sum lies where the higher ranks' part was; nobody writes to "send"
        grown = Span("tmp", 0 * r, stays.size) if level == 0 else mine
        steps: tuple[Local, ...] = (
            Reduce(mine, came, higher ^ True),
            *((Copy(mine, grown, higher),) if level == 0 else ()),
            Reduce(came, grown, higher),
        )
        yield Round((Recv(partner, (came,)), Send(partner, (gone,))), steps)
        left = held if level else 0 * r
        held, free = pick(higher, grown.start, free), pick(higher, free, left)
        buf, begin = "tmp", stays.start
    own = pieces.size(reverse(r, p))
    yield Round(then=(Copy(Span(buf, held, own), Span("recv", 0, own)),))


def doubling(p: int, r: Index, pieces: Blocks) -> Program:
    """Collect all pieces, each in its place: swap all pieces, the highest bit first.

    log2 p rounds; every piece travels once to every rank.
    """
    for level in reversed(range(log2(p))):
        partner = r ^ 1 << level
        yield Round(
            (
                Recv(partner, _half(p, partner, level, pieces)),
                Send(partner, _half(p, r, level, pieces)),
            )
        )


def gathering(p: int, r: Index, pieces: Blocks) -> Program:
    """Collect all pieces at rank 0, each in its place.

    log2 p rounds; rank 0 receives every other piece once.
    """
    for level in reversed(range(log2(p))):
        step = 1 << level
        yield Round(
            (
                Recv(r + step, _half(p, r + step, level, pieces), r < step),
                Send(r - step, _half(p, r, level, pieces), r >> level == 1),
            )
        )
