"""Splitting by hashed colours: bins, again and again, until one colour is left in each.

Moody, Ahn, de Supinski 2011, section 3.3. New here: an exact test for one colour, and
an end to it for colours that no hash function of ours tells apart.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from .bins import split_bins
from .chain import Link
from .dialogue import Dialogue, Exchange
from .hashing import bin_of
from .place import Entry, Place
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
    choose: Callable[[bytes, int], int] = bin_of,
    most: int = MOST,
) -> Dialogue[Place]:
    """Split by hash bins until chains have one colour, or at most `small` members."""
    color = entry.color
    if not entry.split:
        return Place((yield from by_sort(link, b"", entry.key, bitonic)))
    if link.size <= small:
        return (yield from allgather_group(link, entry))
    iteration, size, chain = 0, 0, link
    while chain.size > 1 or iteration == 0:
        if chain.size <= small:
            place = yield from allgather_group(chain, entry)
            return Place(place.link)
        if chain.size == size and (yield from _one_color(chain, color)):
            break
        if iteration == most:
            return Place((yield from by_sort(chain, color, entry.key, bitonic)))
        q = choose(color, iteration) if isinstance(color, bytes) else None
        part = yield from split_bins(chain, q)
        if part is None:
            return Place(None)
        iteration, size, chain = iteration + 1, chain.size, part
    if entry.reorder:
        chain = yield from by_sort(chain, b"", entry.key, bitonic)
    return Place(chain)


def _one_color(link: Link, color: object) -> Dialogue[bool]:
    """Whether all in the chain have one colour, by comparing whole colours."""
    sends = () if link.right is None else ((link.right, color),)
    heard = yield Exchange(sends, () if link.left is None else (link.left,))
    same: bool = yield from total(link, heard in ([], [color]), operator.and_)
    return same
