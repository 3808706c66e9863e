"""Ranking many items per process: which are equal, how many, and in what order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from .agree import agree
from .chain import Link
from .compare import Code
from .dialogue import Dialogue, Post
from .encoding import canonical
from .scans import Scan, double_scan
from .sorts import bitonic, merged


@dataclass(frozen=True, slots=True)
class Item:
    """The group of an item, how many are in it, and which of them this one is.

    Groups are numbered in the order of their values. In a group, items are in the order
    of their processes' ranks, then of their places.
    """

    id: int
    size: int
    rank: int


#: (whether it only fills a block, value, rank of its process, place there, address)
_Entry: TypeAlias = tuple[bool, Code, int, int, int]


def rank_items(link: Link, items: Iterable[Any]) -> Dialogue[list[Item | None]]:
    """Rank the items of all processes; a process may have none, and None is no item.

    Blocks of the largest number of items, filled up where there are fewer, go through
    the network of bitonic sort. So no process is empty, and what one knows of its
    neighbours is what it needs to know of all.
    """
    codes: list[tuple[int, Code]] = []
    error: Exception | None = None
    try:
        items = list(items)
        codes = [(i, canonical(x)) for i, x in enumerate(items) if x is not None]
    except Exception as wrong:
        error = wrong
    (m,) = yield from agree(link, ("rank_items",), (len(codes),), error)
    found: list[Item | None] = [None for _ in items]
    if m == 0:
        return found
    block = yield from _sorted(link, _block(link, codes, m))
    around = yield from _runs(link, block)
    sends = tuple(_answers(block, around))
    for place, *item in (yield Post(sends, len(codes))):
        found[place] = Item(*item)
    return found


def _block(link: Link, codes: list[tuple[int, Code]], m: int) -> list[_Entry]:
    """The items of a process in order, filled up to m."""
    block: list[_Entry] = [
        (False, code, link.rank, i, link.address) for i, code in codes
    ]
    fill = (b"", link.rank)
    block += [(True, *fill, i, link.address) for i in range(m - len(codes))]
    return sorted(block)


def _sorted(link: Link, block: list[_Entry]) -> Dialogue[list[_Entry]]:
    m = len(block)

    def half(x: list[_Entry], y: list[_Entry], low: bool) -> list[_Entry]:
        return merged(x, y)[:m] if low else merged(x, y)[m:]

    done: list[_Entry] = yield from bitonic(link, block, half)
    return done


#: of a stretch: its first value and how many of it, its last value and how many of it,
#: and how many different values
_Summary: TypeAlias = tuple[Any, int, Any, int, int]


def _join(x: _Summary, y: _Summary) -> _Summary:
    """Two stretches as one; the last run of x may go on in y."""
    same = x[2] == y[0]
    first = x[1] + y[1] if same and x[4] == 1 else x[1]
    last = y[3] + x[3] if same and y[4] == 1 else y[3]
    return x[0], first, y[2], last, x[4] + y[4] - same


def _value(entry: _Entry) -> tuple[bool, Code]:
    return entry[:2]


def _runs(link: Link, block: list[_Entry]) -> Dialogue[Scan]:
    """What is before and after this block."""
    runs = [(value, len(list(run))) for value, run in groupby(block, _value)]
    mine: _Summary = (*runs[0], *runs[-1], len(runs))
    return (yield from double_scan(link, mine, mine, _join))


def _answers(
    block: list[_Entry], around: Scan
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """For every item of the block: its address, and its place, group, size and rank."""
    before, after = around.before, around.after
    number = 0
    if before is not None:
        number = before[4] - (before[2] == _value(block[0]))
    for value, run in groupby(block, _value):
        entries = list(run)
        rank = before[3] if before is not None and before[2] == value else 0
        more = after[1] if after is not None and after[0] == value else 0
        size = rank + len(entries) + more
        for i, (fill, _, _, place, address) in enumerate(entries):
            if not fill:
                yield address, (place, number, size, rank + i)
        number += 1
