"""The contracts of collectives: the marks in all buffers before and after.

Groups are numbered one after another. Of a root and the ranks of a remote group the
root is rank 0, with an empty block where each rank has a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from .marks import MARK, Memory, blank, marks, unordered

#: sets of ranks, as ascending ranges
Ranks: TypeAlias = tuple[range, ...]


@dataclass(frozen=True)
class Need:
    """Elements that all targets must end with: the contributions of all sources,
    combined; or, if the sources are `alike`, the data of any source."""

    sources: Ranks
    targets: Ranks
    size: int
    alike: bool = False


#: the elements that ranks need from others; as a table, the elements of each rank (a
#: row) that a rank (a column) must end with
Demand: TypeAlias = Sequence[Need] | np.ndarray


@dataclass(frozen=True)
class Contract:
    """The memory of each rank before a collective, and the buffers required after."""

    before: Callable[[int], Memory]
    after: Callable[[int], Memory]
    #: the type of marks, for scratch memory too
    mark: np.dtype = MARK
    #: the ranks that must have begun before a rank may end
    waits_for: Callable[[int], range] = lambda r: range(0)
    #: the elements that ranks need from others, from which the limit follows
    demand: Callable[[], Demand] = tuple


def _only(r: int) -> Ranks:
    return (range(r, r + 1),)


def ranges_of(ranks: Sequence[int]) -> Ranks:
    """The ranges of ascending ranks."""
    edges = [0, *(np.flatnonzero(np.diff(ranks) != 1) + 1).tolist(), len(ranks)]
    return tuple(range(ranks[i], ranks[j - 1] + 1) for i, j in pairwise(edges))


def _to_all(counts: Sequence[int], targets: Ranks, first: int = 0) -> list[Need]:
    """The needs of targets that get the blocks of all ranks from the first on."""
    blocks = enumerate(counts, first)
    return [Need(_only(r), targets, int(k)) for r, k in blocks]


def in_order(counts: Sequence[int]) -> np.ndarray:
    """The contributions of consecutive ranks, concatenated."""
    parts = [marks(i, int(k)) for i, k in enumerate(counts)]
    return np.concatenate([np.empty(0, MARK), *parts])


def combined(ranks: range, count: int, mark: np.dtype) -> np.ndarray:
    """The contributions of consecutive ranks, reduced."""
    total = marks(ranks[0], count, mark)
    total["hi"] = ranks.stop
    if "who" in (mark.names or ()):
        total["who"] = sum(marks(r, 1, mark)["who"] for r in ranks)
    return total


def _blocks(counts: Sequence[int]) -> list[slice]:
    """The slices of consecutive blocks."""
    ends = np.cumsum(counts, dtype=np.int64).tolist()
    return [slice(end - k, end) for end, k in zip(ends, counts, strict=True)]


def _mark_type(n: int, commutative: bool) -> np.dtype:
    return unordered(n) if commutative else MARK


def allgatherv(counts: Sequence[int]) -> Contract:
    """The contract of Allgatherv, in place: each rank begins with its own block in the
    receive buffer, and ends with all blocks."""
    parts = _blocks(counts)

    @cache
    def all_blocks() -> np.ndarray:
        return in_order(counts)

    def before(r: int) -> Memory:
        recv = blank(len(all_blocks()))
        recv[parts[r]] = all_blocks()[parts[r]]
        return {"recv": recv}

    everyone = (range(len(counts)),)
    return Contract(
        before,
        lambda r: {"recv": all_blocks()},
        demand=lambda: _to_all(counts, everyone),
    )


def multi_allgatherv(groups: Sequence[Sequence[int]]) -> Contract:
    """The contract of Allgatherv among several groups: each rank ends with the blocks
    of all remote groups, in rank order; `groups` has the counts of each group."""
    group = [i for i, counts in enumerate(groups) for _ in counts]
    counts = [int(k) for group_counts in groups for k in group_counts]

    @cache
    def remote_blocks(i: int) -> np.ndarray:
        ranks = enumerate(zip(group, counts, strict=True))
        blocks = [marks(r, k) for r, (j, k) in ranks if j != i]
        return np.concatenate([blank(0), *blocks])

    def before(r: int) -> Memory:
        recv = blank(len(remote_blocks(group[r])))
        return {"send": marks(r, counts[r]), "recv": recv}

    def demand() -> Demand:
        needs: list[Need] = []
        for i, blocks in enumerate(groups):
            first = group.index(i) if i in group else 0
            end = first + len(blocks)
            remote_ranks = range(first), range(end, len(group))
            needs += _to_all(blocks, remote_ranks, first)
        return needs

    return Contract(before, lambda r: {"recv": remote_blocks(group[r])}, demand=demand)


def bcast(p: int, count: int, root: int = 0) -> Contract:
    """The contract of Bcast, in place: the root begins with the data, all ranks end
    with the data."""

    @cache
    def data() -> np.ndarray:
        return marks(root, count)

    def before(r: int) -> Memory:
        return {"recv": data() if r == root else blank(count)}

    need = Need(_only(root), (range(p),), count)
    return Contract(before, lambda r: {"recv": data()}, demand=lambda: [need])


def reduce(p: int, count: int, root: int = 0, commutative: bool = False) -> Contract:
    """The contract of Reduce: the root ends with the contributions of all ranks,
    combined in rank order; for commutative operators in any order, but each once."""
    mark = _mark_type(p, commutative)

    def before(r: int) -> Memory:
        return {"send": marks(r, count, mark), "recv": blank(count, mark)}

    def after(r: int) -> Memory:
        return {"recv": combined(range(p), count, mark)} if r == root else {}

    need = Need((range(p),), _only(root), count)
    return Contract(before, after, mark, demand=lambda: [need])


def inter_reduce(n: int, count: int, commutative: bool = False) -> Contract:
    """The contract of Reduce from a remote group: rank 0 ends with the contributions of
    ranks 1 to n - 1, combined as in `reduce`."""
    mark = _mark_type(n, commutative)

    def before(r: int) -> Memory:
        send, recv = marks(r, count if r else 0, mark), blank(0 if r else count, mark)
        return {"send": send, "recv": recv}

    def after(r: int) -> Memory:
        return {} if r else {"recv": combined(range(1, n), count, mark)}

    need = Need((range(1, n),), _only(0), count)
    return Contract(before, after, mark, demand=lambda: [need])


def gatherv(counts: Sequence[int], root: int = 0) -> Contract:
    """The contract of Gatherv: the root ends with all blocks, in rank order."""

    @cache
    def all_blocks() -> np.ndarray:
        return in_order(counts)

    def before(r: int) -> Memory:
        recv = blank(sum(counts) if r == root else 0)
        return {"send": marks(r, int(counts[r])), "recv": recv}

    return Contract(
        before,
        lambda r: {"recv": all_blocks()} if r == root else {},
        demand=lambda: _to_all(counts, _only(root)),
    )


def scatterv(counts: Sequence[int], root: int = 0) -> Contract:
    """The contract of Scatterv: each rank ends with a block of the root's data."""
    parts = _blocks(counts)

    @cache
    def all_blocks() -> np.ndarray:
        return marks(root, sum(counts))

    def before(r: int) -> Memory:
        send = all_blocks() if r == root else blank(0)
        return {"send": send, "recv": blank(int(counts[r]))}

    def demand() -> Demand:
        return [Need(_only(root), _only(r), int(k)) for r, k in enumerate(counts)]

    return Contract(before, lambda r: {"recv": all_blocks()[parts[r]]}, demand=demand)


