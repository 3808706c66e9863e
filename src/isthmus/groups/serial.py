"""Splits in which every process sees all entries and sorts them by itself.

The way of MPI libraries: ⌈log n⌉ rounds, and memory and time that grow with n.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TypeAlias

from .chain import Link
from .compare import Code
from .dialogue import Allgather, Dialogue
from .place import Entry, Place
from .scans import allgather

#: colour, key and address of a process
_Row: TypeAlias = tuple[Code | None, Code, int]


def allgather_group(link: Link, entry: Entry) -> Dialogue[Place]:
    """Everyone gathers all colours and keys along the chain, and sorts them."""
    mine: _Row = (entry.color, entry.key, link.address)
    table = yield from allgather(link, mine)
    return _place(link, table)


def allgather_mpi(link: Link, entry: Entry) -> Dialogue[Place]:
    """As allgather_group, with the MPI library's own allgather over all processes."""
    table = yield Allgather((link.rank, (entry.color, entry.key, link.address)))
    return _place(link, [row for _, row in sorted(table, key=lambda x: x[0])])


def _place(link: Link, table: Sequence[_Row]) -> Place:
    """Find the own group in the table of all, by key and then by rank."""
    entries = [(*row[:2], i) for i, row in enumerate(table) if row[0] is not None]
    entries.sort()
    groups = [[i for *_, i in run] for _, run in groupby(entries, lambda x: x[0])]
    own = next((group for group in groups if link.rank in group), None)
    if own is None:
        return Place(None, None, len(groups))
    at, n = own.index(link.rank), len(own)
    left = table[own[at - 1]][2] if at > 0 else None
    right = table[own[at + 1]][2] if at < n - 1 else None
    earlier = sum(group[0] < own[0] for group in groups)
    return Place(Link(at, n, link.address, left, right), earlier, len(groups))
