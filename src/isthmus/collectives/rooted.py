"""The collectives of a root and the ranks of another group.

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
from .collective import BLOCKS, VECTORS, Collective, counts_of, of_kinds, uneven
from .inside import COUNTS

#: from the counts of all vertices to what the collective promises
Promise = Callable[[Sequence[int]], Contract]


def _of(entry: Algorithm, q: int, contract: Contract, what: Any) -> Made:
    n = q + 1
    groups = range(1), range(1, n)
    return Made(contract, lambda v: entry.program(n, v, what), groups)


def _bcast(entry: Algorithm, _: None, q: int, m: int) -> Made:
    return _of(entry, q, contracts.bcast(q + 1, m), m)


def _reduce(entry: Algorithm, _: None, q: int, m: int) -> Made:
    return _of(entry, q, contracts.inter_reduce(q + 1, m, entry.commutative), m)


def _blocks(entry: Algorithm, group: GroupBlocks, promise: Promise) -> Made:
    return _of(entry, group.n, promise([0, *counts_of(group)]), Leaves(group))


def _even(promise: Promise) -> Collective:
    def make(entry: Algorithm, _: None, q: int, k: int) -> Made:
        return _blocks(entry, Even(q, k), promise)

    return Collective(
        make,
        {"q": 5, "k": 4},
        lambda rng, q: [{"q": q, "k": k} for k in BLOCKS],
        lambda a, b: {"q": len(b), "k": b[0]},
    )


def _uneven(promise: Promise) -> Collective:
    def make(entry: Algorithm, _: None, counts: Sequence[int]) -> Made:
        return _blocks(entry, uneven("counts", counts), promise)

    return Collective(make, {"counts": COUNTS}, of_kinds, lambda a, b: {"counts": b})


def _vector(make: Callable[..., Made]) -> Collective:
    return Collective(
        make,
        {"q": 5, "m": 6},
        lambda rng, q: [{"q": q, "m": m} for m in VECTORS],
        lambda a, b: {"q": len(b), "m": b[0]},
    )


COLLECTIVES = {
    "inter_bcast": _vector(_bcast),
    "inter_reduce": _vector(_reduce),
    "inter_gather": _even(contracts.gatherv),
    "inter_gatherv": _uneven(contracts.gatherv),
    "inter_scatter": _even(contracts.scatterv),
    "inter_scatterv": _uneven(contracts.scatterv),
}
