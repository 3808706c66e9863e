"""What collectives without a root promise, between two groups and inside one.

Between two groups, ranks 0 to p - 1 are group A, and p to p + q - 1 group B.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from .contracts import Contract, combined
from .marks import MARK, Memory, blank, marks, unordered


def _scattered(
    total: int, wanted: Sequence[tuple[range, slice]], mark: np.dtype
) -> Contract:
    """Each rank contributes the total; of rank r, `wanted` says whose sum it ends
    with, and which part of that."""

    @cache
    def whole(ranks: range) -> np.ndarray:
        return combined(ranks, total, mark)

    def after(r: int) -> Memory:
        ranks, part = wanted[r]
        return {"recv": whole(ranks)[part]}

    def before(r: int) -> Memory:
        size = len(after(r)["recv"])
        return {"send": marks(r, total, mark), "recv": blank(size, mark)}

    return Contract(before, after, mark)


def _parts(counts: Sequence[int]) -> list[slice]:
    """The places of consecutive blocks."""
    ends = np.cumsum(counts, dtype=np.int64).tolist()
    return [slice(end - k, end) for end, k in zip(ends, counts, strict=True)]


def _marks(n: int, commutative: bool) -> np.dtype:
    return unordered(n) if commutative else MARK


def inter_allreduce(p: int, q: int, m: int, commutative: bool = False) -> Contract:
    """Everyone ends with the sum of the other group."""
    a, b = range(p), range(p, p + q)
    wanted = [(b, slice(m))] * p + [(a, slice(m))] * q
    return _scattered(m, wanted, _marks(p + q, commutative))


def inter_reduce_scatter(
    a: Sequence[int], b: Sequence[int], commutative: bool = False
) -> Contract:
    """Everyone ends with its block of the sum of the other group; a and b are the
    blocks that the ranks of each group get."""
    p, n = len(a), len(a) + len(b)
    wanted = [(range(p, n), part) for part in _parts(a)]
    wanted += [(range(p), part) for part in _parts(b)]
    return _scattered(sum(a), wanted, _marks(n, commutative))


def reduce_scatter(counts: Sequence[int], commutative: bool = False) -> Contract:
    """Everyone ends with its block of the sum of all."""
    p = len(counts)
    wanted = [(range(p), part) for part in _parts(counts)]
    return _scattered(sum(counts), wanted, _marks(p, commutative))


def inter_alltoallv(ab: np.ndarray, ba: np.ndarray) -> Contract:
    """Everyone ends with its block of everyone of the other group, in rank order;
    row i of ab is what rank i of A sends to each of B."""
    p = len(ab)
    parts = [[_parts(row) for row in table.tolist()] for table in (ab, ba)]

    def to(r: int) -> np.ndarray:
        """What rank r gets, each block from its place in the sender's buffer."""
        mine, base = int(r >= p), 0 if r >= p else p
        rows = parts[1 - mine]
        sent = [
            (base + i, row[r - p * mine].start, row[r - p * mine].stop)
            for i, row in enumerate(rows)
        ]
        found = [marks(i, stop)[start:] for i, start, stop in sent]
        return np.concatenate([blank(0), *found])

    def before(r: int) -> Memory:
        row = ab[r] if r < p else ba[r - p]
        return {"send": marks(r, int(row.sum())), "recv": blank(len(to(r)))}

    return Contract(before, lambda r: {"recv": to(r)})


def inter_barrier(p: int, q: int) -> Contract:
    """Nobody of either group ends before everyone of both has begun: more than MPI
    asks, which lets a rank leave once the other group has come."""
    nothing = {"send": blank(0), "recv": blank(0)}
    return Contract(lambda r: nothing, lambda r: {}, hears=lambda r: range(p + q))
