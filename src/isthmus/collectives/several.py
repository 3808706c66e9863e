"""The collectives among several groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from ..algorithms.parts.stages import stage_by_size
from ..schedules.ir import Index, Program
from ..schedules.layout import Even, GroupBlocks, Rows, Side
from ..schedules.registry import Algorithm, Stage
from ..schedules.schedule import Made
from ..verify import contracts
from .collective import (
    KINDS,
    Collective,
    Sizes,
    among,
    offsets,
    rows_of,
    several_groups,
    uneven,
)


def _sides(blocks: Sequence[GroupBlocks]) -> tuple[Side, ...]:
    """Groups that follow each other in one numbering."""
    bases = accumulate((x.n for x in blocks[:-1]), initial=0)
    return tuple(Side(base, x) for base, x in zip(bases, blocks, strict=True))


def _allgatherv(
    entry: Algorithm, stage: Stage | None, groups: Sequence[Sequence[int]]
) -> Made:
    if not groups:
        raise ValueError("groups is empty: must have the counts of each group")
    sides = _sides([uneven("groups", counts) for counts in groups])
    last = stage or stage_by_size(unit=1)
    contract = contracts.multi_allgatherv(groups)
    return among(sides, contract, lambda i, x: entry.program(i, x, sides, last))


def groups_of(sizes: Sequence[int]) -> tuple[Side, ...]:
    """Groups of so many ranks, whose blocks do not matter."""
    if min(sizes) < 1:
        raise ValueError(f"a size of a group = {min(sizes)}: must be at least 1")
    return _sides([Even(n, 0) for n in sizes])


def _alltoallv(
    entry: Algorithm, _: None, sizes: Sequence[int], table: Sequence[Sequence[int]]
) -> Made:
    sides, every = groups_of(sizes), rows_of("table", table)
    group = np.repeat(np.arange(len(sides)), [side.n for side in sides])
    if every.shape != (len(group), len(group)):
        raise ValueError(f"table is {every.shape}: must have {len(group)} rows of that")
    if every[group[:, None] == group].any():
        raise ValueError("table: nothing is sent inside a group")
    others = [np.flatnonzero(group != i) for i in range(len(sides))]
    sent = [offsets(every[:, ranks]) for ranks in others]
    received = [offsets(every.T[:, ranks]) for ranks in others]

    def program(i: int, x: Index) -> Program:
        r = sides[i].base + x
        blocks = Rows(sent[i], r, "send"), Rows(received[i], r)
        return entry.program(i, x, sides, *blocks)

    return among(sides, contracts.alltoallv(every), program)


def _lists(rng: np.random.Generator, *groups: int) -> list[Sizes]:
    found = [[a(rng, n) for n in groups] for a in KINDS]
    mixed = [KINDS[rng.integers(len(KINDS))](rng, n) for n in groups]
    return [{"groups": counts} for counts in (*found, mixed)]


def _tables(rng: np.random.Generator, *groups: int) -> list[Sizes]:
    n, group = sum(groups), np.repeat(np.arange(len(groups)), groups)
    found = []
    for kind in KINDS:
        table = np.array([kind(rng, n) for _ in range(n)])
        table[group[:, None] == group] = 0
        found.append({"sizes": list(groups), "table": table.tolist()})
    return found


COLLECTIVES = {
    "multi_allgatherv": Collective(
        _allgatherv,
        {"groups": [[4, 4], [4, 4, 4], [4, 4]]},
        _lists,
        groups=several_groups,
    ),
    "multi_alltoallv": Collective(
        _alltoallv,
        {
            "sizes": [1, 2, 1],
            "table": [[0, 2, 1, 3], [1, 0, 0, 2], [2, 0, 0, 1], [3, 1, 2, 0]],
        },
        _tables,
        groups=several_groups,
    ),
}
