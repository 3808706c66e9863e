"""The records of the collectives among several groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from ..schedules.ir import Index, Program
from ..schedules.layout import Even, GroupBlocks, Side
from ..schedules.registry import Algorithm, Stage
from ..schedules.schedule import Made
from ..verify import contracts
from ..verify.contracts import Contract
from .collective import (
    BLOCK,
    BLOCKS,
    KINDS,
    SEVERAL,
    Collective,
    Sizes,
    among,
    blocks_of,
    rows_of,
    table_of,
)
from .known import Counts, Table


def _sides(blocks: Sequence[GroupBlocks]) -> tuple[Side, ...]:
    """Groups that follow each other in one numbering."""
    bases = accumulate((x.n for x in blocks[:-1]), initial=0)
    return tuple(Side(base, x) for base, x in zip(bases, blocks, strict=True))


def _allgatherv(
    algorithm: Algorithm, stage: Stage | None, groups: Sequence[Sequence[int]]
) -> Made:
    if not groups:
        raise ValueError("groups is empty: must have the counts of each group")
    sides = _sides([blocks_of("groups", counts) for counts in groups])
    return among(
        sides,
        lambda: contracts.multi_allgatherv([list(counts) for counts in groups]),
        lambda i, x: algorithm.program(i, x, sides, stage),
    )


def groups_of(sizes: Sequence[int]) -> tuple[Side, ...]:
    """Groups of so many ranks, whose blocks do not matter."""
    if min(sizes) < 1:
        raise ValueError(f"a size of a group = {min(sizes)}: must be at least 1")
    return _sides([Even(n, 0) for n in sizes])


def _alltoallv(
    algorithm: Algorithm,
    _: None,
    sizes: Sequence[int],
    table: Sequence[Sequence[int]] | Counts,
) -> Made:
    sides, counts = groups_of(sizes), table_of("table", table)
    group = np.repeat(np.arange(len(sides)), [side.n for side in sides])
    if counts.shape != (len(group), len(group)):
        raise ValueError(
            f"table is {counts.shape}: must have {len(group)} rows of that"
        )
    known = _without_own(counts, group) if isinstance(counts, Table) else None

    def promise() -> Contract:
        return contracts.alltoallv(rows_of(counts))

    def program(i: int, x: Index) -> Program:
        r = sides[i].base + x
        sent, received = known[i] if known else (counts, counts)
        return algorithm.program(i, x, sides, sent.sent(r), received.received(r))

    return among(sides, promise, program)


def _without_own(table: Table, group: np.ndarray) -> list[tuple[Table, Table]]:
    """For each group, what goes to each rank of the others and what comes from it."""
    rows = table.rows
    if rows[group[:, None] == group].any():
        raise ValueError("table: nothing is sent inside a group")
    others = [np.flatnonzero(group != i) for i in range(group[-1] + 1)]
    return [(Table(rows[:, ranks]), Table(rows[ranks])) for ranks in others]


def _lists(rng: np.random.Generator, *groups: int) -> list[Sizes]:
    of_one_kind = [[kind(rng, n) for n in groups] for kind in KINDS]
    of_any = [KINDS[rng.integers(len(KINDS))](rng, n) for n in groups]
    return [{"groups": counts} for counts in (*of_one_kind, of_any)]


def _tables(rng: np.random.Generator, *groups: int) -> list[Sizes]:
    n, group = sum(groups), np.repeat(np.arange(len(groups)), groups)
    sizes: list[Sizes] = []
    for kind in KINDS:
        table = np.array([kind(rng, n) for _ in range(n)])
        table[group[:, None] == group] = 0
        sizes.append({"sizes": list(groups), "table": table.tolist()})
    return sizes


RECORDS = (
    Collective(
        name="multi_allgatherv",
        operations=("Allgatherv", "Allgather"),
        groups=SEVERAL,
        gives=BLOCK,
        gets=BLOCKS,
        is_irregular=True,
        make=_allgatherv,
        example={"groups": [[4, 4], [4, 4, 4], [4, 4]]},
        cases=_lists,
    ),
    Collective(
        name="multi_alltoallv",
        operations=("Alltoallv", "Alltoall"),
        groups=SEVERAL,
        gives=BLOCKS,
        gets=BLOCKS,
        is_irregular=True,
        make=_alltoallv,
        example={
            "sizes": [1, 2, 1],
            "table": [[0, 2, 1, 3], [1, 0, 0, 2], [2, 0, 0, 1], [3, 1, 2, 0]],
        },
        cases=_tables,
    ),
)
