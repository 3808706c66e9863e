"""The collectives between two groups that have no root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lcm
from typing import Any

import numpy as np

from ..algorithms.parts.stages import stage_by_size
from ..schedules.ir import Index, Program
from ..schedules.layout import Even, GroupBlocks, Rows, Side
from ..schedules.registry import Algorithm, Stage
from ..schedules.schedule import Made
from ..verify import contracts
from ..verify.contracts import Contract
from .collective import (
    KINDS,
    PAIRS,
    VECTORS,
    Collective,
    Sizes,
    among,
    counts_of,
    offsets,
    rows_of,
    shares,
    two_groups,
    uneven,
)


def _two(
    entry: Algorithm,
    a: GroupBlocks,
    b: GroupBlocks,
    contract: Contract,
    more: Callable[[int, Index], Sequence[Any]] = lambda i, x: (),
) -> Made:
    """A collective of two groups, and what else the algorithm is told of a rank."""
    sides = Side(0, a), Side(a.n, b)

    def program(i: int, x: Index) -> Program:
        return entry.program(x, sides[i], sides[1 - i], *more(i, x))

    return among(sides, contract, program)


def _gathered(
    entry: Algorithm, stage: Stage | None, a: GroupBlocks, b: GroupBlocks
) -> Made:
    contract = contracts.multi_allgatherv([counts_of(a), counts_of(b)])
    last = (stage or stage_by_size(unit=1),)
    return _two(entry, a, b, contract, lambda i, x: last)


def _scattered(entry: Algorithm, _: None, a: GroupBlocks, b: GroupBlocks) -> Made:
    if a.total != b.total:
        raise ValueError(
            f"the blocks of A are {a.total} elements together, those of B {b.total}: "
            "must be the same"
        )
    both = counts_of(a), counts_of(b)
    contract = contracts.inter_reduce_scatter(*both, entry.commutative)
    return _two(entry, a, b, contract)


def _even(of: Callable[..., Made]) -> Callable[..., Made]:
    """Of blocks of one size in each group."""

    def make(entry: Algorithm, s: Any, p: int, q: int, ka: int, kb: int) -> Made:
        return of(entry, s, Even(p, ka), Even(q, kb))

    return make


def _uneven(of: Callable[..., Made]) -> Callable[..., Made]:
    """Of blocks of any sizes."""

    def make(entry: Algorithm, s: Any, a: Sequence[int], b: Sequence[int]) -> Made:
        return of(entry, s, uneven("a", a), uneven("b", b))

    return make


def _allreduce(entry: Algorithm, _: None, p: int, q: int, m: int) -> Made:
    contract = contracts.inter_allreduce(p, q, m, entry.commutative)
    return _two(entry, Even(p, 0), Even(q, 0), contract, lambda i, x: (m,))


def _alltoall(entry: Algorithm, _: None, p: int, q: int, ka: int, kb: int) -> Made:
    contract = contracts.inter_alltoallv(np.full((p, q), ka), np.full((q, p), kb))
    others, each = (q, p), (ka, kb)

    def blocks(i: int, x: Index) -> tuple[Even, Even]:
        return Even(others[i], each[i], "send"), Even(others[i], each[1 - i])

    return _two(entry, Even(p, 0), Even(q, 0), contract, blocks)


def _alltoallv(
    entry: Algorithm, _: None, ab: Sequence[Sequence[int]], ba: Sequence[Sequence[int]]
) -> Made:
    to_b, to_a = rows_of("ab", ab), rows_of("ba", ba)
    if to_b.shape != to_a.shape[::-1]:
        raise ValueError(f"ab is {to_b.shape}, ba {to_a.shape}: must be p×q and q×p")
    sent = offsets(to_b), offsets(to_a)
    received = offsets(to_a.T), offsets(to_b.T)
    p, q = to_b.shape

    def blocks(i: int, x: Index) -> tuple[Rows, Rows]:
        return Rows(sent[i], x, "send"), Rows(received[i], x)

    contract = contracts.inter_alltoallv(to_b, to_a)
    return _two(entry, Even(p, 0), Even(q, 0), contract, blocks)


def _barrier(entry: Algorithm, _: None, p: int, q: int) -> Made:
    return _two(entry, Even(p, 0), Even(q, 0), contracts.barrier(p + q))


def _pairs(rng: np.random.Generator, p: int, q: int) -> list[Sizes]:
    return [{"a": a(rng, p), "b": b(rng, q)} for a, b in PAIRS]


def _even_pairs(rng: np.random.Generator, p: int, q: int) -> list[Sizes]:
    return [{"p": p, "q": q, "ka": ka, "kb": kb} for ka, kb in ((4, 4), (5, 0))]


def _cut(rng: np.random.Generator, total: int, n: int) -> list[int]:
    """Counts of that total, one of them with half of it."""
    counts = np.bincount(rng.integers(n, size=total // 2), minlength=n)
    counts[rng.integers(n)] += total - total // 2
    found: list[int] = counts.tolist()
    return found


def _common(rng: np.random.Generator, p: int, q: int) -> list[Sizes]:
    """Sums of blocks of one size in each group."""
    least = lcm(p, q)
    totals = least, 5 * least, 0
    return [{"p": p, "q": q, "ka": n // p, "kb": n // q} for n in totals]


def _of_one_total(rng: np.random.Generator, p: int, q: int) -> list[Sizes]:
    lists = [kind(rng, p) for kind in KINDS]
    return [{"a": a, "b": _cut(rng, sum(a), q)} for a in lists]


def _tables(rng: np.random.Generator, p: int, q: int) -> list[Sizes]:
    return [
        {"ab": [a(rng, q) for _ in range(p)], "ba": [b(rng, p) for _ in range(q)]}
        for a, b in PAIRS
    ]


def _each(a: list[int], b: list[int]) -> Sizes:
    return {"p": len(a), "q": len(b), "ka": a[0], "kb": b[0]}


COLLECTIVES = {
    "inter_allgather": Collective(
        _even(_gathered),
        {"p": 6, "q": 2, "ka": 6, "kb": 6},
        _even_pairs,
        _each,
        two_groups,
    ),
    "inter_allgatherv": Collective(
        _uneven(_gathered),
        {"a": [5, 0, 9, 2, 1, 7], "b": [10, 3]},
        _pairs,
        lambda a, b: {"a": a, "b": b},
        two_groups,
    ),
    "inter_allreduce": Collective(
        _allreduce,
        {"p": 4, "q": 2, "m": 8},
        lambda rng, p, q: [{"p": p, "q": q, "m": m} for m in VECTORS],
        lambda a, b: {"p": len(a), "q": len(b), "m": a[0]},
        two_groups,
    ),
    "inter_reduce_scatter": Collective(
        _uneven(_scattered),
        {"a": [3, 0, 4, 1], "b": [5, 3]},
        _of_one_total,
        lambda a, b: {"a": shares(a[0], len(a)), "b": shares(a[0], len(b))},
        two_groups,
    ),
    "inter_reduce_scatter_block": Collective(
        _even(_scattered),
        {"p": 4, "q": 2, "ka": 2, "kb": 4},
        _common,
        groups=two_groups,
    ),
    "inter_alltoall": Collective(
        _alltoall,
        {"p": 4, "q": 2, "ka": 3, "kb": 3},
        _even_pairs,
        _each,
        two_groups,
    ),
    "inter_alltoallv": Collective(
        _alltoallv,
        {
            "ab": [[2, 1], [0, 3], [1, 1], [4, 0]],
            "ba": [[1, 0, 2, 2], [3, 1, 0, 1]],
        },
        _tables,
        groups=two_groups,
    ),
    "inter_barrier": Collective(
        _barrier,
        {"p": 4, "q": 2},
        lambda rng, p, q: [{"p": p, "q": q}],
        lambda a, b: {"p": len(a), "q": len(b)},
        two_groups,
    ),
}