def _scattered(
    total: int, wanted: Sequence[tuple[range, slice]], mark: np.dtype
) -> Contract:
    """The contract of reductions that end on all ranks.

    Each rank contributes `total` elements. Rank r ends with a part of the sum of a
    range of ranks, which are `wanted[r]`.
    """

    @cache
    def sum_of(ranks: range) -> np.ndarray:
        return combined(ranks, total, mark)

    def after(r: int) -> Memory:
        ranks, part = wanted[r]
        return {"recv": sum_of(ranks)[part]}

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
    """The contract of Allreduce: each rank ends with the sum of all ranks."""
    return _scattered(m, [(range(p), slice(m))] * p, _mark_type(p, commutative))


def inter_allreduce(p: int, q: int, m: int, commutative: bool = False) -> Contract:
    """The contract of Allreduce between groups: each rank ends with the sum of the
    remote group."""
    a, b = range(p), range(p, p + q)
    wanted = [(b, slice(m))] * p + [(a, slice(m))] * q
    return _scattered(m, wanted, _mark_type(p + q, commutative))


def reduce_scatter(counts: Sequence[int], commutative: bool = False) -> Contract:
    """The contract of Reduce_scatter: each rank ends with a block of the sum."""
    p = len(counts)
    wanted = [(range(p), part) for part in _blocks(counts)]
    return _scattered(sum(counts), wanted, _mark_type(p, commutative))


def inter_reduce_scatter(
    a: Sequence[int], b: Sequence[int], commutative: bool = False
) -> Contract:
    """The contract of Reduce_scatter between groups: each rank ends with a block of the
    remote group's sum; a and b are the block sizes of the ranks of each group."""
    p, n = len(a), len(a) + len(b)
    wanted = [(range(p, n), part) for part in _blocks(a)]
    wanted += [(range(p), part) for part in _blocks(b)]
    return _scattered(sum(a), wanted, _mark_type(n, commutative))


def alltoallv(table: np.ndarray) -> Contract:
    """The contract of Alltoallv: each rank ends with its blocks of all ranks, in rank
    order; row i has the elements that rank i sends to each rank, and zeros for ranks of
    the local group where there are several groups."""
    ends = np.cumsum(table, 1)

    def received(r: int) -> np.ndarray:
        blocks = [
            marks(i, int(ends[i, r]))[int(ends[i, r] - table[i, r]) :]
            for i in np.flatnonzero(table[:, r]).tolist()
        ]
        return np.concatenate([blank(0), *blocks])

    def before(r: int) -> Memory:
        return {"send": marks(r, int(table[r].sum())), "recv": blank(len(received(r)))}

    return Contract(before, lambda r: {"recv": received(r)}, demand=lambda: table)


def inter_alltoallv(ab: np.ndarray, ba: np.ndarray) -> Contract:
    """The contract of Alltoallv between groups A and B: row i of ab has the elements
    that rank i of A sends to each rank of B, and ba those of the way back."""
    p, q = ab.shape
    inside_a, inside_b = np.zeros((p, p), int), np.zeros((q, q), int)
    return alltoallv(np.block([[inside_a, ab], [ba, inside_b]]))


def barrier(n: int) -> Contract:
    """The contract of Barrier: no rank ends before all ranks have begun.

    Between groups MPI asks less: a rank may leave once the remote group has come.
    """
    nothing = {"send": blank(0), "recv": blank(0)}
    return Contract(lambda r: nothing, lambda r: {}, waits_for=lambda r: range(n))
