"""A collective, whatever its algorithm: how its schedule is made, and of what sizes.

A record for each is in `inside`, `rooted`, `between` or `several`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..schedules.ir import Index, Program
from ..schedules.layout import Blocks, Shares, Side, Uneven
from ..schedules.schedule import Made
from ..verify.contracts import Contract

Sizes = dict[str, Any]
Counts = Callable[[np.random.Generator, int], list[int]]


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


@dataclass(frozen=True)
class Collective:
    """All that must be said of a collective once."""

    #: the schedule, of an algorithm, a stage or None, and sizes by their names
    make: Callable[..., Made]
    #: sizes that fit on a picture; their names are what it takes
    example: Sizes
    #: for groups of so many ranks, the sizes that algorithms are verified on; the first
    #: is the one that named stages are tried on
    verified_on: Callable[..., list[Sizes]]
    #: the sizes, of the bytes that each rank of each group gives
    of_bytes: Callable[..., Sizes] | None = None
    #: the groups to verify algorithms on, of up to so many ranks
    groups: Callable[[int], Iterable[tuple[int, ...]]] = one_group

    def sweep(self, most: int, rng: np.random.Generator) -> Iterator[list[Sizes]]:
        """The sizes to verify algorithms on, on groups of up to so many ranks."""
        return (self.verified_on(rng, *ranks) for ranks in self.groups(most))


def among(
    sides: Sequence[Side], contract: Contract, program: Callable[[int, Index], Program]
) -> Made:
    """A collective of groups, of what a rank of group i does, or all of an array."""
    bases = [side.base for side in sides]

    def of(r: Index) -> Program:
        i = int(np.searchsorted(bases, np.ravel(r)[0], side="right")) - 1
        return program(i, r - bases[i])

    groups = tuple(range(side.base, side.base + side.n) for side in sides)
    return Made(contract, of, groups)


def uneven(name: str, counts: Sequence[int]) -> Uneven:
    """The blocks of a group, of the given counts, checked."""
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


def rows_of(name: str, rows: Sequence[Sequence[int]]) -> np.ndarray:
    """A table of counts, checked."""
    table = np.array(rows, np.int64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"{name} must be a table: a row for each sender")
    if table.min() < 0:
        raise ValueError(f"a count in {name} = {table.min()}: must be at least 0")
    return table


def offsets(table: np.ndarray) -> np.ndarray:
    """Where the blocks of each row begin, and where the last ends."""
    return np.pad(np.cumsum(table, 1), ((0, 0), (1, 0)))


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
KINDS: tuple[Counts, ...] = (mixed, equal, giant, empty)
PAIRS: tuple[tuple[Counts, Counts], ...] = (
    (mixed, mixed),
    (equal, giant),
    (giant, mixed),
    (mixed, empty),
    (empty, empty),
)
#: the elements of vectors and of blocks
VECTORS, BLOCKS = (24, 7, 0), (4, 1, 0)


def of_kinds(rng: np.random.Generator, n: int) -> list[Sizes]:
    """Counts of every kind."""
    return [{"counts": kind(rng, n)} for kind in KINDS]
