"""Allgatherv of unequal blocks, in place: cut, so that no rank waits for a giant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..schedules.ir import Index, Program, Recv, Round, Send, Span, Spans
from ..schedules.layout import Blocks
from ..schedules.registry import algorithm
from .parts.patterns import STARTUP
from .parts.piece_size import piece_size, pieces


def sizes(blocks: Blocks) -> np.ndarray:
    """The number of elements of every block."""
    counts: np.ndarray = np.diff(blocks.offset(np.arange(blocks.n + 1)))
    return counts


def table(values: np.ndarray, r: Index) -> Any:
    """Values to look up at r: for one rank as a list, which is quicker."""
    return values if isinstance(r, np.ndarray) else values.tolist()


@dataclass(frozen=True)
class Pipeline:
    """All blocks in pieces, one behind the other round a ring."""

    #: the number of pieces
    n: int
    #: the number of rounds until the last rank has all of them
    rounds: int
    #: for each place of the ring its first piece, and how many it has
    first: Any
    own: Any
    #: where a piece lies
    piece: Callable[[Index], Spans]


def _where(buf: str, start: np.ndarray, size: np.ndarray, r: Index) -> Any:
    """Where a piece lies; for one rank every span is made once."""
    if isinstance(r, np.ndarray):
        return lambda i: (Span(buf, start[i], size[i]),)
    ends = zip(start.tolist(), size.tolist(), strict=True)
    return [(Span(buf, at, n),) for at, n in ends].__getitem__


def pipeline(blocks: Blocks, order: np.ndarray, size: int, r: Index) -> Pipeline:
    """The blocks of the ranks in an order, cut into pieces of a size, as seen by r."""
    counts = sizes(blocks)[order]
    own = pieces(counts, size)
    first = np.cumsum(own) - own
    place = np.repeat(np.arange(len(order)), own)
    begin = size * (np.arange(len(place)) - first[place])
    length = np.minimum(counts[place] - begin, size)
    start = blocks.offset(order[place]) + begin
    n = len(place)
    where = _where(blocks.buf, start, length, r)
    return Pipeline(n, int(n - own.min()), table(first, r), table(own, r), where)


def blocked_cost(p: int, k: float, alpha: float, beta: float) -> float:
    """The time for equal blocks, which stay whole."""
    return (p - 1) * (alpha + k * beta)


@algorithm("allgatherv", paper="Träff et al. 2008", cost=blocked_cost)
def blocked_ring(
    p: int,
    r: Index,
    blocks: Blocks,
    rule: str = "",
    size: int = 0,
    startup: float = STARTUP,
) -> Program:
    """The ring with large blocks cut into pieces that follow each other round it.

    Every piece moves on in every round, so a giant block is a pipeline. Empty pieces
    are neither sent nor received, and no rank receives what it has. With b pieces, of
    which the rank that has fewest has f, b - f rounds.
    """
    size = piece_size(sizes(blocks), rule, size, startup)
    line = pipeline(blocks, np.arange(p), size, r)
    left, right, n = (r - 1) % p, (r + 1) % p, line.n
    received, sent = line.first[r] - 1, line.first[r] + line.own[r] - 1
    lacks, right_lacks = n - line.own[r], n - line.own[right]
    for k in range(line.rounds):
        yield Round(
            (
                Recv(left, line.piece((received - k) % n), k < lacks),
                Send(right, line.piece((sent - k) % n), k < right_lacks),
            )
        )
