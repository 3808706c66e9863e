"""Allgatherv by broadcasts from all ranks at once, on a circulant graph, in place.

Backwards, with every send a receive that is combined, the program is a Reduce_scatter.
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
from .parts.patterns import STARTUP_ELEMENTS, doubling_cost
from .reduce_scatter import bruck_cost


def volumes(counts: np.ndarray) -> tuple[int, int]:
    """The most that a rank may receive while the pipeline fills, and in a full round.

    Both are for whole blocks. Of the log p filling rounds, round k brings parts of
    skip[k + 1] - skip[k] roots, a full round parts of all roots but the receiver; any
    of these roots may have the largest blocks.
    """
    p = len(counts)
    largest = np.concatenate(([0], np.cumsum(np.sort(counts)[::-1])))
    return int(largest[np.diff(skips(p))].sum()), int(largest[p - 1])


def best_n(counts: np.ndarray, startup: float = STARTUP_ELEMENTS) -> int:
    """The number of parts with the least time; 1 for equal blocks."""
    filling, full = volumes(counts)
    return cuts(filling - full, startup)


def exchanges(
    p: int, r: Index, blocks: Blocks, n: int = 0, startup: float = STARTUP_ELEMENTS
) -> Iterator[tuple[tuple[Index, Pieces], tuple[Index, Pieces]]]:
    """For each round of rank r: a source and its parts, a target and its parts."""
    offsets = np.asarray(blocks.offset(np.arange(p + 1)))
    counts = np.diff(offsets)
    n = n or best_n(counts, startup)
    part_size, remainder = np.divmod(counts, n)
    # Falling distances are rising roots: neighbours in memory follow each other.
    distances = np.arange(p - 1, 0, -1).reshape(-1, *[1] * np.ndim(r))

    def arriving(rank: Index, distance: np.ndarray, part: np.ndarray) -> Pieces:
        """The parts received by a rank, of the roots at some distances."""
        root = (rank - distance) % p
        longer_parts = remainder[root]
        start = offsets[root] + part * part_size[root] + np.minimum(part, longer_parts)
        return Pieces(blocks.buf, start, part_size[root] + (part < longer_parts))

    for skip, part_at in rounds(p, n):
        part = part_at(distances)
        has_part = part.ravel() >= 0
        in_round = distances[has_part], part[has_part]
        source, target = (r - skip) % p, (r + skip) % p
        yield (source, arriving(r, *in_round)), (target, arriving(target, *in_round))


# the cost is for equal blocks, which stay whole
@algorithm("allgatherv", paper="Träff 2025, circulant graphs", cost=doubling_cost)
def circulant(
    p: int, r: Index, blocks: Blocks, n: int = 0, startup: float = STARTUP_ELEMENTS
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
    cost=bruck_cost,
    commutative=True,
)
def reduce_scatter(
    p: int, r: Index, blocks: Blocks, n: int = 0, startup: float = STARTUP_ELEMENTS
) -> Program:
    """Broadcasts backwards: sums of all blocks' parts come together at their roots.

    n - 1 + ceil(log2 p) rounds, whatever the distribution; everyone sends every part of
    all blocks but the own one once, combined in any order. Scratch for all data, and
    for arriving parts.
    """
    total = blocks.total
    contribution, result = Span("send", 0, total), Span("recv", 0, blocks.size(r))
    yield Round(then=(Copy(contribution, Span("tmp", 0, total)),))
    partial_sums = blocks.within("tmp")
    for (source, arriving_parts), (target, leaving_parts) in reversed(
        [*exchanges(p, r, partial_sums, n, startup)]
    ):
        starts = np.cumsum(leaving_parts.size, axis=0) - leaving_parts.size
        arrived = Pieces("tmp", total + starts, leaving_parts.size)
        steps = (
            Reduce(arrived_span, sum_span)
            for arrived_span, sum_span in zip(arrived, leaving_parts, strict=True)
        )
        yield Round((Recv(target, arrived), Send(source, arriving_parts)), tuple(steps))
    yield Round(then=(Copy(partial_sums[r][0], result),))
