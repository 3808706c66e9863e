"""Splitting a chain by small numbers, in one double scan over a table of bins."""

from __future__ import annotations

from typing import TypeAlias

from .chain import Link
from .dialogue import Dialogue
from .scans import Scan, double_scan

#: for every bin that is not empty: its nearest process on that side, and how many
Table: TypeAlias = dict[int, tuple[int, int]]


def _rightwards(x: Table, y: Table) -> Table:
    """Two tables seen from the right of both: the nearest is in y."""
    table = dict(x)
    for q, (near, count) in y.items():
        table[q] = (near, count + x[q][1] if q in x else count)
    return table


def _leftwards(x: Table, y: Table) -> Table:
    """Two tables seen from the left of both: the nearest is in x."""
    return _rightwards(y, x)


def scan_bins(link: Link, q: int | None) -> Dialogue[Scan]:
    """The tables of those before and after a process that is in bin q, or in none."""
    table: Table = {} if q is None else {q: (link.address, 1)}
    return (yield from double_scan(link, table, table, _rightwards, _leftwards))


def split_bins(link: Link, q: int | None) -> Dialogue[Link | None]:
    """The chain of those in the same bin, in the same order; bin None is no chain.

    ⌈log n⌉ rounds; the memory of a table, however many processes.
    """
    done = yield from scan_bins(link, q)
    if q is None:
        return None
    left, before = (done.before or {}).get(q, (None, 0))
    right, after = (done.after or {}).get(q, (None, 0))
    return Link(before, before + 1 + after, link.address, left, right)
