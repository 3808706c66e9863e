"""A collective, whatever its algorithm: the record that all else asks about it.

The records are in `inside`, `rooted`, `between` and `several`. From sizes and a
placement a record makes the schedule of an algorithm: the one that is verified,
simulated and drawn, and the one of which a communicator runs its own rank's rounds.
What a command, a benchmark or a setting must know of a collective is a field here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..algorithms.parts.stages import stage_by_size
from ..schedules.ir import Index, Program
from ..schedules.layout import Blocks, Shares, Side, Uneven
from ..schedules.registry import Algorithm, resolve
from ..schedules.schedule import Made, Schedule
from ..verify.contracts import Contract
from .known import Counts, OwnLines, Table
from .placement import UNPLACED, Placement

Sizes = dict[str, Any]
#: draws the counts of n ranks
Draw = Callable[[np.random.Generator, int], list[int]]

#: how many groups a collective is of; 3 stands for any number
INSIDE, BETWEEN, SEVERAL = 1, 2, 3
#: what a rank gives, or gets: a whole vector, one block, a block for each that it sends
#: to or receives from, or nothing
VECTOR, BLOCK, BLOCKS, NOTHING = "vector", "block", "a block for each", "nothing"


def one_group(most: int) -> Iterable[tuple[int, ...]]:
    """One group of up to so many ranks."""
    return ((n,) for n in range(1, most + 1))


def two_groups(most: int) -> Iterable[tuple[int, ...]]:
    """Two groups of up to so many ranks."""
    return product(range(1, most + 1), repeat=2)


def several_groups(most: int) -> Iterator[tuple[int, ...]]:
    """The sizes of three groups, and of fewer and more."""
    few = range(1, min(most, 3) + 1)
    for n in (1, 2, 3):
        yield from product(few, repeat=n)
    yield from ((most, 1, 2), (2, most, most), (1, 1, 1, 1), (2, 1, 3, 1, 2))


@dataclass(frozen=True, kw_only=True)
class Collective:
    """All that must be said of a collective once."""

    name: str
    #: MPI's names of the operations that it makes; of several, the first is the general
    #: one
    operations: tuple[str, ...]
    #: INSIDE, BETWEEN or SEVERAL
    groups: int
    #: VECTOR, BLOCK, BLOCKS or NOTHING; of a root, what it has or gets
    gives: str
    gets: str
    #: what all ranks do and promise, of an algorithm, a stage or None, and sizes by
    #: their names; sizes may be those that one rank knows (see `known`)
    make: Callable[..., Made]
    #: sizes that fit on a picture; their names are what `make` takes
    example: Sizes
    #: for groups of so many ranks, the sizes that algorithms are verified on; the first
    #: is the one that named stages are tried on
    cases: Callable[..., list[Sizes]]
    #: the sizes, of the bytes that each rank of each group gives
    of_bytes: Callable[..., Sizes] | None = None
    #: whether one rank has, or gets, everything
    is_rooted: bool = False
    #: whether contributions are combined by an operator
    combines: bool = False
    #: whether the blocks of ranks may differ
    is_irregular: bool = False
    #: whether a rank's own contribution lies where results go
    is_in_place: bool = False
    #: whether communicators make it; else that of the MPI library is taken
    is_on_mpi: bool = True
    #: the collective whose candidates are tried on a communicator, in regular calls of
    #: all ranks, to choose for this one
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
        made = self.make(placement.told(entry, unit), stage, **sizes)
        n = made.groups[-1].stop
        return Schedule(
            self.name,
            algorithm,
            *made,
            nodes=tuple(placement.nodes) or (0,) * n,
            node_memory=entry.node_memory,
            is_in_place=self.is_in_place,
            unit=unit,
            sizes=sizes,
        )

    def promise(self, sizes: Sizes) -> Contract:
        """What the collective promises, whatever the algorithm: what each rank begins
        with, and what it must have in the end."""
        return self.make(_NO_ALGORITHM, None, **sizes).promise()

    def sweep(self, most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
        """The sizes to verify algorithms on, on groups of up to so many ranks."""
        return (self.cases(rng, *n) for n in self.shapes(most))

    def shapes(self, most: int) -> Iterable[tuple[int, ...]]:
        """The groups that `cases` takes, of up to so many ranks; of a root and another
        group, the latter."""
        if self.groups == SEVERAL:
            return several_groups(most)
        is_pair = self.groups == BETWEEN and not self.is_rooted
        return two_groups(most) if is_pair else one_group(most)

    def ranks(self, sizes: Sizes) -> tuple[int, ...]:
        """The ranks of each group; of a root and another group, one and those."""
        if self.groups == SEVERAL:
            return tuple(sizes.get("sizes") or map(len, sizes["groups"]))
        sized = (sizes[name] for name in _RANKS if name in sizes)
        ranks = tuple(n if isinstance(n, int) else len(n) for n in sized)
        return (1, *ranks) if self.is_rooted and self.groups == BETWEEN else ranks


#: for the promise, which does not depend on it
_NO_ALGORITHM = Algorithm("", lambda *_: iter(()), "", lambda *_: 0.0)
#: sizes that say how many ranks a group has
_RANKS = ("p", "q", "a", "b", "ab", "ba", "counts", "table")


def among(
    sides: Sequence[Side],
    promise: Callable[[], Contract],
    program: Callable[[int, Index], Program],
) -> Made:
    """A collective of groups, of what a rank of group i does, or all of an array."""
    bases = [side.base for side in sides]

    def of(r: Index) -> Program:
        i = int(np.searchsorted(bases, np.ravel(r)[0], side="right")) - 1
        return program(i, r - bases[i])

    groups = tuple(range(side.base, side.base + side.n) for side in sides)
    return Made(promise, of, groups)


def blocks_of(name: str, counts: Sequence[int] | Blocks) -> Any:
    """The blocks of a group: those of the given counts, checked, or those that a rank
    knows."""
    if isinstance(counts, Blocks):
        return counts
    if len(counts) == 0:
        raise ValueError(f"{name} is empty: a group has at least one rank")
    if min(counts) < 0:
        raise ValueError(f"a count in {name} = {min(counts)}: must be at least 0")
    return Uneven(counts)


def counts_of(blocks: Blocks) -> list[int]:
    """The number of elements of each block."""
    return [int(blocks.size(i)) for i in range(blocks.n)]


def shares(m: int, n: int) -> list[int]:
    """The counts of a vector in n parts."""
    return counts_of(Shares(n, m))


def table_of(name: str, rows: Sequence[Sequence[int]] | Counts) -> Counts:
    """A table of counts, checked, or the lines of one that a rank knows."""
    if isinstance(rows, Table | OwnLines):
        return rows
    table = np.array(rows, np.int64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"{name} must be a table: a row for each sender")
    if table.min() < 0:
        raise ValueError(f"a count in {name} = {table.min()}: must be at least 0")
    return Table(table)


def rows_of(table: Counts) -> np.ndarray:
    """All rows of a table, for the promise of a collective of which all is known."""
    assert isinstance(table, Table), "a promise needs what every rank sends"
    return table.rows


def equal(rng: np.random.Generator, n: int) -> list[int]:
    """Counts of one size."""
    return [4] * n


def mixed(rng: np.random.Generator, n: int) -> list[int]:
    """Small counts, about a third of them zero."""
    counts: list[int] = np.maximum(rng.integers(-3, 7, n), 0).tolist()
    return counts


def giant(rng: np.random.Generator, n: int) -> list[int]:
    """One count that outweighs all others."""
    counts = mixed(rng, n)
    counts[int(rng.integers(n))] = 60
    return counts


def empty(rng: np.random.Generator, n: int) -> list[int]:
    """No elements at all."""
    return [0] * n


#: counts to verify algorithms on: of one group, and of two
KINDS: tuple[Draw, ...] = (mixed, equal, giant, empty)
PAIRS: tuple[tuple[Draw, Draw], ...] = (
    (mixed, mixed),
    (equal, giant),
    (giant, mixed),
    (mixed, empty),
    (empty, empty),
)
#: the elements of vectors and of blocks
VECTORS, BLOCK_SIZES = (24, 7, 0), (4, 1, 0)


def of_kinds(rng: np.random.Generator, n: int) -> list[Sizes]:
    """Counts of every kind."""
    return [{"counts": kind(rng, n)} for kind in KINDS]
