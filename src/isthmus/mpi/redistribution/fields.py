"""Where elements of a user's arrays lie in memory, and how they become messages.

The only place that knows the memory of fields. What is contiguous goes straight from
and into the array; so does, on the host, what lies in long runs, by a derived datatype.
Other data are packed, by numpy or by the library of an array on a device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd
from typing import Any

import numpy as np
from mpi4py import MPI

from ...redistribution.runs import cut_at, joined, spread
from ..engine.plan import each
from ..memory import memory
from ..memory.libraries import NUMPY, Copying, Library, strided

#: runs of fewer bytes are packed: MPI libraries take about as long for a run as for so
#: many bytes
LONG = 512
#: of more irregular runs than this, an MPI library's datatype is no help
MANY = 1024
#: nested steps: how many there are, and the bytes from one to the next, for each level
Levels = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Array:
    """An array by its place in memory; it keeps nothing alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    #: who packs it
    by: Library = NUMPY

    @property
    def inner(self) -> tuple[int, int]:
        """How many axes lie outside of what is contiguous, and the elements of that."""
        n, axis = 1, len(self.shape)
        while axis and (
            self.shape[axis - 1] == 1
            or self.strides[axis - 1] == n * self.dtype.itemsize
        ):
            axis -= 1
            n *= self.shape[axis]
        return axis, n

    @property
    def span(self) -> tuple[int, int]:
        """Where it begins, and its bytes from there to its end."""
        if 0 in self.shape:
            return self.address, 0
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low, high = (sum(x for x in steps if x * y > 0) for y in (-1, 1))
        return self.address + low, high - low + self.dtype.itemsize

    def view(self) -> np.ndarray:
        """The array, of the host."""
        return strided(self.address, self.shape, self.strides, self.dtype)


