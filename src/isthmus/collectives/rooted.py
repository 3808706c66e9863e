"""The records of the collectives of a root and the ranks of another group.

The other processes of the root's group take no part. So these are collectives of n =
q + 1 vertices: vertex 0 is the root, and leaf j of the q is vertex j + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..schedules.layout import Even, GroupBlocks, Leaves
from ..schedules.registry import Algorithm
from ..schedules.schedule import Made
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
    counts_of,
    of_kinds,
)
from .inside import COUNTS

#: from the counts of all vertices to what the collective promises
Promise = Callable[[Sequence[int]], Contract]


def _of(
    algorithm: Algorithm, q: int, promise: Callable[[], Contract], data: Any
) -> Made:
    n = q + 1
    groups = range(1), range(1, n)
    return Made(promise, lambda v: algorithm.program(n, v, data), groups)


def _bcast(algorithm: Algorithm, _: None, q: int, m: int) -> Made:
    return _of(algorithm, q, lambda: contracts.bcast(q + 1, m), m)


def _reduce(algorithm: Algorithm, _: None, q: int, m: int) -> Made:
    def promise() -> Contract:
        return contracts.inter_reduce(q + 1, m, algorithm.commutative)

    return _of(algorithm, q, promise, m)


def _blocks(algorithm: Algorithm, group: GroupBlocks, promise: Promise) -> Made:
    def of_group() -> Contract:
        return promise([0, *counts_of(group)])

    return _of(algorithm, group.n, of_group, Leaves(group))


def _even(promise: Promise, operation: str, gives: str, gets: str) -> Collective:
    def make(algorithm: Algorithm, _: None, q: int, k: int) -> Made:
        return _blocks(algorithm, Even(q, k), promise)

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


def _uneven(promise: Promise, operation: str, gives: str, gets: str) -> Collective:
    def make(algorithm: Algorithm, _: None, counts: Sequence[int]) -> Made:
        return _blocks(algorithm, blocks_of("counts", counts), promise)

    return Collective(
        name=f"inter_{operation.lower()}",
        operations=(operation,),
        groups=BETWEEN,
        gives=gives,
        gets=gets,
        is_rooted=True,
        is_irregular=True,
        make=make,
        example={"counts": COUNTS},
        cases=of_kinds,
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
RECORDS = (
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
        **_VECTOR,
    ),
    _even(contracts.gatherv, "Gather", BLOCK, BLOCKS),
    _uneven(contracts.gatherv, "Gatherv", BLOCK, BLOCKS),
    _even(contracts.scatterv, "Scatter", BLOCKS, BLOCK),
    _uneven(contracts.scatterv, "Scatterv", BLOCKS, BLOCK),
)
