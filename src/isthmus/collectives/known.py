"""What one rank knows of the sizes of a collective.

A schedule is made of the sizes of all ranks. A rank of an irregular collective knows
some of them by MPI's rules: what it sends itself, and what it receives from each. An
algorithm that looks at no more makes the same rounds of these; one that looks at more
says so (`own_counts`, `other_counts`), and the rank asks before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..schedules.ir import Index
from ..schedules.layout import (
    Blocks,
    Even,
    GroupBlocks,
    OwnBlock,
    Passing,
    Rows,
    Uneven,
)

#: blocks are cut at multiples of this many bytes at the most
LARGEST_UNIT_BYTES = 64


def unit_of(bits: int) -> int:
    """The bytes of the unit in which blocks are cut, so that no basic element is split.

    The size of a basic type is a power of two; it divides the size of all blocks of
    that type, and so the lowest bit of all those sizes, or-ed together.
    """
    return min(bits & -bits or LARGEST_UNIT_BYTES, LARGEST_UNIT_BYTES)


@dataclass(frozen=True)
class Equal:
    """A group of n ranks that contribute the same number of bytes each."""

    n: int
    each: int

    @property
    def total(self) -> int:
        """The bytes of all blocks."""
        return self.n * self.each

    @property
    def largest(self) -> int:
        """The bytes of the largest block."""
        return self.each

    @property
    def bits(self) -> int:
        """All counts, or-ed together."""
        return self.each

    def blocks(self, unit: int) -> GroupBlocks:
        """The blocks, in elements of `unit` bytes."""
        return Even(self.n, self.each // unit)


@dataclass(frozen=True)
class Listed:
    """A group of which all counts are known, in bytes."""

    counts: np.ndarray

    @property
    def n(self) -> int:
        """The number of ranks."""
        return len(self.counts)

    @property
    def total(self) -> int:
        """The bytes of all blocks."""
        return int(self.counts.sum())

    @property
    def largest(self) -> int:
        """The bytes of the largest block."""
        return int(self.counts.max())

    @property
    def bits(self) -> int:
        """All counts, or-ed together."""
        return int(np.bitwise_or.reduce(self.counts))

    def blocks(self, unit: int) -> GroupBlocks:
        """The blocks, in elements of `unit` bytes."""
        return Uneven(self.counts // unit)


@dataclass(frozen=True)
class Summed:
    """The own group, of a rank that knows its own block and was told where that begins,
    the bytes of all, the largest block and the bits of all counts."""

    n: int
    index: int
    start: int
    own: int
    total: int
    largest: int
    bits: int

    def blocks(self, unit: int) -> GroupBlocks:
        """The blocks, in elements of `unit` bytes."""
        start, own, total = (x // unit for x in (self.start, self.own, self.total))
        return OwnBlock(self.n, self.index, start, own, total)


Group = Equal | Listed | Summed


def listed(counts: Sequence[int] | np.ndarray) -> Listed:
    """A group of the given counts."""
    return Listed(np.asarray(counts, np.int64))


@dataclass(frozen=True)
class Table:
    """What every rank sends to each: a row for each sender."""

    rows: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """How many send, and how many receive."""
        return self.rows.shape[0], self.rows.shape[1]

    @cached_property
    def _sent(self) -> np.ndarray:
        return _ends(self.rows)

    @cached_property
    def _received(self) -> np.ndarray:
        return _ends(self.rows.T)

    def sent(self, r: Index) -> Blocks:
        """The blocks that sender r sends."""
        return Rows(self._sent, r, "send")

    def received(self, r: Index) -> Blocks:
        """The blocks that receiver r receives."""
        return Rows(self._received, r)


@dataclass(frozen=True)
class OwnLines:
    """A table of which a rank knows what it sends to each, or what it receives from
    each, or both.

    `passing` has a row for each digit of the counts that pass through this rank, where
    an algorithm hands blocks on (see `Passing`).
    """

    shape: tuple[int, int]
    row: tuple[int, ...] = ()
    column: tuple[int, ...] = ()
    passing: np.ndarray | None = None

    def sent(self, r: Index) -> Blocks:
        """The blocks that this rank sends."""
        if self.passing is not None:
            return Passing(self.row, "send", self.passing)
        return _line(self.row, "send")

    def received(self, r: Index) -> Blocks:
        """The blocks that this rank receives."""
        return _line(self.column, "recv")


Counts = Table | OwnLines


def _ends(table: np.ndarray) -> np.ndarray:
    """Where the blocks of each row begin, and where the last ends."""
    return np.pad(np.cumsum(table, 1), ((0, 0), (1, 0)))


def _line(counts: tuple[int, ...], buf: str) -> Blocks:
    if min(counts) == max(counts):
        return Even(len(counts), counts[0], buf)
    return Uneven(counts, buf)
