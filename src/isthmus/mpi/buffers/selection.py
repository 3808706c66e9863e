"""Bytes of a buffer that lie in many runs: packed, unpacked, or a datatype of MPI.

A Python step for each run takes half a microsecond. Numpy copies all runs at once if an
array with strides (runs of one length in nested steps) or an index describes them. A
selection is this description, by offsets from the beginning of a buffer, so that a plan
can keep the description for buffers at any address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any, Protocol, TypeAlias

import numpy as np
from mpi4py import MPI

from ...redistribution.runs import spread

#: nested steps, the outermost first: the number of steps, and the bytes of a step
Levels: TypeAlias = tuple[tuple[int, int], ...]
#: shorter runs are packed, since a run takes MPI libraries about the time of so many
#: bytes; above the number of irregular runs below, data are packed too
LEAST_TYPED_RUN_BYTES = 512
MOST_TYPED_RUNS = 1024
#: shorter messages are packed, since a datatype takes 5 µs to create and free
LEAST_TYPED_BYTES = 1 << 15
#: data nested deeper count as irregular
MOST_LEVELS = 8


@dataclass(frozen=True, eq=False)
class Selection:
    """Runs of bytes of a buffer, in the order in which a message carries them."""

    offsets: np.ndarray
    lengths: np.ndarray
    nbytes: int
    #: the nested steps of regular runs; None if runs are irregular
    levels: Levels | None
    #: the bytes of the integers that are copied; runs are whole multiples
    unit: int

    @property
    def is_typed(self) -> bool:
        """Whether sending by an MPI datatype is faster than packing the runs."""
        if self.nbytes < LEAST_TYPED_BYTES:
            return False
        if self.levels is not None:
            return int(self.lengths[0]) >= LEAST_TYPED_RUN_BYTES
        runs = len(self.lengths)
        return runs <= MOST_TYPED_RUNS and self.nbytes >= LEAST_TYPED_RUN_BYTES * runs

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first selected byte of the buffer, and the end after the last."""
        if not len(self.offsets):
            return 0, 0
        return int(self.offsets.min()), int((self.offsets + self.lengths).max())

    @cached_property
    def index(self) -> np.ndarray:
        """The index of each integer of irregular runs, counted from the lowest byte.

        An index is computed only when a step packs by an index, since each integer of
        data takes eight bytes of index.
        """
        low = self.span[0]
        return spread((self.offsets - low) // self.unit, self.lengths // self.unit)

    def datatype(self) -> MPI.Datatype:
        """The runs as one committed element, from the beginning of the buffer on.

        The caller frees the datatype.
        """
        if self.levels is None:
            lengths, offsets = self.lengths.tolist(), self.offsets.tolist()
            return MPI.BYTE.Create_hindexed(lengths, offsets).Commit()
        element = MPI.BYTE.Create_contiguous(int(self.lengths[0]))
        for n, step in reversed(self.levels):
            inner, element = element, element.Create_hvector(n, 1, step)
            inner.Free()
        placed = element.Create_hindexed([1], [int(self.offsets[0])])
        element.Free()
        return placed.Commit()


def select_pair(
    offsets: Sequence[np.ndarray], lengths: np.ndarray, alignment: int = 8
) -> tuple[Selection, Selection]:
    """The selections of equal runs in two buffers, of one shape if regular in both.

    One shape lets numpy copy buffer to buffer without packing.
    """
    if len(lengths) and (lengths == lengths[0]).all():
        steps = nested_steps(offsets)
        if steps is not None:
            pair = [tuple((n, step[k]) for n, *step in steps) for k in range(2)]
            numbers = [int(x[0]) for x in offsets] + [int(lengths[0])]
            numbers += [step for levels in pair for _, step in levels]
            unit, nbytes = gcd(8, alignment, *numbers), int(lengths.sum())
            x, y = (
                Selection(at, lengths, nbytes, levels, unit)
                for at, levels in zip(offsets, pair, strict=True)
            )
            return x, y
    first, second = (select(x, lengths, alignment) for x in offsets)
    return first, second


def select(offsets: np.ndarray, lengths: np.ndarray, alignment: int = 8) -> Selection:
    """The selection of runs, none of them empty.

    Runs are copied as integers of at most 8 bytes, and no longer than the alignment of
    the array, since a device reads integers only at multiples of their size.
    """
    levels = _levels_of(offsets, lengths)
    nbytes = int(lengths.sum())
    if levels is not None:
        numbers = [int(offsets[0]), int(lengths[0]), *(step for _, step in levels)]
        unit = gcd(8, alignment, nbytes, *numbers)
        return Selection(offsets, lengths, nbytes, levels, unit)
    low = int(offsets.min())
    # the lowest bit of any number is that of all numbers joined, and gcd.reduce takes
    # ten times as long
    bits = np.bitwise_or.reduce(offsets - low) | np.bitwise_or.reduce(lengths)
    unit = gcd(8, alignment, low, nbytes, int(bits))
    return Selection(offsets, lengths, nbytes, None, unit)


def _levels_of(offsets: np.ndarray, lengths: np.ndarray) -> Levels | None:
    if not len(lengths):
        return ()
    if (lengths != lengths[0]).any():
        return None
    steps = nested_steps([offsets])
    return None if steps is None else tuple((n, step) for n, step in steps)


def nested_steps(offsets: Sequence[np.ndarray]) -> list[tuple[int, ...]] | None:
    """Offsets in buffers as nested steps, the outermost first, or None if irregular.

    A level is the number of steps, then the bytes of a step in each buffer.
    """
    levels: list[tuple[int, ...]] = []
    rows = np.stack(offsets)
    while rows.shape[1] > 1:
        step = rows[:, 1] - rows[:, 0]
        irregular = np.flatnonzero((np.diff(rows, axis=1) != step[:, None]).any(0))
        n = int(irregular[0]) + 1 if len(irregular) else rows.shape[1]
        if rows.shape[1] % n or len(levels) > MOST_LEVELS:
            return None
        groups = rows.reshape(len(offsets), -1, n)
        if (np.diff(groups, axis=2) != step[:, None, None]).any():
            return None
        levels.append((n, *step.tolist()))
        rows = groups[:, :, 0]
    return levels[::-1]


class Packer(Protocol):
    """A library that copies selected bytes: numpy, or that of arrays on a device."""

    def begin(self) -> None:
        """Wait for work on the data that was started before a call."""

    def room(self, nbytes: int) -> Any:
        """Scratch memory, on the device of the data."""

    def pack(self, source: Any, selection: Selection, target: Any, start: int) -> None:
        """Copy selected bytes of one buffer side by side into another."""

    def unpack(
        self, source: Any, start: int, target: Any, selection: Selection
    ) -> None:
        """Copy bytes that lie side by side to the places of a selection."""

    def move(
        self, source: Any, read: Selection, target: Any, written: Selection
    ) -> None:
        """Copy selected bytes of one buffer to the selected places of another."""


class HostPacker:
    """Numpy, in the memory of the host."""

    def begin(self) -> None:
        """Nothing to wait for, since writes to host memory complete at once."""

    def room(self, nbytes: int) -> memoryview:
        """Scratch memory of the host."""
        return np.empty(nbytes, np.uint8).data

    def pack(
        self, source: memoryview, selection: Selection, target: memoryview, start: int
    ) -> None:
        """Copy selected bytes of one buffer side by side into another."""
        if not selection.nbytes:
            return
        packed = _side_by_side(target, start, selection)
        if selection.levels is not None:
            np.copyto(packed, _strided(source, selection))
        else:
            np.take(
                _from_low(source, selection), selection.index, out=packed, mode="clip"
            )

    def unpack(
        self, source: memoryview, start: int, target: memoryview, selection: Selection
    ) -> None:
        """Copy bytes that lie side by side to the places of a selection."""
        if not selection.nbytes:
            return
        packed = _side_by_side(source, start, selection)
        if selection.levels is not None:
            np.copyto(_strided(target, selection), packed)
        else:
            _from_low(target, selection)[selection.index] = packed

    def move(
        self,
        source: memoryview,
        read: Selection,
        target: memoryview,
        written: Selection,
    ) -> None:
        """Copy selected bytes of one buffer to the selected places of another."""
        if is_parallel(read, written):
            np.copyto(_strided(target, written), _strided(source, read))
            return
        packed = self.room(read.nbytes)
        self.pack(source, read, packed, 0)
        self.unpack(packed, 0, target, written)


HOST_PACKER = HostPacker()


def is_parallel(x: Selection, y: Selection) -> bool:
    """Whether two selections are arrays of one shape, copied without packing."""
    if x.levels is None or y.levels is None or x.unit != y.unit or not x.nbytes:
        return False
    return shape_of(x) == shape_of(y)


def shape_of(selection: Selection) -> tuple[int, ...]:
    """The shape of regular runs in integers; the number of integers if irregular."""
    if selection.levels is None:
        return (selection.nbytes // selection.unit,)
    counts = (n for n, _ in selection.levels)
    return (*counts, int(selection.lengths[0]) // selection.unit)


def _side_by_side(
    memory: memoryview, start: int, selection: Selection
) -> np.ndarray[Any, Any]:
    return np.ndarray(shape_of(selection), f"i{selection.unit}", memory, start)


def _strided(memory: memoryview, selection: Selection) -> np.ndarray[Any, Any]:
    assert selection.levels is not None
    strides = (*(step for _, step in selection.levels), selection.unit)
    first, dtype = int(selection.offsets[0]), f"i{selection.unit}"
    return np.ndarray(shape_of(selection), dtype, memory, first, strides)


def _from_low(memory: memoryview, selection: Selection) -> np.ndarray[Any, Any]:
    low, high = selection.span
    count = (high - low) // selection.unit
    return np.ndarray((count,), f"i{selection.unit}", memory, low)
