"""Schedules of all ranks: a collective, an algorithm and sizes, made one object."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from inspect import Parameter, signature
from typing import Any

import numpy as np

from . import (
    algorithms,
    collectives_between,
    collectives_rooted,
    contracts,
    contracts_between,
)
from .choose import stage_by_size
from .ir import Index, Program
from .layout import Blocks, Even, Found, Side
from .registry import Algorithm, Stage, collectives, fitting, resolve
from .schedules import Schedule
from .sizes import checked, counts_of, uneven

__all__ = ["algorithms", "inter_program", "schedule"]


def inter_program(
    entry: Algorithm, sides: tuple[Side, Side], r: Index, stage: Stage
) -> Program:
    """The program of rank r, or of an array of ranks of one group."""
    mine = int(np.ravel(r)[0] >= sides[1].base)
    here, there = sides[mine], sides[1 - mine]
    return entry.program(r - here.base, here, there, stage)


def _inter(collective: str, full: str, a: Found, b: Found) -> Schedule:
    entry, chosen = resolve(collective, full)
    stage = chosen or stage_by_size(unit=1)
    sides = Side(0, a), Side(a.n, b)

    return Schedule(
        collective,
        full,
        contracts.inter_allgatherv(counts_of(a), counts_of(b)),
        lambda r: inter_program(entry, sides, r, stage),
        (range(a.n), range(a.n, a.n + b.n)),
    )


def _inter_allgather(full: str, *, p: int, q: int, ka: int, kb: int) -> Schedule:
    a = Even(checked("p", p, 1), checked("ka", ka, 0))
    b = Even(checked("q", q, 1), checked("kb", kb, 0))
    return _inter("inter_allgather", full, a, b)


def _inter_allgatherv(full: str, *, a: Sequence[int], b: Sequence[int]) -> Schedule:
    return _inter("inter_allgatherv", full, uneven("a", a), uneven("b", b))


def _allgatherv(
    full: str, *, counts: Sequence[int], nodes: Sequence[Hashable] = ()
) -> Schedule:
    blocks = uneven("counts", counts)
    n = blocks.n
    if len(nodes) not in (0, n):
        raise ValueError(f"nodes has {len(nodes)} entries for {n} ranks")
    entry = fitting("allgatherv", full, n).given(nodes=tuple(nodes))
    contract = contracts.allgatherv(counts_of(blocks))
    program = partial(_blocks_of, entry, blocks)
    return Schedule("allgatherv", full, contract, program, (range(n),))


def _blocks_of(entry: Algorithm, blocks: Blocks, r: Index) -> Program:
    """What a rank of one group does with the blocks of all."""
    return entry.program(blocks.n, r, blocks)


def _reduce_scatter(full: str, *, counts: Sequence[int]) -> Schedule:
    blocks = uneven("counts", counts)
    entry = fitting("reduce_scatter", full, blocks.n)
    contract = contracts_between.reduce_scatter(counts, entry.commutative)
    program = partial(_blocks_of, entry, blocks)
    return Schedule("reduce_scatter", full, contract, program, (range(blocks.n),))


def _rooted(collective: str, full: str, p: int, m: int, root: int) -> Schedule:
    checked("p", p, 1)
    checked("m", m, 0)
    if not 0 <= root < p:
        raise ValueError(f"root = {root}: must be a rank, 0 to {p - 1}")
    entry = fitting(collective, full, p)
    if collective == "bcast":
        contract = contracts.bcast(m, root)
    else:
        contract = contracts.reduce(p, m, root, entry.commutative)

    def program(r: Index) -> Program:
        return entry.program(p, r, m, root)

    return Schedule(collective, full, contract, program, (range(p),))


def _bcast(full: str, *, p: int, m: int, root: int) -> Schedule:
    return _rooted("bcast", full, p, m, root)


def _reduce(full: str, *, p: int, m: int, root: int) -> Schedule:
    return _rooted("reduce", full, p, m, root)


_BUILDERS: dict[str, Any] = {
    "inter_allgather": _inter_allgather,
    "inter_allgatherv": _inter_allgatherv,
    "allgatherv": _allgatherv,
    "bcast": _bcast,
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    **collectives_rooted.BUILDERS,
    **collectives_between.BUILDERS,
}


def schedule(collective: str, algorithm: str, **sizes: Any) -> Schedule:
    """The schedule of all ranks for a collective.

    `p=, q=, ka=, kb=` (ranks, and elements each contributes) for "inter_allgather";
    `a=[…], b=[…]` (the counts of each group) for "inter_allgatherv"; `counts=[…]` for
    "allgatherv", which is in place inside one group, and where `nodes=[…]` may say on
    which node each rank is; `p=, m=, root=` (ranks, elements, and who has or gets them
    all) for "bcast" and "reduce"; `counts=[…]` (the block of the sum that each gets)
    for "reduce_scatter".

    Between a root and the q ranks of the other group: `q=, m=` for "inter_bcast" and
    "inter_reduce", `q=, k=` (elements of each of them) for "inter_gather" and
    "inter_scatter", `counts=[…]` for "inter_gatherv" and "inter_scatterv".

    Between groups also `p=, q=, m=` for "inter_allreduce"; `a=[…], b=[…]` or `p=, q=,
    ka=, kb=` (what each gets of the other group's sum) for "inter_reduce_scatter" and
    "inter_reduce_scatter_block"; `p=, q=, ka=, kb=` (what one sends to each of the
    others) for "inter_alltoall"; `ab=[[…]], ba=[[…]]` (a row for each sender) for
    "inter_alltoallv"; `p=, q=` for "inter_barrier".

    An intragroup stage may follow the algorithm's name: "segmented+ring".
    """
    build = _BUILDERS.get(collective)
    if build is None:
        raise ValueError(
            f"no collective {collective!r}; known: {', '.join(collectives())}"
        )
    known = dict(signature(build).parameters)
    del known["full"]
    needed = {name for name, x in known.items() if x.default is Parameter.empty}
    if not needed <= set(sizes) <= set(known):
        takes = ", ".join(known)
        raise TypeError(f"{collective} takes {takes}; got {', '.join(sizes) or 'none'}")
    result: Schedule = build(algorithm, **sizes)
    return result
