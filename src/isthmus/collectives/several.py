"""The records of the collectives among several groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from ..schedules.ir import Index, Program
from ..schedules.layout import Even, GroupBlocks, Side
from ..schedules.registry import Algorithm, Stage
from ..schedules.schedule import SizedCollective
from ..verify import contracts
from ..verify.contracts import Contract
from .collective import (
    BLOCK,
    BLOCKS,
    COUNTS_DRAWS,
    SEVERAL,
    Collective,
    Sizes,
    blocks_of,
    of_groups,
    rows_of,
    table_of,
)
from .known import Counts, CountTable


def _sides(blocks: Sequence[GroupBlocks]) -> tuple[Side, ...]:
    """Groups in a common numbering, without gaps."""
    bases = accumulate((group.n for group in blocks[:-1]), initial=0)
    return tuple(Side(base, group) for base, group in zip(bases, blocks, strict=True))


def _allgatherv(
    algorithm: Algorithm, stage: Stage | None, groups: Sequence[Sequence[int]]
) -> SizedCollective:
    if not groups:
        raise ValueError("groups is empty: must have the counts of each group")
    sides = _sides([blocks_of("groups", counts) for counts in groups])
    return of_groups(
        sides,
        lambda: contracts.multi_allgatherv([list(counts) for counts in groups]),
        lambda i, x: algorithm.program(i, x, sides, stage),
    )


def groups_of(sizes: Sequence[int]) -> tuple[Side, ...]:
    """Groups of given sizes, with empty blocks where blocks do not matter."""
    if min(sizes) < 1:
        raise ValueError(f"a size of a group = {min(sizes)}: must be at least 1")
    return _sides([Even(n, 0) for n in sizes])


def _alltoallv(
    algorithm: Algorithm,
    _: None,
    sizes: Sequence[int],
    table: Sequence[Sequence[int]] | Counts,
) -> SizedCollective:
    sides, counts = groups_of(sizes), table_of("table", table)
    group = np.repeat(np.arange(len(sides)), [side.n for side in sides])
    if counts.shape != (len(group), len(group)):
        raise ValueError(
            f"table is {counts.shape}: must have {len(group)} rows of that"
        )
    without_own = (
        _without_own(counts, group) if isinstance(counts, CountTable) else None
    )

    def promise() -> Contract:
        return contracts.alltoallv(rows_of(counts))

    def program(i: int, x: Index) -> Program:
        r = sides[i].base + x
        sent, received = without_own[i] if without_own else (counts, counts)
        return algorithm.program(i, x, sides, sent.sent(r), received.received(r))

    return of_groups(sides, promise, program)


def _without_own(
    table: CountTable, group: np.ndarray
) -> list[tuple[CountTable, CountTable]]:
    """For each group the counts to all ranks of remote groups, and the counts from
    them."""
    rows = table.rows
    if rows[group[:, None] == group].any():
        raise ValueError("table: nothing is sent inside a group")
    remote_ranks = [np.flatnonzero(group != i) for i in range(group[-1] + 1)]
    return [
        (CountTable(rows[:, ranks]), CountTable(rows[ranks])) for ranks in remote_ranks
    ]


def _counts_cases(rng: np.random.Generator, *groups: int) -> list[Sizes]:
    alike = [[draw(rng, n) for n in groups] for draw in COUNTS_DRAWS]
    mixed = [COUNTS_DRAWS[rng.integers(len(COUNTS_DRAWS))](rng, n) for n in groups]
    return [{"groups": counts} for counts in (*alike, mixed)]


def _table_cases(rng: np.random.Generator, *groups: int) -> list[Sizes]:
    n, group = sum(groups), np.repeat(np.arange(len(groups)), groups)
    sizes: list[Sizes] = []
    for draw in COUNTS_DRAWS:
        table = np.array([draw(rng, n) for _ in range(n)])
        table[group[:, None] == group] = 0
        sizes.append({"sizes": list(groups), "table": table.tolist()})
    return sizes


SEVERAL_RECORDS = (
    Collective(
        name="multi_allgatherv",
        operations=("Allgatherv", "Allgather"),
        groups=SEVERAL,
        gives=BLOCK,
        gets=BLOCKS,
        is_irregular=True,
        make=_allgatherv,
        example={"groups": [[4, 4], [4, 4, 4], [4, 4]]},
        cases=_counts_cases,
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
        cases=_table_cases,
    ),
)
