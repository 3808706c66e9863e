"""The records of the collectives between a root and the ranks of a remote group.

The processes of the root's group beside the root take no part. So the collectives have
n = q + 1 vertices: vertex 0 is the root, and leaf j of the q is vertex j + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..schedules.layout import Even, GroupBlocks, Leaves
from ..schedules.registry import Algorithm
from ..schedules.schedule import SizedCollective
from ..verify import contracts
from ..verify.contracts import Contract
from .collective import (
    BETWEEN,
    BLOCK,
    BLOCK_SIZES,
    BLOCKS,
    VECTOR,
    VECTORS,
    Collective,
    blocks_of,
    counts_cases,
    counts_of,
)
from .inside import EXAMPLE_COUNTS

#: from the counts of all vertices to the contract of the collective
Promise = Callable[[Sequence[int]], Contract]


def _of_root_and_leaves(
    algorithm: Algorithm, q: int, promise: Callable[[], Contract], data: Any
) -> SizedCollective:
    n = q + 1
    groups = range(1), range(1, n)
    return SizedCollective(promise, lambda v: algorithm.program(n, v, data), groups)


def _bcast(algorithm: Algorithm, _: None, q: int, m: int) -> SizedCollective:
    return _of_root_and_leaves(algorithm, q, lambda: contracts.bcast(q + 1, m), m)


def _reduce(algorithm: Algorithm, _: None, q: int, m: int) -> SizedCollective:
    def promise() -> Contract:
        return contracts.inter_reduce(q + 1, m, algorithm.commutative)

    return _of_root_and_leaves(algorithm, q, promise, m)


def _blocks_of_leaves(
    algorithm: Algorithm, group: GroupBlocks, promise: Promise
) -> SizedCollective:
    def promise_of_group() -> Contract:
        return promise([0, *counts_of(group)])

    return _of_root_and_leaves(algorithm, group.n, promise_of_group, Leaves(group))


def _record_of_even_blocks(
    promise: Promise, operation: str, gives: str, gets: str
) -> Collective:
    def make(algorithm: Algorithm, _: None, q: int, k: int) -> SizedCollective:
        return _blocks_of_leaves(algorithm, Even(q, k), promise)

    return Collective(
        name=f"inter_{operation.lower()}",
        operations=(operation,),
        groups=BETWEEN,
        gives=gives,
        gets=gets,
        is_rooted=True,
        make=make,
        example={"q": 5, "k": 4},
        cases=lambda rng, q: [{"q": q, "k": k} for k in BLOCK_SIZES],
        of_bytes=lambda a, b: {"q": len(b), "k": b[0]},
    )


def _record_of_counts(
    promise: Promise, operation: str, gives: str, gets: str
) -> Collective:
    def make(algorithm: Algorithm, _: None, counts: Sequence[int]) -> SizedCollective:
        return _blocks_of_leaves(algorithm, blocks_of("counts", counts), promise)

    return Collective(
        name=f"inter_{operation.lower()}",
        operations=(operation,),
        groups=BETWEEN,
        gives=gives,
        gets=gets,
        is_rooted=True,
        is_irregular=True,
        make=make,
        example={"counts": EXAMPLE_COUNTS},
        cases=counts_cases,
        of_bytes=lambda a, b: {"counts": b},
    )


_VECTOR: dict[str, Any] = {
    "groups": BETWEEN,
    "gives": VECTOR,
    "gets": VECTOR,
    "is_rooted": True,
    "example": {"q": 5, "m": 6},
    "cases": lambda rng, q: [{"q": q, "m": m} for m in VECTORS],
    "of_bytes": lambda a, b: {"q": len(b), "m": b[0]},
}
ROOTED_RECORDS = (
    Collective(
        name="inter_bcast",
        operations=("Bcast",),
        is_in_place=True,
        make=_bcast,
        **_VECTOR,
    ),
    Collective(
        name="inter_reduce",
        operations=("Reduce",),
        combines=True,
        make=_reduce,
        # of 128 KiB 148 and 140 µs in node memory, 99 and 114 by circulant (8 + 8 ranks
        # on 16 cores, MPICH 5.0.2 and Open MPI 5.0.11); of 32 KiB 67 and 68, 65 and 75
        node_memory_bytes=1 << 15,
        **_VECTOR,
    ),
    _record_of_even_blocks(contracts.gatherv, "Gather", BLOCK, BLOCKS),
    _record_of_counts(contracts.gatherv, "Gatherv", BLOCK, BLOCKS),
    # 4 MiB in all: 3.9 and 5.6 ms in node memory, 0.47 and 0.78 by linear (as above);
    # 8 B to 8 KiB: the same within a quarter
    replace(
        _record_of_even_blocks(contracts.scatterv, "Scatter", BLOCKS, BLOCK),
        node_memory_bytes=0,
    ),
    _record_of_counts(contracts.scatterv, "Scatterv", BLOCKS, BLOCK),
)
