"""Allgatherv of unequal blocks, in place: cut, so that no rank waits for a giant."""

from __future__ import annotations

from math import isqrt

import numpy as np

from ..ir import Index, Program, Recv, Round, Send, Span, Spans
from ..layout import Blocks
from ..registry import algorithm
from .patterns import STARTUP


def sizes(blocks: Blocks) -> np.ndarray:
    """The number of elements of every block."""
    counts: np.ndarray = np.diff(blocks.offset(np.arange(blocks.n + 1)))
    return counts


def _pieces(counts: np.ndarray, size: int) -> np.ndarray:
    """Into how many pieces of a size each block is cut; an empty one counts too."""
    pieces: np.ndarray = np.maximum(1, -(-counts // size))
    return pieces


def ring_time(counts: np.ndarray, size: int, startup: float) -> float:
    """Rounds times what a round costs at the most, in elements."""
    pieces = _pieces(counts, size)
    return float((pieces.sum() - pieces.min()) * (startup + size))


def best_size(counts: np.ndarray, startup: float = STARTUP) -> int:
    """The size of pieces for which the blocked ring is fastest: the smallest block, the
    square-root formula, or a power of two near it."""
    p, m, empty = len(counts), int(counts.sum()), int((counts == 0).sum())
    if m == 0:
        return 1
    root = isqrt(int(2 * startup * m / max(p + empty - 2, 1)))
    found = {1 << k for k in range(int(counts.max()).bit_length() + 1)}
    found |= {root, int(counts.max()), int(counts.min())}
    return min((b for b in found if b > 0), key=lambda b: ring_time(counts, b, startup))


def _blocked_cost(p: int, k: float, alpha: float, beta: float) -> float:
    return (p - 1) * (alpha + k * beta)


@algorithm("allgatherv", paper="Träff et al. 2008", cost=_blocked_cost)
def blocked_ring(
    p: int, r: Index, blocks: Blocks, size: int = 0, startup: float = STARTUP
) -> Program:
    """The ring with large blocks cut into pieces that follow each other round it.

    Every piece moves on in every round, so a giant block is a pipeline. Empty pieces
    are neither sent nor received, and no rank receives what it has.
    """
    counts = sizes(blocks)
    size = size or best_size(counts, startup)
    pieces = _pieces(counts, size)
    first = np.cumsum(pieces) - pieces
    owner = np.repeat(np.arange(p), pieces)
    begin = size * (np.arange(len(owner)) - first[owner])
    length = np.minimum(counts[owner] - begin, size)
    start = blocks.offset(owner) + begin
    left, right, n = (r - 1) % p, (r + 1) % p, len(owner)

    def piece(i: Index) -> Spans:
        return (Span(blocks.buf, start[i], length[i]),)

    for k in range(int(n - pieces.min())):
        received = (first[r] - 1 - k) % n
        sent = (first[r] + pieces[r] - 1 - k) % n
        yield Round(
            (
                Recv(left, piece(received), k < n - pieces[r]),
                Send(right, piece(sent), k < n - pieces[right]),
            )
        )
