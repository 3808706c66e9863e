"""How one axis of an array is cut into parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..schedules.layout import cut
from .runs import Runs, common, interval, spread


def unravel(i: int, extents: Sequence[int]) -> list[int]:
    """The digits of a number, the first counting most."""
    digits = []
    for n in reversed(extents):
        i, digit = divmod(i, n)
        digits.append(digit)
    return digits[::-1]


def ravel(digits: Sequence[int], extents: Sequence[int]) -> int:
    """The number that has these digits."""
    i = 0
    for digit, n in zip(digits, extents, strict=True):
        i = i * n + digit
    return i


@dataclass(frozen=True)
class Split:
    """An axis of n indices in parts: near-equal intervals; with `block`, blocks dealt
    out one after the other; with `chunks`, chunks of equal length but for the last
    ones, each cut again by the next of `parts`."""

    n: int
    parts: tuple[int, ...] = (1,)
    block: int = 0
    chunks: bool = False

    @property
    def count(self) -> int:
        """The number of parts."""
        return prod(self.parts)

    def runs(self, i: int) -> Runs:
        """The indices of part i."""
        if self.block:
            period = self.block * self.count
            start = np.arange(i * self.block, self.n, period)
            return Runs(start, np.minimum(self.block, self.n - start))
        return interval(*self._interval(i))

    def _interval(self, i: int) -> tuple[int, int]:
        if not self.chunks:
            return cut(self.n, self.count, i), cut(self.n, self.count, i + 1)
        low, high = 0, self.n
        for digit, k in zip(unravel(i, self.parts), self.parts, strict=True):
            each = -(-(high - low) // k)
            low, high = (
                min(low + digit * each, high),
                min(low + (digit + 1) * each, high),
            )
        return low, high

    def find(self, x: int) -> int:
        """The part that has index x."""
        if self.block:
            return x // self.block % self.count
        if not self.chunks:
            short, longer = divmod(self.n, self.count)
            edge = longer * (short + 1)
            return x // (short + 1) if x < edge else longer + (x - edge) // short
        low, high, digits = 0, self.n, []
        for k in self.parts:
            each = -(-(high - low) // k)
            digits.append((x - low) // each)
            low, high = (
                low + digits[-1] * each,
                min(low + (digits[-1] + 1) * each, high),
            )
        return ravel(digits, self.parts)

    def meeting(self, runs: Runs) -> list[int]:
        """The parts that may have some of those indices."""
        if not len(runs):
            return []
        if not self.block:
            every = range(self.count)
            if len(runs) == 1:
                last = int(runs.stop[0]) - 1
                every = range(self.find(int(runs.start[0])), self.find(last) + 1)
            return [i for i in every if len(common(runs, self.runs(i)))]
        first = runs.start // self.block
        n = (runs.stop - 1) // self.block - first + 1
        if (n >= self.count).any():
            return list(range(self.count))
        found = spread(first, n) % self.count
        return [int(i) for i in np.unique(found)]
