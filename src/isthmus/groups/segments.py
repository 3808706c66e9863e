"""From sorted items to chains: where a colour begins and ends, and who is next to whom.

Moody, Ahn, de Supinski 2011, section 3.2, after Mellor-Crummey et al. 2009.
"""

from __future__ import annotations

from typing import Any

from .chain import Link
from .dialogue import Dialogue, Post, swap
from .scans import double_scan
from .sorts import Sort


def by_sort(link: Link, color: Any, key: Any, sort: Sort) -> Dialogue[Link]:
    """The chain of those with the same colour, by key and then by rank.

    The rounds of the sort, one to see the neighbours, ⌈log n⌉ to count, and one to tell
    the owner of each item. Results go by address, so a chain may be in any order.
    """
    if link.size == 1:
        return link
    held = yield from sort(link, (color, key, link.rank, link.address))
    left, right = yield from neighbours(link, held[0], held[3])
    place = yield from count(link, left, right)
    ((rank, size, left, right),) = yield Post(((held[3], (*place, left, right)),), 1)
    return Link(rank, size, link.address, left, right)


def neighbours(
    link: Link, color: Any, owner: int
) -> Dialogue[tuple[int | None, int | None]]:
    """The owners of the items to the left and right, if of the same colour."""
    mine = (color, owner)
    before, after = yield from swap(link.left, mine, link.right, mine)
    left = before[1] if before is not None and before[0] == color else None
    right = after[1] if after is not None and after[0] == color else None
    return left, right


def count(link: Link, left: Any, right: Any) -> Dialogue[tuple[int, int]]:
    """The rank in its segment and the size of it; None at its ends."""
    done = yield from double_scan(
        link, (left is None, 1), (right is None, 1), _rightwards, _leftwards
    )
    upto, onward = done.upto[1], done.onward[1]
    return upto - 1, upto + onward - 1


def _rightwards(x: tuple[bool, int], y: tuple[bool, int]) -> tuple[bool, int]:
    """(whether a segment begins here, how many since then)"""
    return x[0] or y[0], y[1] if y[0] else x[1] + y[1]


def _leftwards(x: tuple[bool, int], y: tuple[bool, int]) -> tuple[bool, int]:
    """(whether a segment ends here, how many until then)"""
    return x[0] or y[0], x[1] if x[0] else x[1] + y[1]
