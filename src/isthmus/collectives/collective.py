"""The record of a collective: all facts about a collective except its algorithms.

The records are in `inside`, `rooted`, `between` and `several`. From sizes and a
placement a record makes the schedule of an algorithm. Verification, simulation,
pictures and runs all use this schedule, so that a verified schedule cannot differ from
a run. Commands, benchmarks and settings read the fields of the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import Any

import numpy as np

from ..algorithms.parts.stages import stage_by_size
from ..schedules.ir import Index, Program
from ..schedules.layout import Blocks, Shares, Side, Uneven
from ..schedules.registry import Algorithm, resolve
from ..schedules.schedule import Schedule, SizedCollective
from ..verify.contracts import Contract
from .known import Counts, CountTable, OwnLines
from .placement import UNPLACED, Placement

Sizes = dict[str, Any]
#: a function that draws the counts of n ranks at random
CountsDraw = Callable[[np.random.Generator, int], list[int]]

#: the number of groups of a collective; 3 stands for any number
INSIDE, BETWEEN, SEVERAL = 1, 2, 3
#: the data that one rank gives, or gets: a vector, a block, a block for each rank that
#: it sends to or receives from, or nothing
VECTOR, BLOCK, BLOCKS, NOTHING = "vector", "block", "a block for each", "nothing"


def one_group(most: int) -> Iterable[tuple[int, ...]]:
    """The sizes of one group of at most `most` ranks."""
    return ((n,) for n in range(1, most + 1))


def two_groups(most: int) -> Iterable[tuple[int, ...]]:
    """The sizes of two groups of at most `most` ranks each."""
    return product(range(1, most + 1), repeat=2)


def several_groups(most: int) -> Iterator[tuple[int, ...]]:
    """The sizes of one to five groups of at most `most` ranks each."""
    small_sizes = range(1, min(most, 3) + 1)
    for n in (1, 2, 3):
        yield from product(small_sizes, repeat=n)
    yield from ((most, 1, 2), (2, most, most), (1, 1, 1, 1), (2, 1, 3, 1, 2))


@dataclass(frozen=True, kw_only=True)
class Collective:
    """All facts about a collective, each in a single place."""

    name: str
    #: MPI's names of the operations that the collective implements, the general first
    operations: tuple[str, ...]
    #: INSIDE, BETWEEN or SEVERAL
    groups: int
    #: VECTOR, BLOCK, BLOCKS or NOTHING: what a rank with a contribution gives, and what
    #: a rank with a result gets; with a root, one of the two is the root alone
    gives: str
    gets: str
    #: makes the programs and the promise, from an algorithm, a stage or None, and sizes
    #: by name; sizes may be those that a single rank knows (see `known`)
    make: Callable[..., SizedCollective]
    #: sizes that fit on a picture; their names are the arguments of `make`
    example: Sizes
    #: for groups of given ranks, the sizes on which algorithms are verified; algorithms
    #: with a named stage are verified on the first
    cases: Callable[..., list[Sizes]]
    #: the sizes, from the bytes that each rank of each group gives
    of_bytes: Callable[..., Sizes] | None = None
    #: whether a single rank has, or gets, all data
    is_rooted: bool = False
    #: whether contributions are combined by an operator
    combines: bool = False
    #: whether the blocks of ranks may differ
    is_irregular: bool = False
    #: whether a rank's own contribution lies where results go
    is_in_place: bool = False
    #: whether communicators run the collective; else the MPI library does
    is_on_mpi: bool = True
    #: on one node, without a trial: the longest block or vector that goes through the
    #: memory of the node. The root copies all blocks there by itself, and messages go
    #: from array to array
    node_memory_bytes: float = inf
    #: the collective of the trial that chooses for this collective: irregular calls
    #: and calls of a root take the result of regular calls of all ranks
    tried_as: str = ""

    def schedule(
        self,
        algorithm: str,
        sizes: Sizes,
        placement: Placement = UNPLACED,
        unit: int = 1,
    ) -> Schedule:
        """The schedule of all ranks, of sizes in elements of `unit` bytes."""
        entry, stage = resolve(self.name, algorithm)
        stage = stage or stage_by_size(unit, placement.ring_bytes)
        programs = self.make(placement.configured(entry, unit), stage, **sizes)
        n = programs.groups[-1].stop
        return Schedule(
            self.name,
            algorithm,
            *programs,
            nodes=tuple(placement.nodes) or (0,) * n,
            node_memory=entry.node_memory,
            is_in_place=self.is_in_place,
            unit=unit,
            sizes=sizes,
        )

    def promise(self, sizes: Sizes) -> Contract:
        """The contract of the collective.

        No algorithm is necessary, since contracts depend on sizes only: limits and
        bounds hold for all algorithms.
        """
        return self.make(_NO_ALGORITHM, None, **sizes).promise()

    def sweep(self, most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
        """The sizes for verification, of groups of at most `most` ranks."""
        return (self.cases(rng, *n) for n in self.shapes(most))

    def shapes(self, most: int) -> Iterable[tuple[int, ...]]:
        """The arguments of `cases`, groups of at most `most` ranks each.

        Between a root and a group only the group counts, since a root is a single rank.
        """
        if self.groups == SEVERAL:
            return several_groups(most)
        is_pair = self.groups == BETWEEN and not self.is_rooted
        return two_groups(most) if is_pair else one_group(most)

    def ranks(self, sizes: Sizes) -> tuple[int, ...]:
        """The number of ranks in each group; a root of a remote group counts as one."""
        if self.groups == SEVERAL:
            return tuple(sizes.get("sizes") or map(len, sizes["groups"]))
        values = (sizes[name] for name in _SIZES_WITH_RANKS if name in sizes)
        ranks = tuple(n if isinstance(n, int) else len(n) for n in values)
        return (1, *ranks) if self.is_rooted and self.groups == BETWEEN else ranks


#: stands for the algorithm where only the promise is needed
_NO_ALGORITHM = Algorithm("", lambda *_: iter(()), "", lambda *_: 0.0)
#: the names of sizes from which the number of ranks of a group follows
_SIZES_WITH_RANKS = ("p", "q", "a", "b", "ab", "ba", "counts", "table")


def of_groups(
    sides: Sequence[Side],
    promise: Callable[[], Contract],
    program: Callable[[int, Index], Program],
) -> SizedCollective:
    """The programs of groups, from the program of a rank of group i.

    The program takes one rank, or an array of ranks of a single group, because the
    first rank decides which group's algorithm runs.
    """
    bases = [side.base for side in sides]

    def of(r: Index) -> Program:
        i = int(np.searchsorted(bases, np.ravel(r)[0], side="right")) - 1
        return program(i, r - bases[i])

    groups = tuple(range(side.base, side.base + side.n) for side in sides)
    return SizedCollective(promise, of, groups)


def blocks_of(name: str, counts: Sequence[int] | Blocks) -> Any:
    """The blocks of a group, from checked counts, or as a rank knows them."""
    if isinstance(counts, Blocks):
        return counts
    if len(counts) == 0:
        raise ValueError(f"{name} is empty: a group has at least one rank")
    if min(counts) < 0:
        raise ValueError(f"a count in {name} = {min(counts)}: must be at least 0")
    return Uneven(counts)


def counts_of(blocks: Blocks) -> list[int]:
    """The elements of each block."""
    return [int(blocks.size(i)) for i in range(blocks.n)]


def shares(m: int, n: int) -> list[int]:
    """The counts of a vector of m elements in n nearly equal parts."""
    return counts_of(Shares(n, m))


def table_of(name: str, rows: Sequence[Sequence[int]] | Counts) -> Counts:
    """A table of counts, checked, or the lines of a table as a rank knows them."""
    if isinstance(rows, CountTable | OwnLines):
        return rows
    table = np.array(rows, np.int64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"{name} must be a table: a row for each sender")
    if table.min() < 0:
        raise ValueError(f"a count in {name} = {table.min()}: must be at least 0")
    return CountTable(table)


def rows_of(table: Counts) -> np.ndarray:
    """All rows of a table, for a promise; a rank's own lines are not enough."""
    assert isinstance(table, CountTable), "a promise needs what every rank sends"
    return table.rows


