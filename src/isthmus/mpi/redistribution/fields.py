"""The places of a field's elements in memory.

No further file knows strides. The buffer of a field has all bytes from the lowest
address to the highest. The places of elements follow from shape and strides, which are
values in the key of a plan, so that a plan serves fields at any address.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from mpi4py import MPI

from ...redistribution.runs import cut_at, joined
from ..buffers.selection import Selection, select, select_pair
from ..plan.steps import ArrayAt


@dataclass(frozen=True, slots=True)
class Field:
    """The shape, strides and type of an array in a buffer of an operation."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    buffer: int
    #: the offset of the field's lowest byte in the buffer
    start: int = 0

    @property
    def first(self) -> int:
        """The offset of the first element in the buffer."""
        steps = zip(self.shape, self.strides, strict=True)
        return self.start - sum((n - 1) * step for n, step in steps if step < 0 < n)

    @property
    def place(self) -> ArrayAt:
        """The place of the field, for steps that compute."""
        return ArrayAt(self.buffer, self.first, self.shape, self.strides, self.dtype)

    @property
    def nbytes(self) -> int:
        """The bytes of the field in the buffer, with gaps between elements."""
        if 0 in self.shape:
            return 0
        steps = zip(self.shape, self.strides, strict=True)
        return sum((n - 1) * abs(step) for n, step in steps) + self.dtype.itemsize

    @property
    def inner(self) -> tuple[int, int]:
        """The number of axes around the contiguous axes, and the elements inside."""
        n, axis = 1, len(self.shape)
        while axis and (
            self.shape[axis - 1] == 1
            or self.strides[axis - 1] == n * self.dtype.itemsize
        ):
            axis -= 1
            n *= self.shape[axis]
        return axis, n

    def offsets(self, start: np.ndarray) -> np.ndarray:
        """The offsets in the buffer of elements of the flattened array."""
        axis, inner = self.inner
        if not axis:
            return start * self.dtype.itemsize + self.first
        row, column = np.divmod(start, max(inner, 1))
        offsets = column * self.dtype.itemsize + self.first
        outer = zip(
            reversed(self.shape[:axis]), reversed(self.strides[:axis]), strict=True
        )
        for n, step in outer:
            row, digit = np.divmod(row, max(n, 1))
            offsets = offsets + digit * step
        return offsets

    def select(self, start: np.ndarray, size: np.ndarray) -> Selection:
        """The selection of bytes for runs of the flattened array."""
        axis, inner = self.inner
        if axis:  # otherwise the whole array is one run of bytes
            start, size = cut_at(start, size, max(inner, 1))
        item = self.dtype.itemsize
        lengths, offsets = joined(size * item, [self.offsets(start)])
        return select(offsets, lengths, item)


def field_of(x: np.ndarray, buffer: int) -> Field:
    """The field of an array, without its address."""
    return Field(x.shape, x.strides, x.dtype, buffer)


def levels_of(x: np.ndarray, buffer: int, axes: int) -> list[Field]:
    """The fields of the last `axes` axes, a field for each index of the axes before."""
    lead = len(x.shape) - axes
    first_level = Field(x.shape[lead:], x.strides[lead:], x.dtype, buffer)
    offset = field_of(x, buffer).first - first_level.first
    level_offsets = (
        sum(i * stride for i, stride in zip(position, x.strides, strict=False))
        for position in np.ndindex(x.shape[:lead])
    )
    return [replace(first_level, start=offset + level) for level in level_offsets]


def memory_of(x: np.ndarray) -> MPI.memory:
    """The memory of an array with all gaps, from the lowest address to the highest."""
    field = field_of(x, 0)
    address: int = x.__array_interface__["data"][0] - field.first
    return MPI.memory.fromaddress(address, field.nbytes)


def select_pairs(
    x: Field, start: np.ndarray, y: Field, to: np.ndarray, size: np.ndarray
) -> tuple[Selection, Selection]:
    """The selections of runs in two flattened arrays."""
    start, to, size = _cut(start, to, size, x.inner[1])
    to, start, size = _cut(to, start, size, y.inner[1])
    item = x.dtype.itemsize
    lengths, a, b = joined(size * item, [x.offsets(start), y.offsets(to)])
    return select_pair([a, b], lengths, item)


def _cut(
    start: np.ndarray, paired: np.ndarray, size: np.ndarray, block: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Runs in two arrays, cut at multiples of a block in the first."""
    block = max(block, 1)
    times = (start + size - 1) // block - start // block + 1
    starts, sizes = cut_at(start, size, block)
    return starts, starts + np.repeat(paired - start, times), sizes
