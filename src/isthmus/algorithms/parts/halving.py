"""Halving and doubling in the reverse order of bits, for p a power of two.

A vector lies in p pieces. Ranks that differ in the lowest bit are the first to combine:
neighbours, then neighbouring pairs, and so on, so that a reduction is in rank order.
The lowest bit decides which half of the vector a rank keeps, so rank r ends with the
piece whose number has the bits of r in reverse order. Backwards, the program is an
allgather.
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
    """The number with the bits of i, as many as p - 1 has, in reverse order."""
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

    log2 p rounds; every piece travels once. The own piece ends in "recv". Of two
    buffers of half a vector each, one holds the sum while the next part arrives in the
    other.
    """
    half = pieces.offset((p + 1) // 2)
    buf, sum_start, free, begin = "send", 0 * r, 0 * r + half, 0
    for level in range(log2(p)):
        partner, higher = r ^ 1 << level, r >> level & 1 == 1
        (own_half,), (partner_half,) = (
            _half(p, i, level, pieces) for i in (r, partner)
        )
        own_part = Span(buf, sum_start + own_half.start - begin, own_half.size)
        sent_part = Span(buf, sum_start + partner_half.start - begin, partner_half.size)
        arrived = Span("tmp", free, own_half.size)
        # the sum takes the place of the higher ranks' part, but never lies in "send"
        combined = Span("tmp", 0 * r, own_half.size) if level == 0 else own_part
        steps: tuple[Local, ...] = (
            Reduce(own_part, arrived, higher ^ True),
            *((Copy(own_part, combined, higher),) if level == 0 else ()),
            Reduce(arrived, combined, higher),
        )
        yield Round((Recv(partner, (arrived,)), Send(partner, (sent_part,))), steps)
        freed = sum_start if level else 0 * r
        sum_start, free = pick(higher, combined.start, free), pick(higher, free, freed)
        buf, begin = "tmp", own_half.start
    own = pieces.size(reverse(r, p))
    yield Round(then=(Copy(Span(buf, sum_start, own), Span("recv", 0, own)),))


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
