"""Splitting by hashed colours: into bins, repeatedly, until each has one colour.

Moody, Ahn, de Supinski 2011, section 3.3. Added here: an exact test for one
colour, and a sort for colours that stay together after all iterations.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .bins import BINS, split_bins
from .chain import Link, empty_link, masked
from .dialogue import Dialogue, shift
from .jenkins import bin_of
from .lanes import any_lane, each_byte, exists, pick, same, where
from .place import Entry, Place, placed
from .scans import total
from .segments import by_sort
from .serial import allgather_group
from .sorts import bitonic

#: iterations after which colours that are still together are sorted
MAX_ITERATIONS = 32


def hash_split(
    link: Link,
    entry: Entry,
    threshold: int = 0,
    hash_function: Callable[[Any, int], Any] = bin_of,
    max_iterations: int = MAX_ITERATIONS,
    bins: int = BINS,
) -> Dialogue[Place]:
    """Split by hash bins until chains have one colour, or `threshold` members."""
    if not entry.split:
        return Place((yield from by_sort(link, b"", entry.key, bitonic)))
    if not any_lane(link.size > threshold):
        return (yield from allgather_group(link, entry))
    done, chain, size = empty_link(link), link, link.size * 0
    for iteration in range(max_iterations + 1):
        short = (chain.size > 0) & (chain.size <= threshold)
        if any_lane(short):
            place = yield from allgather_group(masked(chain, short), entry)
            done = pick(short, place.link, done)
            chain = masked(chain, short ^ True)
        ready = yield from _one_color(masked(chain, chain.size == size), entry.color)
        if any_lane(ready):
            group = masked(chain, ready)
            if entry.reorder:
                group = yield from by_sort(group, b"", entry.key, bitonic)
            done, chain = pick(ready, group, done), masked(chain, ready ^ True)
        if not any_lane(chain.size > 0):
            return placed(done)
        if iteration == max_iterations:
            break
        q = each_byte(lambda code: hash_function(code, iteration), entry.color)  # noqa: B023
        part = yield from split_bins(chain, q, bins)
        size, alone = chain.size, part.size == 1
        done, chain = pick(alone, part, done), masked(part, alone ^ True)
        if not any_lane(chain.size > 0):
            return placed(done)
    last = yield from by_sort(chain, entry.color, entry.key, bitonic)
    return placed(pick(chain.size > 0, last, done))


def _one_color(link: Link, color: Any) -> Dialogue[Any]:
    """Whether all in the chain have one colour, by comparing whole colours."""
    received = yield from shift(link.left, link.right, color)
    alike = where(exists(link.left), same, (received, color), link.size > 0)
    return (yield from total(link, alike, operator.and_))
