"""From sorted items to chains: the ends of a colour's segment, and its neighbours.

Moody, Ahn, de Supinski 2011, section 3.2, after Mellor-Crummey et al. 2009.
"""

from __future__ import annotations

from typing import Any

from .batch import any_process, exists, pick, row, same, unpack, where
from .chain import ChainLink, masked
from .dialogue import Dialogue, PostStep, swap
from .scans import double_scan
from .sorts import Sort


def by_sort(link: ChainLink, color: Any, key: Any, sort: Sort) -> Dialogue[ChainLink]:
    """The chain of the processes of one colour, by key and then by rank.

    The rounds of the sort, a round with the neighbours, ⌈log n⌉ to count, and a round
    to the owner of each item. Results go by address, so a chain may be in any order.
    """
    has_others = link.size > 1
    if not any_process(has_others):
        return link
    chain = masked(link, has_others)
    sorted_row = yield from sort(chain, row(color, key, chain.rank, chain.address))
    color, _, _, owner = unpack(sorted_row)
    left, right = yield from neighbours(chain, color, owner)
    rank, size = yield from count(chain, left, right)
    recipient = pick(has_others, owner, None)
    (answer,) = yield PostStep(
        ((recipient, (rank, size, left, right)),), has_others * 1
    )
    rank, size, left, right = answer
    in_segment = ChainLink(rank, size, link.address, left, right)
    return pick(has_others, in_segment, link)  # type: ignore[no-any-return]


def neighbours(
    link: ChainLink, color: Any, owner: int
) -> Dialogue[tuple[int | None, int | None]]:
    """The owners of the items to the left and right, None where the colour differs."""
    own_item = (color, owner)
    before, after = yield from swap(link.left, own_item, link.right, own_item)
    left = where(exists(link.left), _owner, (before, color), None)
    right = where(exists(link.right), _owner, (after, color), None)
    return left, right


def _owner(item: tuple[Any, int], color: Any) -> Any:
    """The owner of an item of a colour, None for another colour."""
    return pick(same(item[0], color), item[1], None)


def count(link: ChainLink, left: Any, right: Any) -> Dialogue[tuple[int, int]]:
    """The rank of a process in its segment, and the segment's size.

    A segment ends where a process has no neighbour of its colour: None.
    """
    begins, ends = (exists(left) ^ True, 1), (exists(right) ^ True, 1)
    counts = yield from double_scan(link, begins, ends, _rightwards, _leftwards)
    upto, onward = counts.upto[1], counts.onward[1]
    return upto - 1, upto + onward - 1


def _rightwards(x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
    """Whether a segment begins in x or y, and the items since its beginning."""
    return x[0] | y[0], pick(y[0], y[1], x[1] + y[1])


def _leftwards(x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
    """Whether a segment ends in x or y, and the items up to its end."""
    return _rightwards(y, x)
