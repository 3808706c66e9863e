"""Schedules of the collectives among several groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..algorithms.stages import stage_by_size
from ..schedules.ir import Index, Program
from ..schedules.layout import Even, Rows, Side
from ..schedules.registry import Algorithm, Stage
from ..schedules.schedule import Made
from ..verify import contracts_several as contracts
from ..verify.contracts import Contract
from .between import offsets, rows_of
from .sizes import checked, counts_of, uneven

Sides = tuple[Side, ...]


def _among(
    sides: Sides, contract: Contract, program: Callable[[int, Index], Program]
) -> Made:
    """A collective of groups, of a program for one rank of a group or for all."""
    bases = [side.base for side in sides]

    def of(r: Index) -> Program:
        i = int(np.searchsorted(bases, np.ravel(r)[0], side="right")) - 1
        return program(i, r - bases[i])

    groups = tuple(range(side.base, side.base + side.n) for side in sides)
    return Made(contract, of, groups)


def _multi_allgatherv(
    entry: Algorithm, stage: Stage | None, *, groups: Sequence[Sequence[int]]
) -> Made:
    blocks = [uneven("groups", counts) for counts in groups]
    if not blocks:
        raise ValueError("groups is empty: must have the counts of each group")
    bases = accumulate((x.n for x in blocks[:-1]), initial=0)
    sides = tuple(Side(base, x) for base, x in zip(bases, blocks, strict=True))
    last = stage or stage_by_size(unit=1)
    contract = contracts.multi_allgatherv([counts_of(x) for x in blocks])
    return _among(sides, contract, lambda i, x: entry.program(i, x, sides, last))


def groups_of(sizes: Sequence[int]) -> Sides:
    """Groups of so many ranks, whose blocks do not matter."""
    bases = accumulate(sizes[:-1], initial=0)
    ranks = (checked("a size of a group", n, 1) for n in sizes)
    return tuple(Side(base, Even(n, 0)) for base, n in zip(bases, ranks, strict=True))


def _multi_alltoallv(
    entry: Algorithm, _: None, *, sizes: Sequence[int], table: Sequence[Sequence[int]]
) -> Made:
    sides, every = groups_of(sizes), rows_of("table", table)
    group = np.repeat(np.arange(len(sides)), [side.n for side in sides])
    if every.shape != (len(group), len(group)):
        raise ValueError(f"table is {every.shape}: must have {len(group)} rows of that")
    inside = group[:, None] == group
    if every[inside].any():
        raise ValueError("table: nothing is sent inside a group")
    others = [np.flatnonzero(group != i) for i in range(len(sides))]
    sent = [offsets(every[:, ranks]) for ranks in others]
    received = [offsets(every.T[:, ranks]) for ranks in others]

    def program(i: int, x: Index) -> Program:
        r = sides[i].base + x
        blocks = Rows(sent[i], r, "send"), Rows(received[i], r)
        return entry.program(i, x, sides, *blocks)

    return _among(sides, contracts.multi_alltoallv(sizes, every), program)


BUILDERS: dict[str, Any] = {
    "multi_allgatherv": _multi_allgatherv,
    "multi_alltoallv": _multi_alltoallv,
}
