"""Parallel sorts on a chain: the i-th smallest item ends at rank i.

Items are tuples with the rank of their process, so no two are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from . import trees
from .batch import any_process, bit_length, pick, where
from .chain import ChainLink
from .dialogue import Dialogue, ExchangeStep
from .scans import at_distance, logchain

Sort: TypeAlias = Callable[[ChainLink, Any], Dialogue[Any]]


def merged(x: list[Any], y: list[Any]) -> list[Any]:
    """Two sorted lists as one, in linear time, as Python's sort merges runs."""
    return sorted(x + y)


def gather_scatter(link: ChainLink, item: Any) -> Dialogue[Any]:
    """Merge all items on their way up a tree, and scatter them in order."""
    tree = yield from trees.contract(link)
    items = yield from trees.reduce(tree, [item], merged)
    return (yield from trees.scatter(tree, items))


def compare_exchange(item: Any, other: Any, low: Any) -> Any:
    """The lower or the higher of two items."""
    return pick((item < other) == low, item, other)


def bitonic(
    link: ChainLink,
    item: Any,
    half_of: Callable[[Any, Any, bool], Any] = compare_exchange,
) -> Dialogue[Any]:
    """Batcher's network for any number of processes: k(k+1)/2 rounds after k.

    The first half is sorted in the other direction; partners are a power of two apart,
    so a process needs only k = ⌈log n⌉ addresses to either side. An item may be a
    sorted block, if all blocks have one size: `half_of` then returns one half of two
    blocks.
    """
    lefts, rights = yield from logchain(link)
    for low_rank, n, ascending in reversed(_halves(link)):
        while any_process(n > 1):
            distance_log = bit_length(pick(n > 1, n - 1, 1)) - 1
            half = 1 << distance_log
            first = link.rank < low_rank + half
            paired = (n > 1) & ((first ^ True) | (link.rank + half < low_rank + n))
            if any_process(paired):
                partner = pick(
                    first,
                    at_distance(rights, distance_log),
                    at_distance(lefts, distance_log),
                )
                partner = pick(paired, partner, None)
                (other,) = yield ExchangeStep(((partner, item),), (partner,))
                item = where(paired, half_of, (item, other, first == ascending), item)
            low_rank = pick(first, low_rank, low_rank + half)
            n = pick(first, half, n - half)
    return item


def _halves(link: ChainLink) -> list[tuple[int, int, bool]]:
    """The stretches (first rank, length, ascending) for the merges of this rank."""
    low_rank, n, ascending = link.size * 0, link.size, link.size > 0
    stretches = []
    while any_process(n > 1):
        stretches.append((low_rank, n, ascending))
        half = n // 2
        first = link.rank < low_rank + half
        low_rank = pick(first, low_rank, low_rank + half)
        n = pick(first, half, n - half)
        ascending = ascending ^ first
    return stretches
