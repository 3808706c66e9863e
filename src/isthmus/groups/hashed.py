"""Splitting by hashed colours: bins, again and again, until one colour is left in each.

Moody, Ahn, de Supinski 2011, section 3.3. New here: an exact test for one colour, and
an end to it for colours that no hash function of ours tells apart.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .bins import BINS, split_bins
from .chain import Link, nowhere, only
from .dialogue import Dialogue, shift
from .hashing import bin_of
from .lanes import any_lane, each_byte, exists, pick, same, where
from .place import Entry, Place, placed
from .scans import total
from .segments import by_sort
from .serial import allgather_group
from .sorts import bitonic

#: iterations after which colours that are still together are sorted
MOST = 32


def hashed(
    link: Link,
    entry: Entry,
    small: int = 0,
    choose: Callable[[Any, int], Any] = bin_of,
    most: int = MOST,
    bins: int = BINS,
) -> Dialogue[Place]:
    """Split by hash bins until chains have one colour, or at most `small` members."""
    if not entry.split:
        return Place((yield from by_sort(link, b"", entry.key, bitonic)))
    if not any_lane(link.size > small):
        return (yield from allgather_group(link, entry))
    done, chain, size = nowhere(link), link, link.size * 0
    for iteration in range(most + 1):
        short = (chain.size > 0) & (chain.size <= small)
        if any_lane(short):
            place = yield from allgather_group(only(chain, short), entry)
            done = pick(short, place.link, done)
            chain = only(chain, short ^ True)
        ready = yield from _one_color(only(chain, chain.size == size), entry.color)
        if any_lane(ready):
            group = only(chain, ready)
            if entry.reorder:
                group = yield from by_sort(group, b"", entry.key, bitonic)
            done, chain = pick(ready, group, done), only(chain, ready ^ True)
        if not any_lane(chain.size > 0):
            return placed(done)
        if iteration == most:
            break
        q = each_byte(lambda code: choose(code, iteration), entry.color)  # noqa: B023
        part = yield from split_bins(chain, q, bins)
        size, alone = chain.size, part.size == 1
        done, chain = pick(alone, part, done), only(part, alone ^ True)
        if not any_lane(chain.size > 0):
            return placed(done)
    last = yield from by_sort(chain, entry.color, entry.key, bitonic)
    return placed(pick(chain.size > 0, last, done))


def _one_color(link: Link, color: Any) -> Dialogue[Any]:
    """Whether all in the chain have one colour, by comparing whole colours."""
    heard = yield from shift(link.left, link.right, color)
    alike = where(exists(link.left), same, (heard, color), link.size > 0)
    return (yield from total(link, alike, operator.and_))
