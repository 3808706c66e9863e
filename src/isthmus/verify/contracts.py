"""What each collective starts from and must end with, as marks in every buffer.

Groups follow each other in one numbering. Of a root and the ranks of another group the
root is rank 0, with an empty block where each has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from .marks import MARK, Memory, blank, marks, unordered


@dataclass(frozen=True)
class Contract:
    """The memory a rank begins with, and the buffers it must have in the end."""

    before: Callable[[int], Memory]
    after: Callable[[int], Memory]
    #: the kind of marks, for scratch memory too
    mark: np.dtype = MARK
    #: of whom a rank must have heard: it may not end before these have begun
    waits_for: Callable[[int], range] = lambda r: range(0)


def in_order(counts: Sequence[int]) -> np.ndarray:
    """The contributions of consecutive ranks, one after the other."""
    parts = [marks(i, int(k)) for i, k in enumerate(counts)]
    return np.concatenate([np.empty(0, MARK), *parts])


def combined(ranks: range, count: int, mark: np.dtype) -> np.ndarray:
    """The contributions of consecutive ranks, reduced to one."""
    every = marks(ranks[0], count, mark)
    every["hi"] = ranks.stop
    if "who" in (mark.names or ()):
        every["who"] = sum(marks(r, 1, mark)["who"] for r in ranks)
    return every


def _parts(counts: Sequence[int]) -> list[slice]:
    """The places of consecutive blocks."""
    ends = np.cumsum(counts, dtype=np.int64).tolist()
    return [slice(end - k, end) for end, k in zip(ends, counts, strict=True)]


def _marks(n: int, commutative: bool) -> np.dtype:
    return unordered(n) if commutative else MARK


def allgatherv(counts: Sequence[int]) -> Contract:
    """In place: everyone begins with its own block in its place, and ends with all."""
    parts = _parts(counts)

    @cache
    def everything() -> np.ndarray:
        return in_order(counts)

    def before(r: int) -> Memory:
        recv = blank(len(everything()))
        recv[parts[r]] = everything()[parts[r]]
        return {"recv": recv}

    return Contract(before, lambda r: {"recv": everything()})


def multi_allgatherv(groups: Sequence[Sequence[int]]) -> Contract:
    """Everyone ends with the blocks of all groups but its own, in rank order; `groups`
    has the counts of each."""
    group = [i for i, counts in enumerate(groups) for _ in counts]
    counts = [int(k) for found in groups for k in found]

    @cache
    def others(i: int) -> np.ndarray:
        every = enumerate(zip(group, counts, strict=True))
        found = [marks(r, k) for r, (j, k) in every if j != i]
        return np.concatenate([blank(0), *found])

    def before(r: int) -> Memory:
        return {"send": marks(r, counts[r]), "recv": blank(len(others(group[r])))}

    return Contract(before, lambda r: {"recv": others(group[r])})


def bcast(count: int, root: int = 0) -> Contract:
    """In place: the root begins with the data, and everyone ends with them."""

    @cache
    def data() -> np.ndarray:
        return marks(root, count)

    def before(r: int) -> Memory:
        return {"recv": data() if r == root else blank(count)}

    return Contract(before, lambda r: {"recv": data()})


def reduce(p: int, count: int, root: int = 0, commutative: bool = False) -> Contract:
    """The root ends with the contributions of all ranks, combined in rank order; for
    commutative operators, in any, but each once."""
    mark = _marks(p, commutative)

    def before(r: int) -> Memory:
        return {"send": marks(r, count, mark), "recv": blank(count, mark)}

    def after(r: int) -> Memory:
        return {"recv": combined(range(p), count, mark)} if r == root else {}

    return Contract(before, after, mark)


def inter_reduce(n: int, count: int, commutative: bool = False) -> Contract:
    """Rank 0 ends with the contributions of the n - 1 others, combined likewise."""
    mark = _marks(n, commutative)

    def before(r: int) -> Memory:
        send, recv = marks(r, count if r else 0, mark), blank(0 if r else count, mark)
        return {"send": send, "recv": recv}

    def after(r: int) -> Memory:
        return {} if r else {"recv": combined(range(1, n), count, mark)}

    return Contract(before, after, mark)


def gatherv(counts: Sequence[int], root: int = 0) -> Contract:
    """The root ends with the blocks of all ranks, in rank order."""

    @cache
    def everything() -> np.ndarray:
        return in_order(counts)

    def before(r: int) -> Memory:
        recv = blank(sum(counts) if r == root else 0)
        return {"send": marks(r, int(counts[r])), "recv": recv}

    return Contract(before, lambda r: {"recv": everything()} if r == root else {})


def scatterv(counts: Sequence[int], root: int = 0) -> Contract:
    """Everyone ends with its block of what the root has."""
    parts = _parts(counts)

    @cache
    def everything() -> np.ndarray:
        return marks(root, sum(counts))

    def before(r: int) -> Memory:
        send = everything() if r == root else blank(0)
        return {"send": send, "recv": blank(int(counts[r]))}

    return Contract(before, lambda r: {"recv": everything()[parts[r]]})


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


def allreduce(p: int, m: int, commutative: bool = False) -> Contract:
    """Everyone ends with the sum of all."""
    return _scattered(m, [(range(p), slice(m))] * p, _marks(p, commutative))


def inter_allreduce(p: int, q: int, m: int, commutative: bool = False) -> Contract:
    """Everyone ends with the sum of the other group."""
    a, b = range(p), range(p, p + q)
    wanted = [(b, slice(m))] * p + [(a, slice(m))] * q
    return _scattered(m, wanted, _marks(p + q, commutative))


def reduce_scatter(counts: Sequence[int], commutative: bool = False) -> Contract:
    """Everyone ends with its block of the sum of all."""
    p = len(counts)
    wanted = [(range(p), part) for part in _parts(counts)]
    return _scattered(sum(counts), wanted, _marks(p, commutative))


def inter_reduce_scatter(
    a: Sequence[int], b: Sequence[int], commutative: bool = False
) -> Contract:
    """Everyone ends with its block of the sum of the other group; a and b are the
    blocks that the ranks of each group get."""
    p, n = len(a), len(a) + len(b)
    wanted = [(range(p, n), part) for part in _parts(a)]
    wanted += [(range(p), part) for part in _parts(b)]
    return _scattered(sum(a), wanted, _marks(n, commutative))


def alltoallv(table: np.ndarray) -> Contract:
    """Everyone ends with its block of everyone, in rank order; row i is what rank i
    sends to each, to ranks of its own group nothing where there are several."""
    ends = np.cumsum(table, 1)

    def received(r: int) -> np.ndarray:
        found = [
            marks(i, int(ends[i, r]))[int(ends[i, r] - table[i, r]) :]
            for i in np.flatnonzero(table[:, r]).tolist()
        ]
        return np.concatenate([blank(0), *found])

    def before(r: int) -> Memory:
        return {"send": marks(r, int(table[r].sum())), "recv": blank(len(received(r)))}

    return Contract(before, lambda r: {"recv": received(r)})


def inter_alltoallv(ab: np.ndarray, ba: np.ndarray) -> Contract:
    """Everyone ends with its block of everyone of the other group, in rank order; row
    i of ab is what rank i of A sends to each of B."""
    p, q = ab.shape
    within = np.zeros((p, p), int), np.zeros((q, q), int)
    return alltoallv(np.block([[within[0], ab], [ba, within[1]]]))


def barrier(n: int) -> Contract:
    """Nobody ends before everyone has begun; between groups that is more than MPI asks,
    which lets a rank leave once the other group has come."""
    nothing = {"send": blank(0), "recv": blank(0)}
    return Contract(lambda r: nothing, lambda r: {}, waits_for=lambda r: range(n))
