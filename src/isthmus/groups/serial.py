"""Splits in which every process sees all entries and sorts them alone.

As in MPI libraries: ⌈log n⌉ rounds, and memory and time that grow with n.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .batch import Shared, numbered
from .chain import ChainLink
from .dialogue import AllgatherStep, Dialogue
from .scans import Gathered, allgather
from .split_entry import GroupPlace, SplitEntry


def allgather_group(link: ChainLink, entry: SplitEntry) -> Dialogue[GroupPlace]:
    """Every process gathers all colours and keys along the chain, and sorts them."""
    table = yield from allgather(link, (entry.color, entry.key, link.address))
    return _place(link, table)


def allgather_mpi(link: ChainLink, entry: SplitEntry) -> Dialogue[GroupPlace]:
    """As `allgather_group`, with the MPI library's own allgather over all processes."""
    row = (entry.color, entry.key, link.address)
    table = yield AllgatherStep((link.rank, row))
    if isinstance(link.rank, np.ndarray):
        return _place(link, replace(table[0], values=Shared(row)))
    return _place(link, [row for _, row in sorted(table, key=lambda x: x[0])])


def _place(link: ChainLink, table: Any) -> GroupPlace:
    """The group of this process, from the table of all entries."""
    if isinstance(table, Gathered):
        color, key, address = table.values.values
        columns = table.first, color.number, key.number, link.rank, address
        placement, groups = _groups(*columns, link.size > 0)
        rank, size, left, right, number = placement
        return GroupPlace(ChainLink(rank, size, address, left, right), number, groups)
    colors, keys, addresses = zip(*table, strict=True)
    color, key = numbered(colors)[0], numbered(keys)[0]
    ranks = np.arange(len(table))
    placement, groups = _groups(ranks * 0, color, key, ranks, np.array(addresses))
    if color[link.rank] < 0:
        return GroupPlace(None, None, groups)
    own_placement = (None if x < 0 else x for x in placement[:, link.rank].tolist())
    rank, size, left, right, number = own_placement
    return GroupPlace(ChainLink(rank, size, link.address, left, right), number, groups)


def _groups(
    chain: Any, color: Any, key: Any, rank: Any, address: Any, inside: Any = True
) -> tuple[Any, int]:
    """Rank, size, left, right and group number of each row of a table; the group count.

    Rows of one chain are together.
    """
    order = np.lexsort((rank, key, color, chain))
    order = order[((color >= 0) & inside)[order]]
    color, chain, n = color[order], chain[order], len(order)
    placement = np.full((5, len(rank)), -1)
    placement[1] = 0
    same = (color[1:] == color[:-1]) & (chain[1:] == chain[:-1])
    begins = np.flatnonzero(np.concatenate(([True] * (n > 0), ~same)))
    sizes = np.diff(np.append(begins, n))
    leaders = np.argsort(np.argsort(rank[order[begins]]))
    placement[0, order] = np.arange(n) - np.repeat(begins, sizes)
    placement[1, order] = np.repeat(sizes, sizes)
    placement[2, order[1:]] = np.where(same, address[order[:-1]], -1)
    placement[3, order[:-1]] = np.where(same, address[order[1:]], -1)
    placement[4, order] = np.repeat(leaders, sizes)
    return placement, len(begins)
