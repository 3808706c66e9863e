"""The collectives inside one group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..schedules.ir import Index, Program
from ..schedules.layout import Even, Rows
from ..schedules.registry import Algorithm
from ..schedules.schedule import Made
from ..verify import contracts
from ..verify.contracts import Contract
from .collective import (
    BLOCKS,
    KINDS,
    VECTORS,
    Collective,
    Sizes,
    of_kinds,
    offsets,
    rows_of,
    shares,
    uneven,
)


def _one(p: int, contract: Contract, program: Callable[[Index], Program]) -> Made:
    return Made(contract, program, (range(p),))


def _allgatherv(entry: Algorithm, _: None, counts: Sequence[int]) -> Made:
    blocks = uneven("counts", counts)
    contract = contracts.allgatherv(counts)
    return _one(blocks.n, contract, lambda r: entry.program(blocks.n, r, blocks))


def _reduce_scatter(entry: Algorithm, _: None, counts: Sequence[int]) -> Made:
    blocks = uneven("counts", counts)
    contract = contracts.reduce_scatter(counts, entry.commutative)
    return _one(blocks.n, contract, lambda r: entry.program(blocks.n, r, blocks))


def _bcast(entry: Algorithm, _: None, p: int, m: int, root: int) -> Made:
    contract = contracts.bcast(p, m, root)
    return _one(p, contract, lambda r: entry.program(p, r, m, root))


def _reduce(entry: Algorithm, _: None, p: int, m: int, root: int) -> Made:
    contract = contracts.reduce(p, m, root, entry.commutative)
    return _one(p, contract, lambda r: entry.program(p, r, m, root))


def _allreduce(entry: Algorithm, _: None, p: int, m: int) -> Made:
    contract = contracts.allreduce(p, m, entry.commutative)
    return _one(p, contract, lambda r: entry.program(p, r, m))


def _blocks(promise: Callable[[Sequence[int], int], Contract]) -> Callable[..., Made]:
    """A block of each rank, from the root or to it."""

    def make(entry: Algorithm, _: None, counts: Sequence[int], root: int) -> Made:
        blocks = uneven("counts", counts)
        p, contract = blocks.n, promise(counts, root)
        return _one(p, contract, lambda r: entry.program(p, r, blocks, root))

    return make


def _alltoall(entry: Algorithm, _: None, p: int, k: int) -> Made:
    contract = contracts.alltoallv(np.full((p, p), k))
    blocks = Even(p, k, "send"), Even(p, k)
    return _one(p, contract, lambda r: entry.program(p, r, *blocks))


def _alltoallv(entry: Algorithm, _: None, table: Sequence[Sequence[int]]) -> Made:
    every = rows_of("table", table)
    p, across = every.shape
    if p != across:
        raise ValueError(f"table is {p} by {across}: must be p by p")
    sent, received = map(offsets, (every, every.T))

    def program(r: Index) -> Program:
        return entry.program(p, r, Rows(sent, r, "send"), Rows(received, r))

    return _one(p, contracts.alltoallv(every), program)


def _barrier(entry: Algorithm, _: None, p: int) -> Made:
    return _one(p, contracts.barrier(p), lambda r: entry.program(p, r))


def _roots(p: int) -> list[int]:
    """Roots to try."""
    return sorted({0, p // 2, p - 1})


def _whole(rng: np.random.Generator, p: int) -> list[Sizes]:
    return [{"p": p, "m": m, "root": root} for root in _roots(p) for m in (7, 24, 0)]


def _to_or_from(rng: np.random.Generator, p: int) -> list[Sizes]:
    lists = [kind(rng, p) for kind in KINDS]
    return [{"counts": k, "root": root} for k in lists for root in _roots(p)]


COUNTS = [3, 0, 4, 4, 9]
COLLECTIVES = {
    "allgatherv": Collective(
        _allgatherv, {"counts": COUNTS}, of_kinds, lambda a: {"counts": a}
    ),
    "reduce_scatter": Collective(
        _reduce_scatter,
        {"counts": COUNTS},
        of_kinds,
        lambda a: {"counts": shares(a[0], len(a))},
    ),
    **{
        name: Collective(
            make,
            {"p": 5, "m": 6, "root": 0},
            _whole,
            lambda a: {"p": len(a), "m": a[0], "root": 0},
        )
        for name, make in (("bcast", _bcast), ("reduce", _reduce))
    },
    **{
        name: Collective(
            _blocks(promise),
            {"counts": COUNTS, "root": 0},
            _to_or_from,
            lambda a: {"counts": a, "root": 0},
        )
        for name, promise in (
            ("gatherv", contracts.gatherv),
            ("scatterv", contracts.scatterv),
        )
    },
    "allreduce": Collective(
        _allreduce,
        {"p": 5, "m": 10},
        lambda rng, p: [{"p": p, "m": m} for m in VECTORS],
        lambda a: {"p": len(a), "m": a[0]},
    ),
    "alltoall": Collective(
        _alltoall,
        {"p": 5, "k": 3},
        lambda rng, p: [{"p": p, "k": k} for k in BLOCKS],
        lambda a: {"p": len(a), "k": a[0]},
    ),
    "alltoallv": Collective(
        _alltoallv,
        {"table": [[2, 1, 0], [0, 3, 1], [4, 1, 2]]},
        lambda rng, p: [{"table": [kind(rng, p) for _ in range(p)]} for kind in KINDS],
    ),
    "barrier": Collective(
        _barrier, {"p": 5}, lambda rng, p: [{"p": p}], lambda a: {"p": len(a)}
    ),
}
