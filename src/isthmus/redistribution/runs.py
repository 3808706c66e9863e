"""Runs of consecutive integers: the indices of a rank on an axis or in a flat array.

Runs instead of indices, because a rank may have billions of elements in a few runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class Runs:
    """Disjoint runs in ascending order: two arrays, of the starts and of the sizes."""

    start: np.ndarray
    size: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def stop(self) -> np.ndarray:
        """The end of each run."""
        stop: np.ndarray = self.start + self.size
        return stop

    @cached_property
    def before(self) -> np.ndarray:
        """The number of integers in the runs before each run."""
        before: np.ndarray = np.cumsum(self.size) - self.size
        return before

    @cached_property
    def total(self) -> int:
        """The number of integers in all runs."""
        return int(self.size.sum())

    @cached_property
    def indices(self) -> np.ndarray:
        """All integers of the runs, ascending."""
        return spread(self.start, self.size)

    def position(self, integers: np.ndarray) -> np.ndarray:
        """The positions of integers among the integers of the runs."""
        run = np.searchsorted(self.start, integers, side="right") - 1
        position: np.ndarray = self.before[run] + integers - self.start[run]
        return position


def spread(start: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The integers of all runs in sequence."""
    total = int(size.sum())
    shift = np.repeat(start - (np.cumsum(size) - size), size)
    integers: np.ndarray = shift + np.arange(total)
    return integers


def interval(low: int, high: int) -> Runs:
    """The integers from low to high - 1, as a run or as no run."""
    n = max(high - low, 0)
    return Runs(np.arange(low, low + (n > 0)), np.full(int(n > 0), n))


def sorted_runs(values: np.ndarray) -> Runs:
    """Distinct sorted integers as runs."""
    if not len(values):
        return interval(0, 0)
    first = np.flatnonzero(_begin_runs(values))
    return Runs(values[first], np.diff(np.append(first, len(values))))


def _begin_runs(values: np.ndarray) -> np.ndarray:
    """Whether each integer begins a run, not next to the integer before."""
    begins = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1] + 1, out=begins[1:])
    return begins


def runs_in(*arrays: np.ndarray) -> np.ndarray:
    """The places of the first integers of runs consecutive in all arrays."""
    begins = _begin_runs(arrays[0])
    for values in arrays[1:]:
        begins |= _begin_runs(values)
    return np.flatnonzero(begins)


def sort_with_places(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Integers from 0 on in ascending order, with places; equal integers stay in order.

    If integer and place fit into 63 bits, the pair is sorted as an integer, because
    that takes a third of the time of `argsort`.
    """
    if (values[1:] > values[:-1]).all():
        return values, np.arange(len(values))
    bits = max(len(values) - 1, 0).bit_length()
    if int(values.max(initial=0)) >> (63 - bits):
        order = np.argsort(values, kind="stable")
        return values[order], order
    packed = np.sort(values << bits | np.arange(len(values)))
    return packed >> bits, packed & ((1 << bits) - 1)


def overlaps(x: Runs, y: Runs) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of runs with integers in common, as numbers of runs in `x` and in `y`.

    Pairs ascend. Runs of `x` may overlap each other, but runs of `y` may not, since the
    search needs ascending ends.
    """
    low = np.searchsorted(y.stop, x.start, side="right")
    n = np.maximum(np.searchsorted(y.start, x.stop, side="left") - low, 0)
    return np.repeat(np.arange(len(x)), n), spread(low, n)


def common(x: Runs, y: Runs) -> Runs:
    """The common integers of two sets of runs, each piece within a run of either."""
    i, j = overlaps(x, y)
    start = np.maximum(x.start[i], y.start[j])
    return Runs(start, np.minimum(x.stop[i], y.stop[j]) - start)


def flatten(
    size: Sequence[np.ndarray],
    starts: Sequence[Sequence[np.ndarray]],
    shapes: Sequence[Sequence[int]],
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The sizes and starts of a product of runs in flattened arrays, row-major.

    The product has a factor for each axis. `starts` has the starts of the runs, for
    each array and each axis.
    """
    sizes, width = size[-1], [shape[-1] for shape in shapes]
    flat_starts = [start[-1] for start in starts]
    for axis in range(len(size) - 2, -1, -1):
        is_whole_row = len(sizes) == 1 and all(
            start[0] == 0 and sizes[0] == w
            for start, w in zip(flat_starts, width, strict=True)
        )
        if is_whole_row:
            sizes = size[axis] * int(sizes[0])
            flat_starts = [
                axis_starts[axis] * w
                for axis_starts, w in zip(starts, width, strict=True)
            ]
        else:
            length = int(size[axis].sum())
            rows = [spread(axis_starts[axis], size[axis]) for axis_starts in starts]
            flat_starts = [
                (row[:, None] * w + start).ravel()
                for row, w, start in zip(rows, width, flat_starts, strict=True)
            ]
            sizes = np.tile(sizes, length)
        width = [w * shape[axis] for w, shape in zip(width, shapes, strict=True)]
    return sizes, flat_starts


def joined(size: np.ndarray, starts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The sizes and starts of runs, with runs adjacent in all arrays joined."""
    if len(size) < 2:
        return [size, *starts]
    begins = np.zeros(len(size), bool)
    begins[0] = True
    for start in starts:
        begins[1:] |= start[1:] != start[:-1] + size[:-1]
    if begins.all():  # scattered elements: a sum of each would take longest
        return [size, *starts]
    first = np.flatnonzero(begins)
    return [np.add.reduceat(size, first), *(start[first] for start in starts)]


def cut_at(
    start: np.ndarray, size: np.ndarray, block: int
) -> tuple[np.ndarray, np.ndarray]:
    """The starts and sizes of runs, none empty, cut at multiples of a block."""
    first = start // block
    n = (start + size - 1) // block - first + 1
    if (n == 1).all():
        return start, size
    block_number = spread(first, n)
    cut_start = np.maximum(np.repeat(start, n), block_number * block)
    stop = np.minimum(np.repeat(start + size, n), (block_number + 1) * block)
    return cut_start, stop - cut_start


def elements_of(
    start: np.ndarray, size: np.ndarray, low: int, high: int
) -> tuple[np.ndarray, np.ndarray]:
    """The starts and sizes of the elements low to high - 1 of runs in sequence."""
    if low == 0 and high >= size.sum():
        return start, size
    stop = np.cumsum(size)
    before = stop - size
    first = np.maximum(before, low)
    n = np.minimum(stop, high) - first
    keep = n > 0
    return (start + first - before)[keep], n[keep]
