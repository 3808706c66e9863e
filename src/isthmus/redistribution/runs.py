"""Runs of consecutive integers: what a rank holds of an axis, or of a flat array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class Runs:
    """Disjoint runs in ascending order; as arrays of where each starts and its size."""

    start: np.ndarray
    size: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def stop(self) -> np.ndarray:
        """Where each run ends."""
        found: np.ndarray = self.start + self.size
        return found

    @cached_property
    def before(self) -> np.ndarray:
        """How many integers the runs before each have."""
        found: np.ndarray = np.cumsum(self.size) - self.size
        return found

    @cached_property
    def total(self) -> int:
        """How many integers there are."""
        return int(self.size.sum())

    @cached_property
    def indices(self) -> np.ndarray:
        """All integers."""
        return spread(self.start, self.size)

    def position(self, x: np.ndarray) -> np.ndarray:
        """How many integers come before some, which are all of these runs."""
        k = np.searchsorted(self.start, x, side="right") - 1
        found: np.ndarray = self.before[k] + x - self.start[k]
        return found


def spread(start: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The integers of some runs, one run after the other."""
    total = int(size.sum())
    shift = np.repeat(start - (np.cumsum(size) - size), size)
    found: np.ndarray = shift + np.arange(total)
    return found


def interval(low: int, high: int) -> Runs:
    """One run, or none."""
    n = max(high - low, 0)
    return Runs(np.arange(low, low + (n > 0)), np.full(int(n > 0), n))


def sorted_runs(values: np.ndarray) -> Runs:
    """Distinct sorted integers as runs."""
    if not len(values):
        return interval(0, 0)
    first = np.flatnonzero(_begin_runs(values))
    return Runs(values[first], np.diff(np.append(first, len(values))))


def _begin_runs(values: np.ndarray) -> np.ndarray:
    """Whether each integer is not the one after that before it."""
    begins = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1] + 1, out=begins[1:])
    return begins


def runs_in(*arrays: np.ndarray) -> np.ndarray:
    """Where runs begin that are runs of consecutive integers in all of some arrays."""
    found: np.ndarray = np.logical_or.reduce([_begin_runs(x) for x in arrays])
    return np.flatnonzero(found)


def sort_with_places(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Integers of 0 and more in ascending order, and where each was, the first of equal
    ones first. Where both fit into one integer, that takes a third of the time."""
    if (values[1:] > values[:-1]).all():
        return values, np.arange(len(values))
    bits = max(len(values) - 1, 0).bit_length()
    if int(values.max(initial=0)) >> (63 - bits):
        order = np.argsort(values, kind="stable")
        return values[order], order
    both = np.sort(values << bits | np.arange(len(values)))
    return both >> bits, both & ((1 << bits) - 1)


def overlaps(x: Runs, y: Runs) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of runs that have something in common, in ascending order. The runs of
    one may overlap each other, those of the other may not."""
    low = np.searchsorted(y.stop, x.start, side="right")
    n = np.maximum(np.searchsorted(y.start, x.stop, side="left") - low, 0)
    return np.repeat(np.arange(len(x)), n), spread(low, n)


def common(x: Runs, y: Runs) -> Runs:
    """What two have in common, each piece within one run of either."""
    i, j = overlaps(x, y)
    start = np.maximum(x.start[i], y.start[j])
    return Runs(start, np.minimum(x.stop[i], y.stop[j]) - start)


def flatten(
    size: Sequence[np.ndarray],
    starts: Sequence[Sequence[np.ndarray]],
    shapes: Sequence[Sequence[int]],
) -> tuple[np.ndarray, list[np.ndarray]]:
    """A product of runs, some for each axis, in several arrays at once: the sizes of
    runs in the flattened arrays, and where they start in each, in row-major order.

    `starts` has for each array, for each axis, where the runs start there.
    """
    sizes, width = size[-1], [shape[-1] for shape in shapes]
    found = [start[-1] for start in starts]
    for axis in range(len(size) - 2, -1, -1):
        whole = len(sizes) == 1 and all(
            x[0] == 0 and sizes[0] == w for x, w in zip(found, width, strict=True)
        )
        if whole:
            sizes = size[axis] * int(sizes[0])
            found = [s[axis] * w for s, w in zip(starts, width, strict=True)]
        else:
            every = int(size[axis].sum())
            rows = [spread(s[axis], size[axis]) for s in starts]
            found = [
                (row[:, None] * w + x).ravel()
                for row, w, x in zip(rows, width, found, strict=True)
            ]
            sizes = np.tile(sizes, every)
        width = [w * shape[axis] for w, shape in zip(width, shapes, strict=True)]
    return sizes, found


def joined(size: np.ndarray, starts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Runs of which those that follow each other everywhere become one: the sizes, and
    the starts in each array."""
    if len(size) < 2:
        return [size, *starts]
    apart = np.zeros(len(size), bool)
    apart[0] = True
    for start in starts:
        apart[1:] |= start[1:] != start[:-1] + size[:-1]
    first = np.flatnonzero(apart)
    return [np.add.reduceat(size, first), *(start[first] for start in starts)]


def cut_at(
    start: np.ndarray, size: np.ndarray, block: int
) -> tuple[np.ndarray, np.ndarray]:
    """Runs, none of them empty, cut at multiples of a block."""
    first = start // block
    n = (start + size - 1) // block - first + 1
    if (n == 1).all():
        return start, size
    number = spread(first, n)
    found = np.maximum(np.repeat(start, n), number * block)
    stop = np.minimum(np.repeat(start + size, n), (number + 1) * block)
    return found, stop - found


def some_of(
    start: np.ndarray, size: np.ndarray, low: int, high: int
) -> tuple[np.ndarray, np.ndarray]:
    """Of all that is in some runs, in their order, numbers low to high - 1."""
    before = np.cumsum(size) - size
    first = np.maximum(before, low)
    n = np.minimum(before + size, high) - first
    keep = n > 0
    return (start + first - before)[keep], n[keep]
