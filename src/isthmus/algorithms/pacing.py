"""Exchanges in turns and pieces, so that all stay in step.

Over TCP a message leaves as soon as it is sent, whether or not its receiver has done
with its last partner. It takes from the rate of the one that is waited for, and queues
before the answers of the other direction. So two partners swap pieces, and the next one
goes when the other's has come.
"""

from __future__ import annotations

from ..ir import Index, Span, Spans
from ..layout import Blocks, clip

#: a piece takes so many times as long as a start-up
LONG = 32
#: bytes: no longer start-up than that, or pieces get so long that they queue
SHORT = 1 << 12


def piece_size(startup: float) -> int:
    """Elements of a piece, if so many pass in the time of a start-up."""
    return max(round(LONG * startup), 1)


def piece(blocks: Blocks, j: Index, start: int, most: int) -> Spans:
    """At most so many elements of block j, from one of them on."""
    size = clip(blocks.size(j) - start, 0, most)
    return (Span(blocks.buf, blocks.offset(j) + start, size),)
