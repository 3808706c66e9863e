"""The records of the collectives inside a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..schedules.ir import Index, Program
from ..schedules.layout import Even
from ..schedules.registry import Algorithm
from ..schedules.schedule import SizedCollective
from ..verify import contracts
from ..verify.contracts import Contract
from .collective import (
    BLOCK,
    BLOCK_SIZES,
    BLOCKS,
    COUNTS_DRAWS,
    INSIDE,
    NOTHING,
    VECTOR,
    VECTORS,
    Collective,
    Sizes,
    blocks_of,
    counts_cases,
    counts_of,
    rows_of,
    shares,
    table_of,
)


def _of_one_group(
    p: int, promise: Callable[[], Contract], program: Callable[[Index], Program]
) -> SizedCollective:
    return SizedCollective(promise, program, (range(p),))


def _check_root(root: int, p: int) -> None:
    if not 0 <= root < p:
        raise ValueError(f"root = {root}: must be a rank, 0 to {p - 1}")


def _allgatherv(
    algorithm: Algorithm, _: None, counts: Sequence[int]
) -> SizedCollective:
    blocks = blocks_of("counts", counts)
    p = blocks.n
    return _of_one_group(
        p,
        lambda: contracts.allgatherv(counts_of(blocks)),
        lambda r: algorithm.program(p, r, blocks),
    )


def _reduce_scatter(
    algorithm: Algorithm, _: None, counts: Sequence[int]
) -> SizedCollective:
    blocks = blocks_of("counts", counts)
    p = blocks.n
    return _of_one_group(
        p,
        lambda: contracts.reduce_scatter(counts_of(blocks), algorithm.commutative),
        lambda r: algorithm.program(p, r, blocks),
    )


def _bcast(algorithm: Algorithm, _: None, p: int, m: int, root: int) -> SizedCollective:
    _check_root(root, p)
    return _of_one_group(
        p,
        lambda: contracts.bcast(p, m, root),
        lambda r: algorithm.program(p, r, m, root),
    )


def _reduce(
    algorithm: Algorithm, _: None, p: int, m: int, root: int
) -> SizedCollective:
    _check_root(root, p)
    return _of_one_group(
        p,
        lambda: contracts.reduce(p, m, root, algorithm.commutative),
        lambda r: algorithm.program(p, r, m, root),
    )


def _allreduce(algorithm: Algorithm, _: None, p: int, m: int) -> SizedCollective:
    return _of_one_group(
        p,
        lambda: contracts.allreduce(p, m, algorithm.commutative),
        lambda r: algorithm.program(p, r, m),
    )


def _blocks_of_root(
    promise: Callable[[Sequence[int], int], Contract],
) -> Callable[..., SizedCollective]:
    """The function that makes a collective of a block for each rank and a root."""

    def make(
        algorithm: Algorithm, _: None, counts: Sequence[int], root: int
    ) -> SizedCollective:
        blocks = blocks_of("counts", counts)
        p = blocks.n
        _check_root(root, p)
        return _of_one_group(
            p,
            lambda: promise(counts_of(blocks), root),
            lambda r: algorithm.program(p, r, blocks, root),
        )

    return make


def _alltoall(algorithm: Algorithm, _: None, p: int, k: int) -> SizedCollective:
    blocks = Even(p, k, "send"), Even(p, k)
    return _of_one_group(
        p,
        lambda: contracts.alltoallv(np.full((p, p), k)),
        lambda r: algorithm.program(p, r, *blocks),
    )


def _alltoallv(
    algorithm: Algorithm, _: None, table: Sequence[Sequence[int]]
) -> SizedCollective:
    counts = table_of("table", table)
    p, columns = counts.shape
    if p != columns:
        raise ValueError(f"table is {p} by {columns}: must be p by p")
    return _of_one_group(
        p,
        lambda: contracts.alltoallv(rows_of(counts)),
        lambda r: algorithm.program(p, r, counts.sent(r), counts.received(r)),
    )


def _barrier(algorithm: Algorithm, _: None, p: int) -> SizedCollective:
    return _of_one_group(
        p, lambda: contracts.barrier(p), lambda r: algorithm.program(p, r)
    )


def _roots(p: int) -> list[int]:
    """The roots for verification of algorithms."""
    return sorted({0, p // 2, p - 1})


def _vector_cases(rng: np.random.Generator, p: int) -> list[Sizes]:
    return [{"p": p, "m": m, "root": root} for root in _roots(p) for m in (7, 24, 0)]


def _rooted_counts_cases(rng: np.random.Generator, p: int) -> list[Sizes]:
    lists = [draw(rng, p) for draw in COUNTS_DRAWS]
    return [{"counts": a, "root": root} for a in lists for root in _roots(p)]


def _table_cases(rng: np.random.Generator, p: int) -> list[Sizes]:
    return [{"table": [draw(rng, p) for _ in range(p)]} for draw in COUNTS_DRAWS]


EXAMPLE_COUNTS = [3, 0, 4, 4, 9]
_ROOTED_VECTOR: dict[str, Any] = {
    "groups": INSIDE,
    "gives": VECTOR,
    "gets": VECTOR,
    "is_rooted": True,
    "example": {"p": 5, "m": 6, "root": 0},
    "cases": _vector_cases,
    "of_bytes": lambda a: {"p": len(a), "m": a[0], "root": 0},
}
_ROOTED_BLOCKS: dict[str, Any] = {
    "groups": INSIDE,
    "is_rooted": True,
    "is_irregular": True,
    "example": {"counts": EXAMPLE_COUNTS, "root": 0},
    "cases": _rooted_counts_cases,
    "of_bytes": lambda a: {"counts": a, "root": 0},
}
INSIDE_RECORDS = (
    Collective(
        name="allgatherv",
        operations=("Allgatherv", "Allgather"),
        groups=INSIDE,
        gives=BLOCK,
        gets=BLOCKS,
        is_irregular=True,
        is_in_place=True,
        make=_allgatherv,
        example={"counts": EXAMPLE_COUNTS},
        cases=counts_cases,
        of_bytes=lambda a: {"counts": a},
    ),
    Collective(
        name="reduce_scatter",
        operations=("Reduce_scatter", "Reduce_scatter_block"),
        groups=INSIDE,
        gives=VECTOR,
        gets=BLOCK,
        combines=True,
        is_irregular=True,
        make=_reduce_scatter,
        example={"counts": EXAMPLE_COUNTS},
        cases=counts_cases,
        of_bytes=lambda a: {"counts": shares(a[0], len(a))},
    ),
    Collective(
        name="bcast",
        operations=("Bcast",),
        is_in_place=True,
        make=_bcast,
        **_ROOTED_VECTOR,
    ),
    Collective(
        name="reduce",
        operations=("Reduce",),
        combines=True,
        make=_reduce,
        **_ROOTED_VECTOR,
    ),
    Collective(
        name="gatherv",
        operations=("Gatherv", "Gather"),
        gives=BLOCK,
        gets=BLOCKS,
        make=_blocks_of_root(contracts.gatherv),
        **_ROOTED_BLOCKS,
    ),
    Collective(
        name="scatterv",
        operations=("Scatterv", "Scatter"),
        gives=BLOCKS,
        gets=BLOCK,
        make=_blocks_of_root(contracts.scatterv),
        **_ROOTED_BLOCKS,
    ),
    Collective(
        name="allreduce",
        operations=("Allreduce",),
        groups=INSIDE,
        gives=VECTOR,
        gets=VECTOR,
        combines=True,
        make=_allreduce,
        example={"p": 5, "m": 10},
        cases=lambda rng, p: [{"p": p, "m": m} for m in VECTORS],
        of_bytes=lambda a: {"p": len(a), "m": a[0]},
    ),
    Collective(
        name="alltoall",
        operations=("Alltoall",),
        groups=INSIDE,
        gives=BLOCKS,
        gets=BLOCKS,
        make=_alltoall,
        example={"p": 5, "k": 3},
        cases=lambda rng, p: [{"p": p, "k": k} for k in BLOCK_SIZES],
        of_bytes=lambda a: {"p": len(a), "k": a[0]},
    ),
    Collective(
        name="alltoallv",
        operations=("Alltoallv",),
        groups=INSIDE,
        gives=BLOCKS,
        gets=BLOCKS,
        is_irregular=True,
        make=_alltoallv,
        example={"table": [[2, 1, 0], [0, 3, 1], [4, 1, 2]]},
        cases=_table_cases,
    ),
    Collective(
        name="barrier",
        operations=("Barrier",),
        groups=INSIDE,
        gives=NOTHING,
        gets=NOTHING,
        is_on_mpi=False,
        make=_barrier,
        example={"p": 5},
        cases=lambda rng, p: [{"p": p}],
        of_bytes=lambda a: {"p": len(a)},
    ),
)
