"""The parts of an axis of an array: intervals, dealt blocks, or nested chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..schedules.layout import cut
from .runs import Runs, common, interval, spread


def unravel(index: int, extents: Sequence[int]) -> list[int]:
    """The digits of an index in row-major order, the most significant first."""
    digits = []
    for n in reversed(extents):
        index, digit = divmod(index, n)
        digits.append(digit)
    return digits[::-1]


def ravel(digits: Sequence[int], extents: Sequence[int]) -> int:
    """The row-major index of digits, the inverse of `unravel`."""
    index = 0
    for digit, n in zip(digits, extents, strict=True):
        index = index * n + digit
    return index


@dataclass(frozen=True)
class Split:
    """An axis of n indices in parts.

    The parts are near-equal intervals; with `block`, blocks dealt out in turn; with
    `chunks`, chunks of equal length but for the last, each cut again by the next of
    `parts`, because PyTorch cuts so.
    """

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
            length = -(-(high - low) // k)
            low, high = (
                min(low + digit * length, high),
                min(low + (digit + 1) * length, high),
            )
        return low, high

    def find(self, index: int) -> int:
        """The part with an index."""
        if self.block:
            return index // self.block % self.count
        if not self.chunks:
            short, longer = divmod(self.n, self.count)
            edge = longer * (short + 1)
            return (
                index // (short + 1)
                if index < edge
                else longer + (index - edge) // short
            )
        low, high, digits = 0, self.n, []
        for k in self.parts:
            length = -(-(high - low) // k)
            digits.append((index - low) // length)
            low, high = (
                low + digits[-1] * length,
                min(low + (digits[-1] + 1) * length, high),
            )
        return ravel(digits, self.parts)

    def meeting(self, runs: Runs) -> list[int]:
        """The parts that may have indices in common with runs."""
        if not len(runs):
            return []
        if not self.block:
            candidates = range(self.count)
            if len(runs) == 1:
                last = int(runs.stop[0]) - 1
                candidates = range(self.find(int(runs.start[0])), self.find(last) + 1)
            return [i for i in candidates if len(common(runs, self.runs(i)))]
        first = runs.start // self.block
        n = (runs.stop - 1) // self.block - first + 1
        if (n >= self.count).any():
            return list(range(self.count))
        parts = spread(first, n) % self.count
        return [int(i) for i in np.unique(parts)]
