"""Splitting by hashed colours: into bins, repeatedly, until each bin has one colour.

Moody, Ahn, de Supinski 2011, section 3.3. Beyond the paper: an exact test for one
colour, since equal hashes do not prove equal colours, and a sort for colours that stay
together after all iterations.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .batch import any_process, each_byte, exists, pick, same, where
from .bins import BIN_COUNT, split_bins
from .chain import ChainLink, empty_link, masked
from .dialogue import Dialogue, shift
from .jenkins import bin_of
from .scans import total
from .segments import by_sort
from .serial import allgather_group
from .sorts import bitonic
from .split_entry import GroupPlace, SplitEntry, placed

#: iterations before a sort of the colours that still share a bin
MAX_HASH_ITERATIONS = 32


def hash_split(
    link: ChainLink,
    entry: SplitEntry,
    threshold: int = 0,
    hash_function: Callable[[Any, int], Any] = bin_of,
    max_iterations: int = MAX_HASH_ITERATIONS,
    bins: int = BIN_COUNT,
) -> Dialogue[GroupPlace]:
    """Split by hash bins until chains have one colour, or `threshold` members."""
    if not entry.split:
        return GroupPlace((yield from by_sort(link, b"", entry.key, bitonic)))
    if not any_process(link.size > threshold):
        return (yield from allgather_group(link, entry))
    finished, chain, size_before = empty_link(link), link, link.size * 0
    for iteration in range(max_iterations + 1):
        is_short = (chain.size > 0) & (chain.size <= threshold)
        if any_process(is_short):
            place = yield from allgather_group(masked(chain, is_short), entry)
            finished = pick(is_short, place.link, finished)
            chain = masked(chain, is_short ^ True)
        is_ready = yield from _one_color(
            masked(chain, chain.size == size_before), entry.color
        )
        if any_process(is_ready):
            group = masked(chain, is_ready)
            if entry.reorder:
                group = yield from by_sort(group, b"", entry.key, bitonic)
            finished = pick(is_ready, group, finished)
            chain = masked(chain, is_ready ^ True)
        if not any_process(chain.size > 0):
            return placed(finished)
        if iteration == max_iterations:
            break
        bin_number = _bin_numbers(entry.color, hash_function, iteration)
        part = yield from split_bins(chain, bin_number, bins)
        size_before, is_alone = chain.size, part.size == 1
        finished = pick(is_alone, part, finished)
        chain = masked(part, is_alone ^ True)
        if not any_process(chain.size > 0):
            return placed(finished)
    sorted_link = yield from by_sort(chain, entry.color, entry.key, bitonic)
    return placed(pick(chain.size > 0, sorted_link, finished))


def _bin_numbers(
    color: Any, hash_function: Callable[[Any, int], Any], iteration: int
) -> Any:
    """The bin of each colour in an iteration."""
    return each_byte(lambda code: hash_function(code, iteration), color)


def _one_color(link: ChainLink, color: Any) -> Dialogue[Any]:
    """Whether all processes of a chain have one colour, by comparing whole colours."""
    received = yield from shift(link.left, link.right, color)
    alike = where(exists(link.left), same, (received, color), link.size > 0)
    return (yield from total(link, alike, operator.and_))
