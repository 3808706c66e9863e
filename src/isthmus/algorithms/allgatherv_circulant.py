"""Allgatherv by broadcasts from all ranks at once, on a circulant graph, in place.

Backwards it is a Reduce_scatter: what was sent is received and combined.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..schedules.ir import (
    Copy,
    Index,
    Pieces,
    Program,
    Recv,
    Reduce,
    Round,
    Send,
    Span,
)
from ..schedules.layout import Blocks
from ..schedules.registry import algorithm
from .parts.circulant import cuts, rounds, skips
from .parts.patterns import STARTUP, log2


def volumes(counts: np.ndarray) -> tuple[int, int]:
    """What some rank may receive in the log p rounds that fill the pipeline, and in a
    round of the full pipeline, if blocks were not cut.

    Filling round k brings something of skip[k + 1] - skip[k] roots, a full round of all
    others; these may be the ones with the largest blocks.
    """
    p = len(counts)
    largest = np.concatenate(([0], np.cumsum(np.sort(counts)[::-1])))
    return int(largest[np.diff(skips(p))].sum()), int(largest[p - 1])


def best_n(counts: np.ndarray, startup: float = STARTUP) -> int:
    """The number of parts that takes the least time; one, for equal blocks."""
    filling, full = volumes(counts)
    return cuts(filling - full, startup)


def _circulant_cost(p: int, k: float, alpha: float, beta: float) -> float:
    return log2(p) * alpha + (p - 1) * k * beta


def exchanges(
    p: int, r: Index, blocks: Blocks, n: int = 0, startup: float = STARTUP
) -> Iterator[tuple[tuple[Index, Pieces], tuple[Index, Pieces]]]:
    """For each round whom rank r receives from, and which parts of blocks; and the same
    of the rank that it sends to."""
    at = np.asarray(blocks.offset(np.arange(p + 1)))
    counts = np.diff(at)
    n = n or best_n(counts, startup)
    short, longer = np.divmod(counts, n)
    # Falling distances are rising roots: neighbours in memory follow each other.
    distances = np.arange(p - 1, 0, -1).reshape(-1, *[1] * np.ndim(r))

    def arriving(t: Index, v: np.ndarray, part: np.ndarray) -> Pieces:
        """Where the parts lie that rank t gets from the roots at some distances."""
        root = (t - v) % p
        more = longer[root]
        start = at[root] + part * short[root] + np.minimum(part, more)
        return Pieces(blocks.buf, start, short[root] + (part < more))

    for skip, part_at in rounds(p, n):
        part = part_at(distances)
        some = part.ravel() >= 0
        now = distances[some], part[some]
        source, target = (r - skip) % p, (r + skip) % p
        yield (source, arriving(r, *now)), (target, arriving(target, *now))


@algorithm("allgatherv", paper="Träff 2025, circulant graphs", cost=_circulant_cost)
def circulant(
    p: int, r: Index, blocks: Blocks, n: int = 0, startup: float = STARTUP
) -> Program:
    """Every block in n parts; in each round all roots' broadcasts advance together.

    n - 1 + ceil(log2 p) rounds, whatever the distribution; every part arrives once.
    """
    for coming, leaving in exchanges(p, r, blocks, n, startup):
        yield Round((Recv(*coming), Send(*leaving)))


@algorithm(
    "reduce_scatter",
    name="circulant",
    paper="Träff 2025, circulant graphs, backwards",
    cost=lambda p, m, alpha, beta: _circulant_cost(p, m / p, alpha, beta),
    commutative=True,
)
def reduce_scatter(
    p: int, r: Index, blocks: Blocks, n: int = 0, startup: float = STARTUP
) -> Program:
    """The same backwards: sums of all blocks' parts come together at their roots.

    n - 1 + ceil(log2 p) rounds, whatever the distribution; everyone sends every part of
    the others' blocks once, combined in any order. Scratch for all, and what arrives.
    """
    total = blocks.total
    own, result = Span("send", 0, total), Span("recv", 0, blocks.size(r))
    yield Round(then=(Copy(own, Span("tmp", 0, total)),))
    grown = blocks.within("tmp")
    for (source, mine), (target, theirs) in reversed(
        [*exchanges(p, r, grown, n, startup)]
    ):
        before = np.cumsum(theirs.size, axis=0) - theirs.size
        came = Pieces("tmp", total + before, theirs.size)
        steps = (Reduce(x, y) for x, y in zip(came, theirs, strict=True))
        yield Round((Recv(target, came), Send(source, mine)), tuple(steps))
    yield Round(then=(Copy(grown[r][0], result),))
