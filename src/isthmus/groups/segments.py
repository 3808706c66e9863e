"""From sorted items to chains: where a colour begins and ends, and who is next to whom.

Moody, Ahn, de Supinski 2011, section 3.2, after Mellor-Crummey et al. 2009.
"""

from __future__ import annotations

from typing import Any

from .chain import Link, masked
from .dialogue import Dialogue, Post, swap
from .lanes import any_lane, exists, pick, row, same, unpack, where
from .scans import double_scan
from .sorts import Sort


def by_sort(link: Link, color: Any, key: Any, sort: Sort) -> Dialogue[Link]:
    """The chain of those with the same colour, by key and then by rank.

    The rounds of the sort, one with the neighbours, ⌈log n⌉ to count, and one to the
    owner of each item. Results go by address, so a chain may be in any order.
    """
    some = link.size > 1
    if not any_lane(some):
        return link
    chain = masked(link, some)
    held = yield from sort(chain, row(color, key, chain.rank, chain.address))
    color, _, _, owner = unpack(held)
    left, right = yield from neighbours(chain, color, owner)
    rank, size = yield from count(chain, left, right)
    to = pick(some, owner, None)
    (found,) = yield Post(((to, (rank, size, left, right)),), some * 1)
    rank, size, left, right = found
    return pick(some, Link(rank, size, link.address, left, right), link)  # type: ignore


def neighbours(
    link: Link, color: Any, owner: int
) -> Dialogue[tuple[int | None, int | None]]:
    """The owners of the items to the left and right, if of the same colour."""
    mine = (color, owner)
    before, after = yield from swap(link.left, mine, link.right, mine)
    left = where(exists(link.left), _owner, (before, color), None)
    right = where(exists(link.right), _owner, (after, color), None)
    return left, right


def _owner(item: tuple[Any, int], color: Any) -> Any:
    return pick(same(item[0], color), item[1], None)


def count(link: Link, left: Any, right: Any) -> Dialogue[tuple[int, int]]:
    """The rank in its segment and the size of it; None at its ends."""
    begins, ends = (exists(left) ^ True, 1), (exists(right) ^ True, 1)
    done = yield from double_scan(link, begins, ends, _rightwards, _leftwards)
    upto, onward = done.upto[1], done.onward[1]
    return upto - 1, upto + onward - 1


def _rightwards(x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
    """(whether a segment begins here, how many since then)"""
    return x[0] | y[0], pick(y[0], y[1], x[1] + y[1])


def _leftwards(x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
    """(whether a segment ends here, how many until then)"""
    return _rightwards(y, x)
