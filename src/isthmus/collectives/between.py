"""The records of the collectives between two groups that have no root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lcm
from typing import Any

import numpy as np

from ..schedules.ir import Index, Program
from ..schedules.layout import Even, GroupBlocks, Side
from ..schedules.registry import Algorithm, Stage
from ..schedules.schedule import SizedCollective
from ..verify import contracts
from ..verify.contracts import Contract
from .collective import (
    BETWEEN,
    BLOCK,
    BLOCKS,
    COUNTS_DRAW_PAIRS,
    COUNTS_DRAWS,
    NOTHING,
    VECTOR,
    VECTORS,
    Collective,
    Sizes,
    blocks_of,
    counts_of,
    of_groups,
    rows_of,
    shares,
    table_of,
)


def _of_two_groups(
    algorithm: Algorithm,
    a: GroupBlocks,
    b: GroupBlocks,
    promise: Callable[[], Contract],
    arguments: Callable[[int, Index], Sequence[Any]] = lambda i, x: (),
) -> SizedCollective:
    """The rounds and the promise of a collective between two groups.

    `arguments` are further arguments of the algorithm for rank x of group i.
    """
    sides = Side(0, a), Side(a.n, b)

    def program(i: int, x: Index) -> Program:
        return algorithm.program(x, sides[i], sides[1 - i], *arguments(i, x))

    return of_groups(sides, promise, program)


def _allgatherv(
    algorithm: Algorithm, stage: Stage | None, a: GroupBlocks, b: GroupBlocks
) -> SizedCollective:
    def promise() -> Contract:
        return contracts.multi_allgatherv([counts_of(a), counts_of(b)])

    return _of_two_groups(algorithm, a, b, promise, lambda i, x: (stage,))


def _reduce_scatter(
    algorithm: Algorithm, _: None, a: GroupBlocks, b: GroupBlocks
) -> SizedCollective:
    if a.total != b.total:
        raise ValueError(
            f"the blocks of A are {a.total} elements together, those of B {b.total}: "
            "must be the same"
        )

    def promise() -> Contract:
        counts = counts_of(a), counts_of(b)
        return contracts.inter_reduce_scatter(*counts, algorithm.commutative)

    return _of_two_groups(algorithm, a, b, promise)


def _with_even_blocks(
    make_of_blocks: Callable[..., SizedCollective],
) -> Callable[..., SizedCollective]:
    """The function with blocks of equal size in each group."""

    def make(
        algorithm: Algorithm, stage: Any, p: int, q: int, ka: int, kb: int
    ) -> SizedCollective:
        return make_of_blocks(algorithm, stage, Even(p, ka), Even(q, kb))

    return make


def _with_counts(
    make_of_blocks: Callable[..., SizedCollective],
) -> Callable[..., SizedCollective]:
    """The function with blocks of given counts."""

    def make(
        algorithm: Algorithm, stage: Any, a: Sequence[int], b: Sequence[int]
    ) -> SizedCollective:
        return make_of_blocks(algorithm, stage, blocks_of("a", a), blocks_of("b", b))

    return make


def _allreduce(
    algorithm: Algorithm, _: None, p: int, q: int, m: int
) -> SizedCollective:
    def promise() -> Contract:
        return contracts.inter_allreduce(p, q, m, algorithm.commutative)

    return _of_two_groups(algorithm, Even(p, 0), Even(q, 0), promise, lambda i, x: (m,))


def _alltoall(
    algorithm: Algorithm, _: None, p: int, q: int, ka: int, kb: int
) -> SizedCollective:
    def promise() -> Contract:
        return contracts.inter_alltoallv(np.full((p, q), ka), np.full((q, p), kb))

    remote_ranks, elements = (q, p), (ka, kb)

    def blocks(i: int, x: Index) -> tuple[Even, Even]:
        sent = Even(remote_ranks[i], elements[i], "send")
        return sent, Even(remote_ranks[i], elements[1 - i])

    return _of_two_groups(algorithm, Even(p, 0), Even(q, 0), promise, blocks)


def _alltoallv(
    algorithm: Algorithm,
    _: None,
    ab: Sequence[Sequence[int]],
    ba: Sequence[Sequence[int]],
) -> SizedCollective:
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

    return _of_two_groups(algorithm, Even(p, 0), Even(q, 0), promise, blocks)


def _barrier(algorithm: Algorithm, _: None, p: int, q: int) -> SizedCollective:
    return _of_two_groups(
        algorithm, Even(p, 0), Even(q, 0), lambda: contracts.barrier(p + q)
    )


def _count_cases(rng: np.random.Generator, p: int, q: int) -> list[Sizes]:
    return [{"a": a(rng, p), "b": b(rng, q)} for a, b in COUNTS_DRAW_PAIRS]


def _even_cases(rng: np.random.Generator, p: int, q: int) -> list[Sizes]:
    return [{"p": p, "q": q, "ka": ka, "kb": kb} for ka, kb in ((4, 4), (5, 0))]


def _random_counts(rng: np.random.Generator, total: int, n: int) -> list[int]:
    """Random counts of a total; a single one has half of the total."""
    counts = np.bincount(rng.integers(n, size=total // 2), minlength=n)
    counts[rng.integers(n)] += total - total // 2
    as_list: list[int] = counts.tolist()
    return as_list


def _even_cases_of_one_total(rng: np.random.Generator, p: int, q: int) -> list[Sizes]:
    """Blocks of equal size in each group, of equal totals."""
    smallest = lcm(p, q)
    totals = smallest, 5 * smallest, 0
    return [{"p": p, "q": q, "ka": m // p, "kb": m // q} for m in totals]


def _count_cases_of_one_total(rng: np.random.Generator, p: int, q: int) -> list[Sizes]:
    lists = [draw(rng, p) for draw in COUNTS_DRAWS]
    return [{"a": a, "b": _random_counts(rng, sum(a), q)} for a in lists]


def _table_cases(rng: np.random.Generator, p: int, q: int) -> list[Sizes]:
    return [
        {"ab": [a(rng, q) for _ in range(p)], "ba": [b(rng, p) for _ in range(q)]}
        for a, b in COUNTS_DRAW_PAIRS
    ]


def _even_sizes(a: list[int], b: list[int]) -> Sizes:
    return {"p": len(a), "q": len(b), "ka": a[0], "kb": b[0]}


BETWEEN_RECORDS = (
    Collective(
        name="inter_allgather",
        operations=("Allgather",),
        groups=BETWEEN,
        gives=BLOCK,
        gets=BLOCKS,
        make=_with_even_blocks(_allgatherv),
        example={"p": 6, "q": 2, "ka": 6, "kb": 6},
        cases=_even_cases,
        of_bytes=_even_sizes,
        tried_as="inter_allgather",
    ),
    Collective(
        name="inter_allgatherv",
        operations=("Allgatherv",),
        groups=BETWEEN,
        gives=BLOCK,
        gets=BLOCKS,
        is_irregular=True,
        make=_with_counts(_allgatherv),
        example={"a": [5, 0, 9, 2, 1, 7], "b": [10, 3]},
        cases=_count_cases,
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
        make=_with_counts(_reduce_scatter),
        example={"a": [3, 0, 4, 1], "b": [5, 3]},
        cases=_count_cases_of_one_total,
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
        make=_with_even_blocks(_reduce_scatter),
        example={"p": 4, "q": 2, "ka": 2, "kb": 4},
        cases=_even_cases_of_one_total,
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
        cases=_even_cases,
        of_bytes=_even_sizes,
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
        cases=_table_cases,
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
