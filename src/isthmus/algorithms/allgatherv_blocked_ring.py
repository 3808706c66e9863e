"""Allgatherv of unequal blocks, in place: cut, so that no rank waits for a giant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..schedules.ir import Index, Program, Recv, Round, Send, Span, Spans
from ..schedules.layout import Blocks
from ..schedules.registry import algorithm
from .parts.patterns import STARTUP_ELEMENTS, turns_cost
from .parts.piece_size import piece_size, pieces


def sizes(blocks: Blocks) -> np.ndarray:
    """The number of elements of every block."""
    counts: np.ndarray = np.diff(blocks.offset(np.arange(blocks.n + 1)))
    return counts


def table(values: np.ndarray, r: Index) -> Any:
    """Values to look up at r: for one rank a list, as an array is slower to index."""
    return values if isinstance(r, np.ndarray) else values.tolist()


@dataclass(frozen=True)
class Pipeline:
    """The pieces of all blocks, in line round a ring."""

    #: the number of pieces
    n: int
    #: the number of rounds until the last rank has all pieces
    rounds: int
    #: for each place of the ring its first piece, and its number of pieces
    first: Any
    own: Any
    #: the spans of a piece
    piece: Callable[[Index], Spans]


def _piece_spans(buf: str, starts: np.ndarray, lengths: np.ndarray, r: Index) -> Any:
    """The function from a piece's number to its span, for one rank from a list."""
    if isinstance(r, np.ndarray):
        return lambda i: (Span(buf, starts[i], lengths[i]),)
    ends = zip(starts.tolist(), lengths.tolist(), strict=True)
    return [(Span(buf, start, length),) for start, length in ends].__getitem__


def pipeline(blocks: Blocks, order: np.ndarray, size: int, r: Index) -> Pipeline:
    """The blocks of the ranks in `order`, cut into pieces of `size`, for rank r."""
    counts = sizes(blocks)[order]
    piece_counts = pieces(counts, size)
    first_piece = np.cumsum(piece_counts) - piece_counts
    ring_place = np.repeat(np.arange(len(order)), piece_counts)
    begin = size * (np.arange(len(ring_place)) - first_piece[ring_place])
    length = np.minimum(counts[ring_place] - begin, size)
    start = blocks.offset(order[ring_place]) + begin
    return Pipeline(
        n=len(ring_place),
        rounds=int(len(ring_place) - piece_counts.min()),
        first=table(first_piece, r),
        own=table(piece_counts, r),
        piece=_piece_spans(blocks.buf, start, length, r),
    )


# the cost is for equal blocks, which stay whole
@algorithm("allgatherv", paper="Träff et al. 2008", cost=turns_cost)
def blocked_ring(
    p: int,
    r: Index,
    blocks: Blocks,
    rule: str = "",
    size: int = 0,
    startup: float = STARTUP_ELEMENTS,
) -> Program:
    """The ring with large blocks cut into pieces that follow each other round the ring.

    Every piece moves on in every round, so a giant block is a pipeline. Empty pieces
    are neither sent nor received, and no rank receives its own block. With b pieces, of
    which the rank with the fewest has f, b - f rounds.
    """
    size = piece_size(sizes(blocks), rule, size, startup)
    ring_pieces = pipeline(blocks, np.arange(p), size, r)
    n, first, own = ring_pieces.n, ring_pieces.first, ring_pieces.own
    left, right = (r - 1) % p, (r + 1) % p
    received, sent = first[r] - 1, first[r] + own[r] - 1
    lacks, right_lacks = n - own[r], n - own[right]
    for k in range(ring_pieces.rounds):
        yield Round(
            (
                Recv(left, ring_pieces.piece((received - k) % n), k < lacks),
                Send(right, ring_pieces.piece((sent - k) % n), k < right_lacks),
            )
        )