def equal(rng: np.random.Generator, n: int) -> list[int]:
    """Equal counts of n ranks."""
    return [4] * n


def mixed(rng: np.random.Generator, n: int) -> list[int]:
    """Small counts, two fifths of them zero, because empty blocks are special cases."""
    counts: list[int] = np.maximum(rng.integers(-3, 7, n), 0).tolist()
    return counts


def giant(rng: np.random.Generator, n: int) -> list[int]:
    """Small counts, and a single count that outweighs the rest."""
    counts = mixed(rng, n)
    counts[int(rng.integers(n))] = 60
    return counts


def empty(rng: np.random.Generator, n: int) -> list[int]:
    """Counts of zero for n ranks."""
    return [0] * n


#: counts on which to verify algorithms: of one group, and of two
COUNTS_DRAWS: tuple[CountsDraw, ...] = (mixed, equal, giant, empty)
COUNTS_DRAW_PAIRS: tuple[tuple[CountsDraw, CountsDraw], ...] = (
    (mixed, mixed),
    (equal, giant),
    (giant, mixed),
    (mixed, empty),
    (empty, empty),
)
#: the elements of vectors and of blocks on which to verify algorithms
VECTORS, BLOCK_SIZES = (24, 7, 0), (4, 1, 0)


def counts_cases(rng: np.random.Generator, n: int) -> list[Sizes]:
    """Counts of each kind, as sizes."""
    return [{"counts": draw(rng, n)} for draw in COUNTS_DRAWS]
