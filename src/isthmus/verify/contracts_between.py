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


def allreduce(p: int, m: int, commutative: bool = False) -> Contract:
    """Everyone ends with the sum of all."""
    return _scattered(m, [(range(p), slice(m))] * p, _marks(p, commutative))


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


def _exchanged(rows: Sequence[np.ndarray], came: Sequence[range]) -> Contract:
    """Row r is what rank r sends to each of some ranks, and `came[r]` whom it gets a
    block from: so the block for it is that of its number among those."""
    parts = [_parts(row.tolist()) for row in rows]

    def to(r: int) -> np.ndarray:
        """What rank r gets, each block from its place in the sender's buffer."""
        number = r - came[came[r][0]][0]
        sent = [(i, parts[i][number]) for i in came[r]]
        found = [marks(i, part.stop)[part.start :] for i, part in sent]
        return np.concatenate([blank(0), *found])

    def before(r: int) -> Memory:
        return {"send": marks(r, int(rows[r].sum())), "recv": blank(len(to(r)))}

    return Contract(before, lambda r: {"recv": to(r)})


def inter_alltoallv(ab: np.ndarray, ba: np.ndarray) -> Contract:
    """Everyone ends with its block of everyone of the other group, in rank order;
    row i of ab is what rank i of A sends to each of B."""
    a, b = range(len(ab)), range(len(ab), len(ab) + len(ba))
    return _exchanged([*ab, *ba], [b] * len(a) + [a] * len(b))


def alltoallv(table: np.ndarray) -> Contract:
    """Everyone ends with its block of everyone, in rank order; row i is what rank i
    sends to each."""
    return _exchanged([*table], [range(len(table))] * len(table))


def barrier(p: int) -> Contract:
    """Nobody ends before everyone has begun."""
    nothing = {"send": blank(0), "recv": blank(0)}
    return Contract(lambda r: nothing, lambda r: {}, hears=lambda r: range(p))


def inter_barrier(p: int, q: int) -> Contract:
    """Nobody of either group ends before everyone of both has begun: more than MPI
    asks, which lets a rank leave once the other group has come."""
    return barrier(p + q)
