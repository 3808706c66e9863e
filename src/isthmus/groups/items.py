"""Ranking many items per process: groups of equal items, their sizes and order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from .agree import agree
from .chain import ChainLink
from .compare import Code
from .dialogue import Dialogue, PostStep
from .encoding import canonical
from .scans import Scan, double_scan
from .sorts import bitonic, merged


@dataclass(frozen=True, slots=True)
class Item:
    """The group of an item, the group's size, and the item's rank in the group.

    Groups are numbered in the order of their values. In a group, items are in the order
    of their processes' ranks, then of their places.
    """

    id: int
    size: int
    rank: int


#: (whether the entry only fills a block, value, rank of its process, place, address)
_Entry: TypeAlias = tuple[bool, Code, int, int, int]


def rank_items(link: ChainLink, items: Iterable[Any]) -> Dialogue[list[Item | None]]:
    """Rank the items of all processes; a process may have none, and None is no item.

    Blocks of the largest number of items, filled up where a process has fewer, go
    through the network of bitonic sort. So no process is empty, and one scan over
    neighbours tells a process everything about the items before and after its block.
    """
    codes: list[tuple[int, Code]] = []
    error: Exception | None = None
    try:
        items = list(items)
        codes = [(i, canonical(x)) for i, x in enumerate(items) if x is not None]
    except Exception as exception:
        error = exception
    (items_per_process,) = yield from agree(link, ("rank_items",), (len(codes),), error)
    ranked: list[Item | None] = [None for _ in items]
    if items_per_process == 0:
        return ranked
    block = yield from _sorted(link, _block(link, codes, items_per_process))
    summaries = yield from _runs(link, block)
    sends = tuple(_answers(block, summaries))
    for place, *item in (yield PostStep(sends, len(codes))):
        ranked[place] = Item(*item)
    return ranked


def _block(link: ChainLink, codes: list[tuple[int, Code]], m: int) -> list[_Entry]:
    """The items of a process in order, filled up to m entries."""
    block: list[_Entry] = [
        (False, code, link.rank, i, link.address) for i, code in codes
    ]
    fill = (b"", link.rank)
    block += [(True, *fill, i, link.address) for i in range(m - len(codes))]
    return sorted(block)


def _sorted(link: ChainLink, block: list[_Entry]) -> Dialogue[list[_Entry]]:
    """The blocks of all processes, sorted: the i-th block at rank i."""
    block_items = len(block)

    def half(x: list[_Entry], y: list[_Entry], low: bool) -> list[_Entry]:
        return merged(x, y)[:block_items] if low else merged(x, y)[block_items:]

    sorted_block: list[_Entry] = yield from bitonic(link, block, half)
    return sorted_block


#: of a stretch of sorted items: its first value and the length of that value's run, its
#: last value and the length of its run, and the number of different values
_Summary: TypeAlias = tuple[Any, int, Any, int, int]


def _join(x: _Summary, y: _Summary) -> _Summary:
    """Two stretches as one; the last run of x may go on in y."""
    joins = x[2] == y[0]
    first = x[1] + y[1] if joins and x[4] == 1 else x[1]
    last = y[3] + x[3] if joins and y[4] == 1 else y[3]
    return x[0], first, y[2], last, x[4] + y[4] - joins


def _value(entry: _Entry) -> tuple[bool, Code]:
    return entry[:2]


def _runs(link: ChainLink, block: list[_Entry]) -> Dialogue[Scan]:
    """The summaries of the items before and after this block."""
    runs = [(value, len(list(run))) for value, run in groupby(block, _value)]
    own_summary: _Summary = (*runs[0], *runs[-1], len(runs))
    return (yield from double_scan(link, own_summary, own_summary, _join))


def _answers(
    block: list[_Entry], summaries: Scan
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """For every item of the block: address, and place, group, size and rank.

    An entry that only fills the block has no answer, since no process waits for one.
    """
    before, after = summaries.before, summaries.after
    group_number = 0
    if before is not None:
        group_number = before[4] - (before[2] == _value(block[0]))
    for value, run in groupby(block, _value):
        entries = list(run)
        rank = before[3] if before is not None and before[2] == value else 0
        continued = after[1] if after is not None and after[0] == value else 0
        size = rank + len(entries) + continued
        for i, (fill, _, _, place, address) in enumerate(entries):
            if not fill:
                yield address, (place, group_number, size, rank + i)
        group_number += 1
