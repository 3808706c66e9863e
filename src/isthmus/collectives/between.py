"""The records of the collectives between two groups that have no root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lcm
from typing import Any

import numpy as np

from ..schedules.ir import Index, Program
from ..schedules.layout import Even, GroupBlocks, Side
from ..schedules.registry import Algorithm, Stage
from ..schedules.schedule import Made
from ..verify import contracts
from ..verify.contracts import Contract
from .collective import (
    BETWEEN,
    BLOCK,
    BLOCKS,
    KINDS,
    NOTHING,
    PAIRS,
    VECTOR,
    VECTORS,
    Collective,
    Sizes,
    among,
    blocks_of,
    counts_of,
    rows_of,
    shares,
    table_of,
)


def _two(
    algorithm: Algorithm,
    a: GroupBlocks,
    b: GroupBlocks,
    promise: Callable[[], Contract],
    arguments: Callable[[int, Index], Sequence[Any]] = lambda i, x: (),
) -> Made:
    """A collective of two groups; `arguments` is what else the algorithm is told of
    rank x of group i."""
    sides = Side(0, a), Side(a.n, b)

    def program(i: int, x: Index) -> Program:
        return algorithm.program(x, sides[i], sides[1 - i], *arguments(i, x))

    return among(sides, promise, program)


def _gathered(
    algorithm: Algorithm, stage: Stage | None, a: GroupBlocks, b: GroupBlocks
) -> Made:
    def promise() -> Contract:
        return contracts.multi_allgatherv([counts_of(a), counts_of(b)])

    return _two(algorithm, a, b, promise, lambda i, x: (stage,))


def _scattered(algorithm: Algorithm, _: None, a: GroupBlocks, b: GroupBlocks) -> Made:
    if a.total != b.total:
        raise ValueError(
            f"the blocks of A are {a.total} elements together, those of B {b.total}: "
            "must be the same"
        )

    def promise() -> Contract:
        both = counts_of(a), counts_of(b)
        return contracts.inter_reduce_scatter(*both, algorithm.commutative)

    return _two(algorithm, a, b, promise)


def _even(of: Callable[..., Made]) -> Callable[..., Made]:
    """Of blocks of one size in each group."""

    def make(algorithm: Algorithm, s: Any, p: int, q: int, ka: int, kb: int) -> Made:
        return of(algorithm, s, Even(p, ka), Even(q, kb))

    return make


def _uneven(of: Callable[..., Made]) -> Callable[..., Made]:
    """Of blocks of any sizes."""

    def make(algorithm: Algorithm, s: Any, a: Sequence[int], b: Sequence[int]) -> Made:
        return of(algorithm, s, blocks_of("a", a), blocks_of("b", b))

    return make


def _allreduce(algorithm: Algorithm, _: None, p: int, q: int, m: int) -> Made:
    def promise() -> Contract:
        return contracts.inter_allreduce(p, q, m, algorithm.commutative)

    return _two(algorithm, Even(p, 0), Even(q, 0), promise, lambda i, x: (m,))


def _alltoall(algorithm: Algorithm, _: None, p: int, q: int, ka: int, kb: int) -> Made:
    def promise() -> Contract:
        return contracts.inter_alltoallv(np.full((p, q), ka), np.full((q, p), kb))

    others, each = (q, p), (ka, kb)

    def blocks(i: int, x: Index) -> tuple[Even, Even]:
        return Even(others[i], each[i], "send"), Even(others[i], each[1 - i])

    return _two(algorithm, Even(p, 0), Even(q, 0), promise, blocks)


def _alltoallv(
    algorithm: Algorithm,
    _: None,
    ab: Sequence[Sequence[int]],
    ba: Sequence[Sequence[int]],
) -> Made:
    tables = table_of("ab", ab), table_of("ba", ba)
    p, q = tables[0].shape
    if tables[1].shape != (q, p):
        raise ValueError(
            f"ab is {tables[0].shape}, ba {tables[1].shape}: must be p×q and q×p"
        )

    def promise() -> Contract:
        return contracts.inter_alltoallv(*map(rows_of, tables))

    def blocks(i: int, x: Index) -> Sequence[Any]:
        return tables[i].sent(x), tables[1 - i].received(x)

    return _two(algorithm, Even(p, 0), Even(q, 0), promise, blocks)


def _barrier(algorithm: Algorithm, _: None, p: int, q: int) -> Made:
    return _two(algorithm, Even(p, 0), Even(q, 0), lambda: contracts.barrier(p + q))


def _pairs(rng: np.random.Generator, p: int, q: int) -> list[Sizes]:
    return [{"a": a(rng, p), "b": b(rng, q)} for a, b in PAIRS]


def _even_pairs(rng: np.random.Generator, p: int, q: int) -> list[Sizes]:
    return [{"p": p, "q": q, "ka": ka, "kb": kb} for ka, kb in ((4, 4), (5, 0))]


def _cut(rng: np.random.Generator, total: int, n: int) -> list[int]:
    """Counts of that total, one of them with half of it."""
    counts = np.bincount(rng.integers(n, size=total // 2), minlength=n)
    counts[rng.integers(n)] += total - total // 2
    parts: list[int] = counts.tolist()
    return parts


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


RECORDS = (
    Collective(
        name="inter_allgather",
        operations=("Allgather",),
        groups=BETWEEN,
        gives=BLOCK,
        gets=BLOCKS,
        make=_even(_gathered),
        example={"p": 6, "q": 2, "ka": 6, "kb": 6},
        cases=_even_pairs,
        of_bytes=_each,
        tried_as="inter_allgather",
    ),
    Collective(
        name="inter_allgatherv",
        operations=("Allgatherv",),
        groups=BETWEEN,
        gives=BLOCK,
        gets=BLOCKS,
        is_irregular=True,
        make=_uneven(_gathered),
        example={"a": [5, 0, 9, 2, 1, 7], "b": [10, 3]},
        cases=_pairs,
        of_bytes=lambda a, b: {"a": a, "b": b},
        tried_as="inter_allgather",
    ),
    Collective(
        name="inter_allreduce",
        operations=("Allreduce",),
        groups=BETWEEN,
        gives=VECTOR,
        gets=VECTOR,
        combines=True,
        make=_allreduce,
        example={"p": 4, "q": 2, "m": 8},
        cases=lambda rng, p, q: [{"p": p, "q": q, "m": m} for m in VECTORS],
        of_bytes=lambda a, b: {"p": len(a), "q": len(b), "m": a[0]},
        tried_as="inter_allreduce",
    ),
    Collective(
        name="inter_reduce_scatter",
        operations=("Reduce_scatter",),
        groups=BETWEEN,
        gives=VECTOR,
        gets=BLOCK,
        combines=True,
        is_irregular=True,
        make=_uneven(_scattered),
        example={"a": [3, 0, 4, 1], "b": [5, 3]},
        cases=_of_one_total,
        of_bytes=lambda a, b: {"a": shares(a[0], len(a)), "b": shares(a[0], len(b))},
        tried_as="inter_reduce_scatter_block",
    ),
    Collective(
        name="inter_reduce_scatter_block",
        operations=("Reduce_scatter_block",),
        groups=BETWEEN,
        gives=VECTOR,
        gets=BLOCK,
        combines=True,
        make=_even(_scattered),
        example={"p": 4, "q": 2, "ka": 2, "kb": 4},
        cases=_common,
        tried_as="inter_reduce_scatter_block",
    ),
    Collective(
        name="inter_alltoall",
        operations=("Alltoall",),
        groups=BETWEEN,
        gives=BLOCKS,
        gets=BLOCKS,
        make=_alltoall,
        example={"p": 4, "q": 2, "ka": 3, "kb": 3},
        cases=_even_pairs,
        of_bytes=_each,
        tried_as="inter_alltoall",
    ),
    Collective(
        name="inter_alltoallv",
        operations=("Alltoallv", "Alltoallw"),
        groups=BETWEEN,
        gives=BLOCKS,
        gets=BLOCKS,
        is_irregular=True,
        make=_alltoallv,
        example={
            "ab": [[2, 1], [0, 3], [1, 1], [4, 0]],
            "ba": [[1, 0, 2, 2], [3, 1, 0, 1]],
        },
        cases=_tables,
    ),
    Collective(
        name="inter_barrier",
        operations=("Barrier",),
        groups=BETWEEN,
        gives=NOTHING,
        gets=NOTHING,
        make=_barrier,
        example={"p": 4, "q": 2},
        cases=lambda rng, p, q: [{"p": p, "q": q}],
        of_bytes=lambda a, b: {"p": len(a), "q": len(b)},
        tried_as="inter_barrier",
    ),
)
