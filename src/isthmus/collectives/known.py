"""The sizes of a collective as far as a single rank knows them.

A schedule depends on the sizes of all ranks. By MPI's rules a rank of an irregular
collective knows only the sizes of the data it sends, and of the data it receives from
each rank. An algorithm that reads no further sizes makes equal rounds either way. An
algorithm that reads further sizes has `own_counts` or `other_counts` set, and the rank
asks its peers before the call.
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

#: the largest unit of cuts in blocks
MAX_UNIT_BYTES = 64


def unit_of(bits: int) -> int:
    """The bytes of the unit in which blocks are cut, so that no basic element is split.

    `bits` are the sizes of all blocks, or-ed together. The size of a basic type is a
    power of two that divides the size of each block, and so the lowest bit of `bits`.
    """
    return min(bits & -bits or MAX_UNIT_BYTES, MAX_UNIT_BYTES)


@dataclass(frozen=True)
class Equal:
    """A group of n ranks that contribute equally many bytes."""

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
    """A group whose counts are all known, in bytes."""

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
    """The local group, of a rank that knows its own block and a summary of all blocks.

    `own` and `start` are the bytes and the offset of the own block, `total` the bytes
    of all blocks, `largest` the bytes of the largest, and `bits` the or of all counts.
    """

    n: int
    index: int
    start: int
    own: int
    total: int
    largest: int
    bits: int

    def blocks(self, unit: int) -> GroupBlocks:
        """The blocks, in elements of `unit` bytes."""
        start, own = self.start // unit, self.own // unit
        return OwnBlock(self.n, self.index, start, own, self.total // unit)


Group = Equal | Listed | Summed


def listed(counts: Sequence[int] | np.ndarray) -> Listed:
    """The group with a list of counts."""
    return Listed(np.asarray(counts, np.int64))


@dataclass(frozen=True)
class CountTable:
    """The counts of all messages of an alltoall: a row for each sender."""

    rows: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """The number of senders, and the number of receivers."""
        return self.rows.shape[0], self.rows.shape[1]

    @cached_property
    def _sent(self) -> np.ndarray:
        return _ends(self.rows)

    @cached_property
    def _received(self) -> np.ndarray:
        return _ends(self.rows.T)

    def sent(self, r: Index) -> Blocks:
        """The blocks sent by sender r."""
        return Rows(self._sent, r, "send")

    def received(self, r: Index) -> Blocks:
        """The blocks received by receiver r."""
        return Rows(self._received, r)


@dataclass(frozen=True)
class OwnLines:
    """The own row of a rank in a count table, or the own column, or both.

    `passing` has a row for each digit of the counts that pass through the rank, where
    an algorithm hands blocks on (see `Passing`).
    """

    shape: tuple[int, int]
    row: tuple[int, ...] = ()
    column: tuple[int, ...] = ()
    passing: np.ndarray | None = None

    def sent(self, r: Index) -> Blocks:
        """The blocks sent by the rank."""
        if self.passing is not None:
            return Passing(self.row, "send", self.passing)
        return _line(self.row, "send")

    def received(self, r: Index) -> Blocks:
        """The blocks received by the rank."""
        return _line(self.column, "recv")


Counts = CountTable | OwnLines


def _ends(table: np.ndarray) -> np.ndarray:
    """The offsets of the blocks of each row, and the end of the last."""
    return np.pad(np.cumsum(table, 1), ((0, 0), (1, 0)))


def _line(counts: tuple[int, ...], buf: str) -> Blocks:
    if min(counts) == max(counts):
        return Even(len(counts), counts[0], buf)
    return Uneven(counts, buf)
