"""Schedules of all ranks: a collective, an algorithm and sizes, made one object."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from ..algorithms.stages import stage_by_size
from ..schedules.hosts import Hosts
from ..schedules.ir import Index, Program
from ..schedules.layout import Blocks, Even, GroupBlocks, Rows, Side
from ..schedules.registry import Algorithm, Stage, collectives, resolve
from ..schedules.schedule import Made, Schedule
from ..verify import contracts, contracts_between
from . import (
    between as collectives_between,
    rooted as collectives_rooted,
    several,
)
from .sizes import checked, counts_of, uneven


def _inter(
    entry: Algorithm, stage: Stage | None, a: GroupBlocks, b: GroupBlocks
) -> Made:
    sides = Side(0, a), Side(a.n, b)
    last = stage or stage_by_size(unit=1)
    return Made(
        contracts.inter_allgatherv(counts_of(a), counts_of(b)),
        lambda r: entry.between(sides, r, last),
        (range(a.n), range(a.n, a.n + b.n)),
    )


def _inter_allgather(
    entry: Algorithm, stage: Stage | None, *, p: int, q: int, ka: int, kb: int
) -> Made:
    a = Even(checked("p", p, 1), checked("ka", ka, 0))
    b = Even(checked("q", q, 1), checked("kb", kb, 0))
    return _inter(entry, stage, a, b)


def _inter_allgatherv(
    entry: Algorithm, stage: Stage | None, *, a: Sequence[int], b: Sequence[int]
) -> Made:
    return _inter(entry, stage, uneven("a", a), uneven("b", b))


def _fits(entry: Algorithm, n: int) -> None:
    """Refuse an algorithm that is not made for a group of n."""
    if not entry.needs(n):
        raise ValueError(f"{entry.name!r} does not work for a group of {n}")


def _allgatherv(entry: Algorithm, _: None, *, counts: Sequence[int]) -> Made:
    blocks = uneven("counts", counts)
    _fits(entry, blocks.n)
    contract = contracts.allgatherv(counts_of(blocks))
    return Made(contract, partial(_blocks_of, entry, blocks), (range(blocks.n),))


def _blocks_of(entry: Algorithm, blocks: Blocks, r: Index) -> Program:
    """What a rank of one group does with the blocks of all."""
    return entry.program(blocks.n, r, blocks)


def _reduce_scatter(entry: Algorithm, _: None, *, counts: Sequence[int]) -> Made:
    blocks = uneven("counts", counts)
    _fits(entry, blocks.n)
    contract = contracts_between.reduce_scatter(counts, entry.commutative)
    return Made(contract, partial(_blocks_of, entry, blocks), (range(blocks.n),))


def _rooted(entry: Algorithm, p: int, m: int, root: int) -> None:
    checked("p", p, 1)
    checked("m", m, 0)
    _has_root(p, root)
    _fits(entry, p)


def _has_root(p: int, root: int) -> None:
    if not 0 <= root < p:
        raise ValueError(f"root = {root}: must be a rank, 0 to {p - 1}")


def _bcast(entry: Algorithm, _: None, *, p: int, m: int, root: int) -> Made:
    _rooted(entry, p, m, root)
    contract = contracts.bcast(m, root)
    return Made(contract, lambda r: entry.program(p, r, m, root), (range(p),))


def _reduce(entry: Algorithm, _: None, *, p: int, m: int, root: int) -> Made:
    _rooted(entry, p, m, root)
    contract = contracts.reduce(p, m, root, entry.commutative)
    return Made(contract, lambda r: entry.program(p, r, m, root), (range(p),))


def _allreduce(entry: Algorithm, _: None, *, p: int, m: int) -> Made:
    checked("m", m, 0)
    _fits(entry, checked("p", p, 1))
    contract = contracts_between.allreduce(p, m, entry.commutative)
    return Made(contract, lambda r: entry.program(p, r, m), (range(p),))


def _gatherv(entry: Algorithm, _: None, *, counts: Sequence[int], root: int) -> Made:
    return _to_or_from(entry, counts, root, contracts.gatherv)


def _scatterv(entry: Algorithm, _: None, *, counts: Sequence[int], root: int) -> Made:
    return _to_or_from(entry, counts, root, contracts.scatterv)


def _to_or_from(
    entry: Algorithm,
    counts: Sequence[int],
    root: int,
    promise: Callable[[Sequence[int], int], contracts.Contract],
) -> Made:
    """A block of each rank, from the root or to it."""
    blocks = uneven("counts", counts)
    p = blocks.n
    _has_root(p, root)
    _fits(entry, p)
    contract = promise(counts_of(blocks), root)
    return Made(contract, lambda r: entry.program(p, r, blocks, root), (range(p),))


def _alltoall(entry: Algorithm, _: None, *, p: int, k: int) -> Made:
    checked("k", k, 0)
    _fits(entry, checked("p", p, 1))
    contract = contracts_between.alltoallv(np.full((p, p), k))
    blocks = Even(p, k, "send"), Even(p, k)
    return Made(contract, lambda r: entry.program(p, r, *blocks), (range(p),))


def _alltoallv(entry: Algorithm, _: None, *, table: Sequence[Sequence[int]]) -> Made:
    every = collectives_between.rows_of("table", table)
    p, across = every.shape
    if p != across:
        raise ValueError(f"table is {p} by {across}: must be p by p")
    _fits(entry, p)
    sent, received = map(collectives_between.offsets, (every, every.T))

    def program(r: Index) -> Program:
        return entry.program(p, r, Rows(sent, r, "send"), Rows(received, r))

    return Made(contracts_between.alltoallv(every), program, (range(p),))


def _barrier(entry: Algorithm, _: None, *, p: int) -> Made:
    _fits(entry, checked("p", p, 1))
    contract = contracts_between.barrier(p)
    return Made(contract, lambda r: entry.program(p, r), (range(p),))


_BUILDERS: dict[str, Any] = {
    "inter_allgather": _inter_allgather,
    "inter_allgatherv": _inter_allgatherv,
    "allgatherv": _allgatherv,
    "bcast": _bcast,
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    "allreduce": _allreduce,
    "gatherv": _gatherv,
    "scatterv": _scatterv,
    "alltoall": _alltoall,
    "alltoallv": _alltoallv,
    "barrier": _barrier,
    **collectives_rooted.BUILDERS,
    **collectives_between.BUILDERS,
    **several.BUILDERS,
}


def schedule(
    collective: str,
    algorithm: str,
    *,
    nodes: Sequence[Hashable] = (),
    hosts: Hosts | None = None,
    **sizes: Any,
) -> Schedule:
    """The schedule of all ranks for a collective.

    `p=, q=, ka=, kb=` (ranks, and elements each contributes) for "inter_allgather";
    `a=[…], b=[…]` (the counts of each group) for "inter_allgatherv"; `counts=[…]` for
    "allgatherv", which is in place inside one group; `p=, m=, root=` (ranks, elements,
    and who has or gets them all) for "bcast" and "reduce"; `counts=[…]` (the block of
    the sum that each gets) for "reduce_scatter"; `p=, m=` for "allreduce"; `counts=[…],
    root=` for "gatherv" and "scatterv"; `p=, k=` (what one sends to each) for
    "alltoall"; `table=[[…]]` (a row for each sender) for "alltoallv"; `p=` for
    "barrier".

    Between a root and the q ranks of the other group: `q=, m=` for "inter_bcast" and
    "inter_reduce", `q=, k=` (elements of each of them) for "inter_gather" and
    "inter_scatter", `counts=[…]` for "inter_gatherv" and "inter_scatterv".

    Between groups also `p=, q=, m=` for "inter_allreduce"; `a=[…], b=[…]` or `p=, q=,
    ka=, kb=` (what each gets of the other group's sum) for "inter_reduce_scatter" and
    "inter_reduce_scatter_block"; `p=, q=, ka=, kb=` (what one sends to each of the
    others) for "inter_alltoall"; `ab=[[…]], ba=[[…]]` (a row for each sender) for
    "inter_alltoallv"; `p=, q=` for "inter_barrier".

    Among several groups, where each leaves out its own: `groups=[[…], …]` (the counts
    of each) for "multi_allgatherv"; `sizes=[…], table=[[…]]` (the ranks of each group,
    and a row for each sender) for "multi_alltoallv".

    `nodes=[…]` says on which node each rank is, in the order of their numbers; without
    it, all are on one. `hosts` is what messages of each rank cost, for the algorithms
    that ask for it. An intragroup stage may follow the algorithm's name:
    "segmented+ring".
    """
    build = _BUILDERS.get(collective)
    if build is None:
        raise ValueError(
            f"no collective {collective!r}; known: {', '.join(collectives())}"
        )
    takes = list(signature(build).parameters)[2:]
    if set(takes) != set(sizes):
        got = ", ".join(sizes) or "none"
        raise TypeError(f"{collective} takes {', '.join(takes)}; got {got}")
    entry, stage = resolve(collective, algorithm)
    made: Made = build(entry.given(nodes=tuple(nodes), hosts=hosts), stage, **sizes)
    n = made.groups[-1].stop
    if len(nodes) not in (0, n):
        raise ValueError(f"nodes has {len(nodes)} entries for {n} ranks")
    where = tuple(nodes) or (0,) * n
    return Schedule(collective, algorithm, *made, where, entry.node_memory, sizes)