def array_of(x: np.ndarray, by: Library = NUMPY) -> Array:
    """Where an array lies."""
    address: int = x.__array_interface__["data"][0]
    return Array(address, x.shape, x.strides, x.dtype, by)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Bytes in memory: runs of one length in nested steps, or any runs."""

    base: int
    #: of runs of one length
    levels: Levels | None
    offset: np.ndarray
    length: np.ndarray
    #: bytes that are never split
    item: int
    by: Library

    @property
    def nbytes(self) -> int:
        """How many bytes there are."""
        return int(self.length.sum())

    @property
    def span(self) -> tuple[int, int]:
        """Where the first byte is, and how many there are from there to the last one,
        with those between."""
        if not len(self.length):
            return self.base, 0
        low = int(self.offset.min())
        return self.base + low, int((self.offset + self.length).max()) - low

    @property
    def is_direct(self) -> bool:
        """Whether MPI can take it as it lies."""
        if len(self.length) <= 1 or not self.by.takes_runs:
            return len(self.length) <= 1
        if self.levels is not None:
            return int(self.length[0]) >= LONG
        return len(self.length) <= MANY and self.nbytes >= LONG * len(self.length)

    def copier(self, packed: int, unpack: bool = False) -> Copying:
        """What packs it into memory at an address, or unpacks that."""
        if self.levels is not None:
            at, n = self.base + int(self.offset[0]), int(self.length[0])
            unit = _unit([at, packed, n], self.levels)
            here = _nested(self.by, at, self.levels, n, unit)
            there = _nested(self.by, packed, _dense(self.levels, n), n, unit)
            ends = (here, None, there, None), (there, None, here, None)
            return self.by.copier(*ends[not unpack])
        low, size = self.span
        start = self.offset - (low - self.base)
        unit = _unit([self.item, low, packed, int(np.gcd.reduce(start))])
        whole = _nested(self.by, low, (), size, unit)
        there = _nested(self.by, packed, (), self.nbytes, unit)
        index = self.by.index(spread(start // unit, self.length // unit))
        ends = (whole, index, there, None), (there, None, whole, index)
        return self.by.copier(*ends[not unpack])

    def datatype(self) -> tuple[int, int, MPI.Datatype]:
        """Address, count and datatype for MPI; a derived type belongs to the caller."""
        at = self.base + int(self.offset[0]) if len(self.offset) else 0
        if len(self.length) <= 1 or self.levels is None:
            ends = zip(self.offset.tolist(), self.length.tolist(), strict=True)
            return memory.spec([(self.base + x, n) for x, n in ends])
        _, count, found = memory.spec([(at, int(self.length[0]))])
        found = found.Create_contiguous(count) if found == MPI.BYTE else found
        for n, step in reversed(self.levels):
            inner, found = found, found.Create_hvector(n, 1, step)
            inner.Free()
        return at, 1, found.Commit()


def _unit(numbers: Sequence[int], steps: Levels = ()) -> int:
    """The bytes of the largest integer, of 8 at most, that divides all of them."""
    return gcd(8, *numbers, *(step for _, step in steps))


def _nested(by: Library, address: int, steps: Levels, length: int, unit: int) -> Any:
    """Runs of one length in nested steps, as an array."""
    shape = [*(n for n, _ in steps), length // unit]
    return by.view(address, shape, [*(step for _, step in steps), unit], unit)


def _dense(steps: Levels, length: int) -> Levels:
    """As many runs that follow each other."""
    found: list[tuple[int, int]] = []
    for n, _ in reversed(steps):
        found.append((n, length))
        length *= n
    return found[::-1]


def levels(offsets: Sequence[np.ndarray]) -> list[tuple[int, ...]] | None:
    """Offsets in one or more arrays as nested steps, the outermost first: the number of
    steps, and how long they are in each. None where they are not regular."""
    found: list[tuple[int, ...]] = []
    every = np.stack(offsets)
    while every.shape[1] > 1:
        step = every[:, 1] - every[:, 0]
        other = np.flatnonzero((np.diff(every, axis=1) != step[:, None]).any(0))
        n = int(other[0]) + 1 if len(other) else every.shape[1]
        if every.shape[1] % n or len(found) > 8:
            return None
        rows = every.reshape(len(offsets), -1, n)
        if (np.diff(rows, axis=2) != step[:, None, None]).any():
            return None
        found.append((n, *step.tolist()))
        every = rows[:, :, 0]
    return found[::-1]


def _steps(
    length: np.ndarray, offsets: Sequence[np.ndarray], by: Library
) -> list[Levels] | None:
    """Runs in one or more arrays as nested steps in each; None if they are not of one
    length, or descend where the library has no negative strides."""
    found = levels(offsets) if (length == length[0]).all() else None
    if found is None:
        return None
    every: list[Levels] = [
        [(n, step[k]) for n, *step in found] for k in range(len(offsets))
    ]
    if not by.negative and any(step < 0 for some in every for _, step in some):
        return None
    return every


def _offsets(x: Array, start: np.ndarray) -> np.ndarray:
    """Where elements of the flattened array are, in bytes from its address."""
    axis, inner = x.inner
    row, column = np.divmod(start, max(inner, 1))
    found = column * x.dtype.itemsize
    for n, step in zip(
        reversed(x.shape[:axis]), reversed(x.strides[:axis]), strict=True
    ):
        row, digit = np.divmod(row, max(n, 1))
        found = found + digit * step
    return found


def place(x: Array, start: np.ndarray, size: np.ndarray) -> Place:
    """Where runs of the flattened array lie."""
    start, size = cut_at(start, size, max(x.inner[1], 1))
    item = x.dtype.itemsize
    length, offset = joined(size * item, [_offsets(x, start)])
    steps = _steps(length, [offset], x.by) if len(length) else None
    nested = None if steps is None else steps[0]
    return Place(x.address, nested, offset, length, item, x.by)


def copier(
    x: Array,
    start: np.ndarray,
    y: Array,
    to: np.ndarray,
    size: np.ndarray,
    room: Callable[[int], Any],
) -> Copying:
    """What copies runs of one flattened array into another, of the same library; `room`
    gives memory."""
    if not len(size):
        return _nothing
    start, to, size = _cut(start, to, size, x.inner[1])
    to, start, size = _cut(to, start, size, y.inner[1])
    item, by = x.dtype.itemsize, x.by
    length, a, b = joined(size * item, [_offsets(x, start), _offsets(y, to)])
    steps = _steps(length, [a, b], by)
    if steps is None:
        packed = by.address(room(int(length.sum())))
        return partial(
            each,
            (
                Place(x.address, None, a, length, item, by).copier(packed),
                Place(y.address, None, b, length, item, by).copier(packed, unpack=True),
            ),
        )
    ends, n = (x.address + int(a[0]), y.address + int(b[0])), int(length[0])
    unit = _unit([*ends, n], [*steps[0], *steps[1]])
    source, target = (
        _nested(by, at, some, n, unit) for at, some in zip(ends, steps, strict=True)
    )
    return by.copier(target, None, source, None)


def _cut(
    start: np.ndarray, other: np.ndarray, size: np.ndarray, block: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Runs in two arrays, cut at multiples of a block in the first."""
    block = max(block, 1)
    times = (start + size - 1) // block - start // block + 1
    found, sizes = cut_at(start, size, block)
    return found, found + np.repeat(other - start, times), sizes


def _nothing() -> None:
    pass
