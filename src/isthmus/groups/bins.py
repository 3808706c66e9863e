"""Splitting a chain by small numbers, in one double scan over a table of bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .batch import exists, pick, where
from .chain import ChainLink, masked
from .dialogue import WORD_BYTES, Dialogue
from .scans import Scan, double_scan

#: bits of a bin's number, and the number of bins
BIN_BITS = 4
BIN_COUNT = 1 << BIN_BITS


@dataclass(frozen=True, eq=False)
class BinTable:
    """The fields of each bin: arrays of 32-bit numbers by bin, or by process and bin.

    The last field is the number of processes in a bin, 0 if the bin is empty.
    """

    fields: tuple[np.ndarray, ...]

    @property
    def nbytes(self) -> Any:
        """The bytes of a message: the number and the fields of each filled bin."""
        is_filled = (self.fields[-1] > 0).view(np.int8)
        # a sum along the last axis takes twice as long
        filled_bins = plain(np.einsum("...b->...", is_filled))
        return (1 + len(self.fields)) * WORD_BYTES * filled_bins

    def bin(self, q: Any) -> tuple[Any, ...]:
        """The fields of a bin."""
        if not isinstance(q, np.ndarray):
            return tuple([int(x[q]) for x in self.fields])
        processes = np.arange(len(q))
        return tuple([x[processes, q].astype(np.int64) for x in self.fields])


def plain(x: Any) -> Any:
    """A batch unchanged, and a scalar of one process as an int."""
    return x.astype(np.int64) if x.ndim else int(x)


def one_bin(bins: int, q: Any, *fields: Any) -> BinTable:
    """A table with one bin filled; none if q is None."""
    shape = np.shape(q)
    columns = tuple([np.zeros((*shape, bins), np.int32) for _ in fields])
    if not shape:
        for x, value in zip(columns, fields, strict=True):
            if q is not None:
                x[q] = value
        return BinTable(columns)
    processes = np.flatnonzero(q >= 0)
    for x, value in zip(columns, fields, strict=True):
        x[processes, q[processes]] = value[processes] if np.ndim(value) else value
    return BinTable(columns)


def _rightwards(x: BinTable, y: BinTable) -> BinTable:
    """Two tables seen from the right of both: the nearest process is in y."""
    (nearest_in_x, count_in_x), (nearest_in_y, count_in_y) = x.fields, y.fields
    return BinTable(
        (np.where(count_in_y > 0, nearest_in_y, nearest_in_x), count_in_x + count_in_y)
    )


def _leftwards(x: BinTable, y: BinTable) -> BinTable:
    """Two tables seen from the left of both: the nearest process is in x."""
    return _rightwards(y, x)


def scan_bins(link: ChainLink, q: int | None, bins: int = BIN_COUNT) -> Dialogue[Scan]:
    """The tables of the processes before and after a process in bin q, or in no bin.

    A bin's fields are its nearest process on that side, and its number of processes.
    """
    table = one_bin(bins, q, link.address, 1)
    return (yield from double_scan(link, table, table, _rightwards, _leftwards))


def split_bins(
    link: ChainLink, q: int | None, bins: int = BIN_COUNT
) -> Dialogue[ChainLink]:
    """The chain of the processes of one bin, in their order; bin None is no chain.

    ⌈log n⌉ rounds; the memory of one table, for any number of processes.
    """
    tables = yield from scan_bins(link, q, bins)
    in_a_bin = exists(q) & (link.size > 0)
    left, before = where(
        in_a_bin & exists(link.left), _side, (tables.before, q), (None, 0)
    )
    right, after = where(
        in_a_bin & exists(link.right), _side, (tables.after, q), (None, 0)
    )
    return masked(
        ChainLink(before, before + 1 + after, link.address, left, right), in_a_bin
    )


def _side(table: BinTable, q: Any) -> tuple[Any, Any]:
    """The nearest process of a bin, and the number of its processes."""
    nearest, count = table.bin(q)
    return pick(count > 0, nearest, None), count
