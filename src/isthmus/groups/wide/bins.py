"""Splitting all chains by small numbers at once: `groups.bins` as array operations."""

from __future__ import annotations

import numpy as np

from ..dialogue import WORD
from .links import NONE, Links, nowhere
from .network import Array, Network
from .scans import double_scan

#: an entry of a table [process, bin] is nearest << 32 | count, and 0 if empty
_SHIFT = 32
_COUNT = (1 << _SHIFT) - 1


def _rightwards(x: Array, y: Array) -> Array:
    """Two tables seen from the right of both: the nearest is in y."""
    return np.where(y > 0, y + (x & _COUNT), x)


def _leftwards(x: Array, y: Array) -> Array:
    return _rightwards(y, x)


def _weigh(table: Array) -> Array:
    """A bin that is not empty has its number, its nearest process and its count."""
    return 3 * WORD * np.asarray(np.count_nonzero(table, axis=1))


def split_bins(net: Network, links: Links, q: Array, bins: int) -> Links:
    """The chains of those in the same bin of the same chain; a bin below 0 is none."""
    n = len(q)
    chosen = np.flatnonzero((q >= 0) & (links.size > 0))
    mine = q[chosen]
    table = np.zeros((n, bins), np.int64)
    table[chosen, mine] = chosen << _SHIFT | 1
    done = double_scan(net, links, table, table, _rightwards, _leftwards, _weigh)
    left, before = _side(done.before, links.left, chosen, mine)
    right, after = _side(done.after, links.right, chosen, mine)
    found = nowhere(n)
    rank, size = found.rank.copy(), found.size.copy()
    rank[chosen], size[chosen] = before, before + 1 + after
    lefts, rights = found.left.copy(), found.right.copy()
    lefts[chosen], rights[chosen] = left, right
    return Links(rank, size, lefts, rights)


def _side(
    table: Array, beside: Array, chosen: Array, mine: Array
) -> tuple[Array, Array]:
    """The nearest of the own bin on one side, and how many there are."""
    found = np.where(beside[chosen] >= 0, table[chosen, mine], 0)
    return np.where(found > 0, found >> _SHIFT, NONE), found & _COUNT
