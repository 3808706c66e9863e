"""Splitting a chain by small numbers, in one double scan over a table of bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .chain import Link, masked
from .dialogue import WORD, Dialogue
from .lanes import exists, pick, where
from .scans import Scan, double_scan

#: bits that choose a bin, and how many bins that makes
BITS = 4
BINS = 1 << BITS


@dataclass(frozen=True, eq=False)
class Table:
    """What is known of each bin: arrays of 32-bit numbers by bin, or by lane and bin.

    The last of them is how many processes are in a bin, 0 if it is empty.
    """

    fields: tuple[np.ndarray, ...]

    @property
    def nbytes(self) -> Any:
        """A bin that is not empty is sent as its number and its fields."""
        some = (self.fields[-1] > 0).view(np.int8)
        # a sum along the last axis takes twice as long
        found = plain(np.einsum("...b->...", some))
        return (1 + len(self.fields)) * WORD * found

    def bin(self, q: Any) -> tuple[Any, ...]:
        """The fields of a bin."""
        if not isinstance(q, np.ndarray):
            return tuple([int(x[q]) for x in self.fields])
        here = np.arange(len(q))
        return tuple([x[here, q].astype(np.int64) for x in self.fields])


def plain(x: Any) -> Any:
    """Lanes as they are, and the number of one process as an int."""
    return x.astype(np.int64) if x.ndim else int(x)


def one_bin(bins: int, q: Any, *fields: Any) -> Table:
    """A table with one bin filled; none if q is None."""
    shape = np.shape(q)
    found = tuple([np.zeros((*shape, bins), np.int32) for _ in fields])
    if not shape:
        for x, value in zip(found, fields, strict=True):
            if q is not None:
                x[q] = value
        return Table(found)
    here = np.flatnonzero(q >= 0)
    for x, value in zip(found, fields, strict=True):
        x[here, q[here]] = value[here] if np.ndim(value) else value
    return Table(found)


def _rightwards(x: Table, y: Table) -> Table:
    """Two tables seen from the right of both: the nearest is in y."""
    (near, count), (nearer, more) = x.fields, y.fields
    return Table((np.where(more > 0, nearer, near), count + more))


def _leftwards(x: Table, y: Table) -> Table:
    """Two tables seen from the left of both: the nearest is in x."""
    return _rightwards(y, x)


def scan_bins(link: Link, q: int | None, bins: int = BINS) -> Dialogue[Scan]:
    """The tables of those before and after a process that is in bin q, or in none.

    A bin has its nearest process on that side, and how many there are.
    """
    table = one_bin(bins, q, link.address, 1)
    return (yield from double_scan(link, table, table, _rightwards, _leftwards))


def split_bins(link: Link, q: int | None, bins: int = BINS) -> Dialogue[Link]:
    """The chain of those in the same bin, in the same order; bin None is no chain.

    ⌈log n⌉ rounds; the memory of a table, however many processes.
    """
    done = yield from scan_bins(link, q, bins)
    some = exists(q) & (link.size > 0)
    left, before = where(some & exists(link.left), _side, (done.before, q), (None, 0))
    right, after = where(some & exists(link.right), _side, (done.after, q), (None, 0))
    return masked(Link(before, before + 1 + after, link.address, left, right), some)


def _side(table: Table, q: Any) -> tuple[Any, Any]:
    """The nearest process of a bin, and how many there are."""
    near, count = table.bin(q)
    return pick(count > 0, near, None), count
