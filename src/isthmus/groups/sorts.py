"""Parallel sorts on a chain: the i-th smallest item ends at rank i.

Items are tuples that hold the rank of who brought them, so no two are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from . import trees
from .chain import Link
from .dialogue import Dialogue, Exchange
from .scans import ladder

Sort: TypeAlias = Callable[[Link, Any], Dialogue[Any]]


def merged(x: list[Any], y: list[Any]) -> list[Any]:
    """Two sorted lists as one; Python's sort sees that both are sorted."""
    return sorted(x + y)


def gather_scatter(link: Link, item: Any) -> Dialogue[Any]:
    """Merge all items on their way up a tree, and hand them out again."""
    tree = yield from trees.contract(link)
    items = yield from trees.reduce(tree, [item], merged)
    return (yield from trees.scatter(tree, items))


def bitonic(
    link: Link,
    item: Any,
    low: Callable[[Any, Any], Any] = min,
    high: Callable[[Any, Any], Any] = max,
) -> Dialogue[Any]:
    """Batcher's network for any number of processes: k(k+1)/2 rounds after k.

    The first half is sorted the other way round; partners are a power of two apart, so
    k = ⌈log n⌉ addresses to either side are all one must know. An item may be a sorted
    block, if all blocks have the same size: `low` and `high` then keep half of two.
    """
    lefts, rights = yield from ladder(link)
    for lo, n, up in reversed(_halves(link)):
        while n > 1:
            d = (n - 1).bit_length() - 1
            half = 1 << d
            first = link.rank < lo + half
            partner = rights[d] if first else lefts[d]
            if not first or link.rank + half < lo + n:
                assert partner is not None
                (other,) = yield Exchange(((partner, item),), (partner,))
                item = (low if first == up else high)(item, other)
            lo, n = (lo, half) if first else (lo + half, n - half)
    return item


def _halves(link: Link) -> list[tuple[int, int, bool]]:
    """The stretches (first rank, length, ascending) that this rank is merged in."""
    lo, n, up = 0, link.size, True
    found = []
    while n > 1:
        found.append((lo, n, up))
        half = n // 2
        if link.rank < lo + half:
            n, up = half, not up
        else:
            lo, n = lo + half, n - half
    return found
