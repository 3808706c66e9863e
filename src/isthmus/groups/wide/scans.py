"""Scans of all chains at once: `groups.scans`, with a row for every process.

Values are arrays whose first axis is the process; `weigh` gives the bytes of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..dialogue import WORD
from .links import Links
from .network import Array, Network

Op: TypeAlias = Callable[[Array, Array], Array]
Weigh: TypeAlias = Callable[[Array], Array | int]


@dataclass(frozen=True)
class Scan:
    """As `groups.scans.Scan`; rows of `before` and `after` at ends mean nothing."""

    upto: Array
    before: Array
    onward: Array
    after: Array


def double_scan(
    net: Network, links: Links, a: Array, b: Array, op: Op, back: Op, weigh: Weigh
) -> Scan:
    """Scan the values a from left to right, and b from right to left."""
    left, right = links.left.copy(), links.right.copy()
    upto, onward = a.copy(), b.copy()
    before, after = np.zeros_like(a), np.zeros_like(b)
    first = True
    while True:
        li, ri = np.flatnonzero(left >= 0), np.flatnonzero(right >= 0)
        if not li.size:
            return Scan(upto, before, onward, after)
        to_left, to_right = left[li], right[ri]
        net.step(
            (li, to_left, WORD + weigh(onward[li])),
            (ri, to_right, WORD + weigh(upto[ri])),
        )
        from_left, from_right = upto[to_left], onward[to_right]
        before[li] = from_left if first else op(from_left, before[li])
        after[ri] = from_right if first else back(after[ri], from_right)
        upto[li], onward[ri] = op(before[li], a[li]), back(b[ri], after[ri])
        left[li], right[ri] = left[to_left], right[to_right]
        first = False


def total(net: Network, links: Links, value: Array, op: Op, weigh: Weigh) -> Array:
    """The values of all in a chain."""
    done = double_scan(net, links, value, value, op, op, weigh)
    found: Array = value.copy()
    li, ri = np.flatnonzero(links.left >= 0), np.flatnonzero(links.right >= 0)
    found[li] = op(done.before[li], value[li])
    found[ri] = op(found[ri], done.after[ri])
    return found


def allgather(net: Network, links: Links, sizes: Array) -> None:
    """Everyone hears the values of all, of which only the bytes are known here."""
    total(net, links, sizes, np.add, lambda rows: rows)


def ladder(net: Network, links: Links) -> tuple[Array, Array]:
    """The processes 1, 2, 4, … to the left, and to the right: a row for each power."""
    left, right = links.left.copy(), links.right.copy()
    lefts, rights = [left], [right]
    while True:
        li, ri = np.flatnonzero(left >= 0), np.flatnonzero(right >= 0)
        if not li.size:
            return np.stack(lefts), np.stack(rights)
        net.step((li, left[li], WORD), (ri, right[ri], WORD))
        nearer, farther = left.copy(), right.copy()
        nearer[li], farther[ri] = left[left[li]], right[right[ri]]
        left, right = nearer, farther
        lefts.append(left)
        rights.append(right)
