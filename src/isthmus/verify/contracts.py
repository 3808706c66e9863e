"""What each collective starts from and must end with, as marks in every buffer.

Groups follow each other in one numbering. Of a root and the ranks of another group the
root is rank 0, with an empty block where each has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from .marks import MARK, Memory, blank, marks, unordered

#: ranks, as ranges that follow each other
Ranks: TypeAlias = tuple[range, ...]


@dataclass(frozen=True)
class Need:
    """Elements that all of the targets must end with: a contribution of each of the
    sources, combined; or, if they are `alike`, what any one of them has."""

    sources: Ranks
    targets: Ranks
    size: int
    alike: bool = False


#: what must get from whom to whom; as a table, the elements of each rank (a row) that
#: one other (a column) must end with
Demand: TypeAlias = Sequence[Need] | np.ndarray


@dataclass(frozen=True)
class Contract:
    """The memory a rank begins with, and the buffers it must have in the end."""

    before: Callable[[int], Memory]
    after: Callable[[int], Memory]
    #: the kind of marks, for scratch memory too
    mark: np.dtype = MARK
    #: of whom a rank must have heard: it may not end before these have begun
    waits_for: Callable[[int], range] = lambda r: range(0)
    #: what must get from whom to whom, without data: the limit follows from it
    demand: Callable[[], Demand] = tuple


def _one(r: int) -> Ranks:
    return (range(r, r + 1),)


def ranges_of(ranks: Sequence[int]) -> Ranks:
    """Ranks in order, as ranges."""
    edges = [0, *(np.flatnonzero(np.diff(ranks) != 1) + 1).tolist(), len(ranks)]
    return tuple(range(ranks[i], ranks[j - 1] + 1) for i, j in pairwise(edges))


def _to_all(counts: Sequence[int], targets: Ranks, first: int = 0) -> list[Need]:
    """A block of each rank from the first on, which all targets get."""
    blocks = enumerate(counts, first)
    return [Need(_one(r), targets, int(k)) for r, k in blocks]


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

    everyone = (range(len(counts)),)
    return Contract(
        before,
        lambda r: {"recv": everything()},
        demand=lambda: _to_all(counts, everyone),
    )


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

    def demand() -> Demand:
        found: list[Need] = []
        for i, blocks in enumerate(groups):
            first = group.index(i) if i in group else 0
            end = first + len(blocks)
            others = range(first), range(end, len(group))
            found += _to_all(blocks, others, first)
        return found

    return Contract(before, lambda r: {"recv": others(group[r])}, demand=demand)


def bcast(p: int, count: int, root: int = 0) -> Contract:
    """In place: the root begins with the data, and everyone ends with them."""

    @cache
    def data() -> np.ndarray:
        return marks(root, count)

    def before(r: int) -> Memory:
        return {"recv": data() if r == root else blank(count)}

    need = Need(_one(root), (range(p),), count)
    return Contract(before, lambda r: {"recv": data()}, demand=lambda: [need])


def reduce(p: int, count: int, root: int = 0, commutative: bool = False) -> Contract:
    """The root ends with the contributions of all ranks, combined in rank order; for
    commutative operators, in any, but each once."""
    mark = _marks(p, commutative)

    def before(r: int) -> Memory:
        return {"send": marks(r, count, mark), "recv": blank(count, mark)}

    def after(r: int) -> Memory:
        return {"recv": combined(range(p), count, mark)} if r == root else {}

    need = Need((range(p),), _one(root), count)
    return Contract(before, after, mark, demand=lambda: [need])


def inter_reduce(n: int, count: int, commutative: bool = False) -> Contract:
    """Rank 0 ends with the contributions of the n - 1 others, combined likewise."""
    mark = _marks(n, commutative)

    def before(r: int) -> Memory:
        send, recv = marks(r, count if r else 0, mark), blank(0 if r else count, mark)
        return {"send": send, "recv": recv}

    def after(r: int) -> Memory:
        return {} if r else {"recv": combined(range(1, n), count, mark)}

    need = Need((range(1, n),), _one(0), count)
    return Contract(before, after, mark, demand=lambda: [need])


def gatherv(counts: Sequence[int], root: int = 0) -> Contract:
    """The root ends with the blocks of all ranks, in rank order."""

    @cache
    def everything() -> np.ndarray:
        return in_order(counts)

    def before(r: int) -> Memory:
        recv = blank(sum(counts) if r == root else 0)
        return {"send": marks(r, int(counts[r])), "recv": recv}

    return Contract(
        before,
        lambda r: {"recv": everything()} if r == root else {},
        demand=lambda: _to_all(counts, _one(root)),
    )


def scatterv(counts: Sequence[int], root: int = 0) -> Contract:
    """Everyone ends with its block of what the root has."""
    parts = _parts(counts)

    @cache
    def everything() -> np.ndarray:
        return marks(root, sum(counts))

    def before(r: int) -> Memory:
        send = everything() if r == root else blank(0)
        return {"send": send, "recv": blank(int(counts[r]))}

    def demand() -> Demand:
        return [Need(_one(root), _one(r), int(k)) for r, k in enumerate(counts)]

    return Contract(before, lambda r: {"recv": everything()[parts[r]]}, demand=demand)


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

    def demand() -> Demand:
        targets: dict[tuple[range, int, int], list[int]] = {}
        for r, (ranks, part) in enumerate(wanted):
            targets.setdefault((ranks, part.start or 0, part.stop), []).append(r)
        return [
            Need((ranks,), ranges_of(readers), stop - start)
            for (ranks, start, stop), readers in targets.items()
        ]

    return Contract(before, after, mark, demand=demand)


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

    return Contract(before, lambda r: {"recv": received(r)}, demand=lambda: table)


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
