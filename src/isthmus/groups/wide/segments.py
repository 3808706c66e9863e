"""From sorted items to chains, for all processes at once: `groups.segments`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ..dialogue import WORD
from .links import NONE, Links
from .network import Array, Network
from .scans import double_scan

#: sort(net, links, items, bytes of every item): items are the numbers 0 … n-1, and
#: the i-th smallest of a chain goes to its rank i
Sort: TypeAlias = Callable[[Network, Links, Array, Array], Array]


def by_sort(
    net: Network,
    links: Links,
    color: Array,
    key: Array,
    weights: tuple[Array, Array],
    sort: Sort,
) -> Links:
    """The chains of those with the same colour, by key and then by rank.

    Colours and keys are numbers in the order of the values, `weights` their bytes.
    """
    chains = links.only(links.size > 1)
    here = np.flatnonzero(chains.size)
    if not here.size:
        return links
    order = np.lexsort((chains.rank, key, color))
    items = np.empty(net.n, np.int64)
    items[order] = np.arange(net.n)
    held = sort(net, chains, items, (weights[0] + weights[1] + 2 * WORD)[order])
    owner = order[held]
    left, right = neighbours(net, chains, color[owner], weights[0][owner], owner)
    rank, size = count(net, chains, left, right)
    net.post(here, owner[here], 4 * WORD)
    found = Links(*(x.copy() for x in vars(links).values()))
    for mine, new in zip(vars(found).values(), (rank, size, left, right), strict=True):
        mine[owner[here]] = new[here]
    return found


def neighbours(
    net: Network, links: Links, color: Array, weight: Array, owner: Array
) -> tuple[Array, Array]:
    """The owners of the items to the left and right, if of the same colour."""
    li, ri = np.flatnonzero(links.left >= 0), np.flatnonzero(links.right >= 0)
    on_left, on_right = links.left[li], links.right[ri]
    net.step((li, on_left, weight[li] + WORD), (ri, on_right, weight[ri] + WORD))
    left, right = np.full(net.n, NONE), np.full(net.n, NONE)
    left[li] = np.where(color[on_left] == color[li], owner[on_left], NONE)
    right[ri] = np.where(color[on_right] == color[ri], owner[on_right], NONE)
    return left, right


def count(net: Network, links: Links, left: Array, right: Array) -> tuple[Array, Array]:
    """The rank in its segment and the size of it."""
    begins, ends = np.ones((net.n, 2), np.int64), np.ones((net.n, 2), np.int64)
    begins[:, 0], ends[:, 0] = left < 0, right < 0
    done = double_scan(
        net, links, begins, ends, _rightwards, _leftwards, lambda rows: 2 * WORD
    )
    upto, onward = done.upto[:, 1], done.onward[:, 1]
    return upto - 1, upto + onward - 1


def _rightwards(x: Array, y: Array) -> Array:
    """Rows (whether a segment begins here, how many since then)."""
    since = np.where(y[:, 0] > 0, y[:, 1], x[:, 1] + y[:, 1])
    return np.stack((x[:, 0] | y[:, 0], since), axis=1)


def _leftwards(x: Array, y: Array) -> Array:
    return _rightwards(y, x)
