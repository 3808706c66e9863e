"""Where elements of a user's arrays lie in memory, and how they become messages.

The only place that knows the memory of fields. What is contiguous goes straight from
and into the array; what lies in long runs too, by a derived datatype; other data are
packed by numpy.
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

#: runs of fewer bytes are packed: MPI libraries take about as long for a run as for so
#: many bytes
LONG = 512
#: of more irregular runs than this, an MPI library's datatype is no help
MANY = 1024

Copying = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Array:
    """An array by its place in memory; it keeps nothing alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype

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
        """The array."""
        return _strided(self.address, self.shape, self.strides, self.dtype)


def array_of(x: np.ndarray) -> Array:
    """Where an array lies."""
    address: int = x.__array_interface__["data"][0]
    return Array(address, x.shape, x.strides, x.dtype)


def _strided(
    address: int, shape: Sequence[int], strides: Sequence[int], dtype: Any
) -> np.ndarray:
    """Memory as an array."""
    dtype = np.dtype(dtype)
    if 0 in shape:
        return np.empty(shape, dtype)
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low = sum(x for x in reach if x < 0)
    size = sum(x for x in reach if x > 0) - low + dtype.itemsize
    raw = memoryview(memory.buffer(address + low, size))
    found: np.ndarray = np.ndarray(shape, dtype, raw, -low, strides)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Bytes in memory: runs of one length in nested steps, or any runs."""

    base: int
    #: of runs of one length: how many there are, and the bytes from one to the next,
    #: for each level
    levels: tuple[tuple[int, int], ...] | None
    offset: np.ndarray
    length: np.ndarray
    #: bytes that are never split
    item: int

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
        if len(self.length) <= 1:
            return True
        if self.levels is not None:
            return int(self.length[0]) >= LONG
        return len(self.length) <= MANY and self.nbytes >= LONG * len(self.length)

    def copier(self, packed: np.ndarray, unpack: bool = False) -> Copying:
        """What packs it into an array of bytes, or unpacks that."""
        if self.levels is None:
            return self._any(packed, unpack)
        unit = _unit(self)
        counts, steps = [n for n, _ in self.levels], [s for _, s in self.levels]
        counts.append(int(self.length[0]) // unit)
        at = self.base + int(self.offset[0])
        here = _strided(
            at, counts, [*steps, unit], f"V{unit}" if unit > 8 else f"u{unit}"
        )
        there = packed.view(here.dtype).reshape(counts)
        return (
            partial(np.copyto, here, there)
            if unpack
            else partial(np.copyto, there, here)
        )

    def _any(self, packed: np.ndarray, unpack: bool) -> Copying:
        low, high = int(self.offset.min()), int((self.offset + self.length).max())
        step = gcd(self.item, int(np.gcd.reduce(self.offset - low)))
        unit = step if step in (1, 2, 4, 8) else gcd(step, 8)
        whole = _strided(self.base + low, [(high - low) // unit], [unit], f"u{unit}")
        at = spread((self.offset - low) // unit, self.length // unit)
        there = packed.view(whole.dtype)
        if unpack:
            return partial(whole.__setitem__, at, there)
        return partial(np.take, whole, at, out=there, mode="clip")

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


def _unit(place: Place) -> int:
    """The bytes of the largest integer that runs and steps are made of."""
    steps = [step for _, step in place.levels or ()]
    found = gcd(int(place.length[0]), *map(abs, steps))
    return next(unit for unit in (8, 4, 2, 1) if found % unit == 0)


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
    nested: list[tuple[int, ...]] | None = []
    if len(length) > 1:
        nested = levels([offset]) if (length == length[0]).all() else None
    regular = None if nested is None else tuple((n, step) for n, step in nested)
    return Place(x.address, regular, offset, length, item)


def copier(
    x: Array, start: np.ndarray, y: Array, to: np.ndarray, size: np.ndarray
) -> Copying:
    """What copies runs of one flattened array into another."""
    if not len(size):
        return _nothing
    frm, cut = cut_at(start, size, max(x.inner[1], 1))
    at = (
        np.repeat(to, _times(start, size, x.inner[1]))
        + frm
        - np.repeat(start, _times(start, size, x.inner[1]))
    )
    again = _times(at, cut, y.inner[1])
    to, n = cut_at(at, cut, max(y.inner[1], 1))
    frm = np.repeat(frm, again) + to - np.repeat(at, again)
    item = x.dtype.itemsize
    length, a, b = joined(n * item, [_offsets(x, frm), _offsets(y, to)])
    nested = levels([a, b]) if (length == length[0]).all() else None
    if nested is None:
        room = memory.scratch(int(length.sum()))
        steps = (
            Place(x.address, None, a, length, item).copier(room),
            Place(y.address, None, b, length, item).copier(room, unpack=True),
        )
        return partial(each, steps)
    ends = []
    for k, (array, offset) in enumerate(((x, a), (y, b))):
        steps_ = tuple((level[0], level[1 + k]) for level in nested)
        ends.append(Place(array.address, steps_, offset[:1], length[:1], item))
    unit = min(map(_unit, ends))
    views = [
        _strided(
            e.base + int(e.offset[0]),
            [*(m for m, _ in e.levels or ()), int(length[0]) // unit],
            [*(s for _, s in e.levels or ()), unit],
            f"u{unit}",
        )
        for e in ends
    ]
    return partial(np.copyto, views[1], views[0])


def _times(start: np.ndarray, size: np.ndarray, block: int) -> np.ndarray:
    """Into how many pieces runs are cut at multiples of a block."""
    block = max(block, 1)
    found: np.ndarray = (start + size - 1) // block - start // block + 1
    return found


def _nothing() -> None:
    pass
