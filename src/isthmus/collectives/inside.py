"""The records of the collectives inside one group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..schedules.ir import Index, Program
from ..schedules.layout import Even
from ..schedules.registry import Algorithm
from ..schedules.schedule import Made
from ..verify import contracts
from ..verify.contracts import Contract
from .collective import (
    BLOCK,
    BLOCK_SIZES,
    BLOCKS,
    INSIDE,
    KINDS,
    NOTHING,
    VECTOR,
    VECTORS,
    Collective,
    Sizes,
    blocks_of,
    counts_of,
    of_kinds,
    rows_of,
    shares,
    table_of,
)


def _one(
    p: int, promise: Callable[[], Contract], program: Callable[[Index], Program]
) -> Made:
    return Made(promise, program, (range(p),))


def _check_root(root: int, p: int) -> None:
    if not 0 <= root < p:
        raise ValueError(f"root = {root}: must be a rank, 0 to {p - 1}")


def _allgatherv(algorithm: Algorithm, _: None, counts: Sequence[int]) -> Made:
    blocks = blocks_of("counts", counts)
    p = blocks.n
    return _one(
        p,
        lambda: contracts.allgatherv(counts_of(blocks)),
        lambda r: algorithm.program(p, r, blocks),
    )


def _reduce_scatter(algorithm: Algorithm, _: None, counts: Sequence[int]) -> Made:
    blocks = blocks_of("counts", counts)
    p = blocks.n
    return _one(
        p,
        lambda: contracts.reduce_scatter(counts_of(blocks), algorithm.commutative),
        lambda r: algorithm.program(p, r, blocks),
    )


def _bcast(algorithm: Algorithm, _: None, p: int, m: int, root: int) -> Made:
    _check_root(root, p)
    return _one(
        p,
        lambda: contracts.bcast(p, m, root),
        lambda r: algorithm.program(p, r, m, root),
    )


def _reduce(algorithm: Algorithm, _: None, p: int, m: int, root: int) -> Made:
    _check_root(root, p)
    return _one(
        p,
        lambda: contracts.reduce(p, m, root, algorithm.commutative),
        lambda r: algorithm.program(p, r, m, root),
    )


def _allreduce(algorithm: Algorithm, _: None, p: int, m: int) -> Made:
    return _one(
        p,
        lambda: contracts.allreduce(p, m, algorithm.commutative),
        lambda r: algorithm.program(p, r, m),
    )


def _blocks(promise: Callable[[Sequence[int], int], Contract]) -> Callable[..., Made]:
    """A block of each rank, from the root or to it."""

    def make(algorithm: Algorithm, _: None, counts: Sequence[int], root: int) -> Made:
        blocks = blocks_of("counts", counts)
        p = blocks.n
        _check_root(root, p)
        return _one(
            p,
            lambda: promise(counts_of(blocks), root),
            lambda r: algorithm.program(p, r, blocks, root),
        )

    return make


def _alltoall(algorithm: Algorithm, _: None, p: int, k: int) -> Made:
    blocks = Even(p, k, "send"), Even(p, k)
    return _one(
        p,
        lambda: contracts.alltoallv(np.full((p, p), k)),
        lambda r: algorithm.program(p, r, *blocks),
    )


def _alltoallv(algorithm: Algorithm, _: None, table: Sequence[Sequence[int]]) -> Made:
    counts = table_of("table", table)
    p, across = counts.shape
    if p != across:
        raise ValueError(f"table is {p} by {across}: must be p by p")
    return _one(
        p,
        lambda: contracts.alltoallv(rows_of(counts)),
        lambda r: algorithm.program(p, r, counts.sent(r), counts.received(r)),
    )


def _barrier(algorithm: Algorithm, _: None, p: int) -> Made:
    return _one(p, lambda: contracts.barrier(p), lambda r: algorithm.program(p, r))


def _roots(p: int) -> list[int]:
    """Roots to try."""
    return sorted({0, p // 2, p - 1})


def _vectors(rng: np.random.Generator, p: int) -> list[Sizes]:
    return [{"p": p, "m": m, "root": root} for root in _roots(p) for m in (7, 24, 0)]


def _counts(rng: np.random.Generator, p: int) -> list[Sizes]:
    lists = [kind(rng, p) for kind in KINDS]
    return [{"counts": k, "root": root} for k in lists for root in _roots(p)]


def _tables(rng: np.random.Generator, p: int) -> list[Sizes]:
    return [{"table": [kind(rng, p) for _ in range(p)]} for kind in KINDS]


COUNTS = [3, 0, 4, 4, 9]
_ROOTED_VECTOR: dict[str, Any] = {
    "groups": INSIDE,
    "gives": VECTOR,
    "gets": VECTOR,
    "is_rooted": True,
    "example": {"p": 5, "m": 6, "root": 0},
    "cases": _vectors,
    "of_bytes": lambda a: {"p": len(a), "m": a[0], "root": 0},
}
_ROOTED_BLOCKS: dict[str, Any] = {
    "groups": INSIDE,
    "is_rooted": True,
    "is_irregular": True,
    "example": {"counts": COUNTS, "root": 0},
    "cases": _counts,
    "of_bytes": lambda a: {"counts": a, "root": 0},
}
RECORDS = (
    Collective(
        name="allgatherv",
        operations=("Allgatherv", "Allgather"),
        groups=INSIDE,
        gives=BLOCK,
        gets=BLOCKS,
        is_irregular=True,
        is_in_place=True,
        make=_allgatherv,
        example={"counts": COUNTS},
        cases=of_kinds,
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
        example={"counts": COUNTS},
        cases=of_kinds,
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
        make=_blocks(contracts.gatherv),
        **_ROOTED_BLOCKS,
    ),
    Collective(
        name="scatterv",
        operations=("Scatterv", "Scatter"),
        gives=BLOCKS,
        gets=BLOCK,
        make=_blocks(contracts.scatterv),
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
        cases=_tables,
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
