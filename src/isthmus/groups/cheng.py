"""Sorting on a few processes that find exact splitters (Cheng, Edelman, Gilbert, Shah).

As Sack and Gropp 2010 split communicators: every M items are gathered to one sorter,
the sorters sort among themselves, and the items are scattered again.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from itertools import accumulate, chain
from typing import Any

import numpy as np

from . import trees
from .chain import ChainLink
from .dialogue import Dialogue, ExchangeStep
from .scans import allgather, total
from .sorts import Sort, merged


def cheng(m: int) -> Sort:
    """The sort in which a sorter holds at most m items."""

    def sort(link: ChainLink, item: Any) -> Dialogue[Any]:
        tree = yield from trees.contract(link, m.bit_length() - 1)
        items = yield from trees.reduce(tree, [item], merged)
        if tree.top is not None and tree.top.size > 1:
            items = yield from _exchange(tree.top, items)
        return (yield from trees.scatter(tree, items))

    return sort


def _exchange(top: ChainLink, items: list[Any]) -> Dialogue[list[Any]]:
    """Sort the items of all sorters; the number of items of each sorter stays."""
    rows = yield from allgather(top, (top.address, len(items)))
    sorters = [address for address, _ in rows]
    starts = list(accumulate((count for _, count in rows), initial=0))[:-1]
    cuts = yield from _cuts(top, items, sorters, starts)
    parts = [items[a:b] for a, b in zip(cuts, [*cuts[1:], len(items)], strict=True)]
    received = yield from _all_to_all(top, sorters, dict(enumerate(parts)), True)
    return sorted(chain.from_iterable(received))


def _all_to_all(
    top: ChainLink, sorters: list[int], sent: dict[int, Any], receive: bool
) -> Dialogue[list[Any]]:
    """Send values to sorters by their ranks; if `receive`, receive from all sorters."""
    other_sorters = [a for a in sorters if a != top.address]
    sends = tuple((sorters[j], x) for j, x in sent.items() if j != top.rank)
    received = yield ExchangeStep(sends, tuple(other_sorters) if receive else ())
    return [sent[top.rank], *received] if receive else []


def _cuts(
    top: ChainLink, items: list[Any], sorters: list[int], starts: list[int]
) -> Dialogue[list[int]]:
    """The positions, in this sorter's items, at which every sorter's items begin.

    For each start the range that can hold it shrinks at the weighted median of the
    middles of all sorters' ranges: every iteration discards a quarter of the range.
    """
    low, high = [0] * len(sorters), [len(items)] * len(sorters)
    rank = list(starts)  # of the wanted item among the items in range
    undecided = list(range(1, len(sorters)))
    while undecided:
        sent = {j: _middle(items, low[j], high[j]) for j in undecided}
        received = yield from _all_to_all(top, sorters, sent, top.rank in undecided)
        medians = yield from allgather(top, _median(received))
        ends = {j: bisect_left(items, medians[j], low[j], high[j]) for j in undecided}
        has_start_item = {
            j: ends[j] < high[j] and items[ends[j]] == medians[j] for j in undecided
        }
        positions = np.array([(ends[j] - low[j], has_start_item[j]) for j in undecided])
        sums = (yield from total(top, positions, operator.add)).tolist()
        still_undecided = []
        for j, (below, equal) in zip(undecided, sums, strict=True):
            if rank[j] < below:
                high[j] = ends[j]
                still_undecided.append(j)
            elif rank[j] >= below + equal:
                low[j] = ends[j] + has_start_item[j]
                rank[j] -= below + equal
                still_undecided.append(j)
            else:
                low[j] = ends[j]
        undecided = still_undecided
    return low


def _middle(items: list[Any], low: int, high: int) -> tuple[int, Any]:
    """The number of items in a range, and the item in its middle."""
    return high - low, items[(low + high) // 2] if high > low else None


def _median(proposals: list[tuple[int, Any]]) -> Any:
    """The least item that, with all items before, has half of the weight."""
    ranked = sorted(((item, weight) for weight, item in proposals if weight))
    half, weights = sum(w for _, w in ranked), 0
    for item, weight in ranked:
        weights += weight
        if 2 * weights >= half:
            return item
    return None
