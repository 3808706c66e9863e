"""The library that an array on a device comes from, which packs there.

A library sees memory by its address as an array of integers of some bytes, and copies
between such arrays. Packing needs no more, whatever the type of the data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from ..dlpack import place
from ..selection import Selection, is_parallel, shape_of
from ..user_buffer import view
from . import arrays as device, staged
from .cuda import Device


@dataclass(frozen=True, slots=True)
class _Memory:
    """Memory of a device, as its libraries take it."""

    __cuda_array_interface__: dict[str, Any]


class OnDevice:
    """A library of arrays on a device, such as torch and CuPy. What it copies is there
    when a step is done: the MPI library knows no streams."""

    def __init__(self, asarray: Callable[[Any], Any], here: Any) -> None:
        """What makes arrays on a device, and the context in which it does."""
        self._asarray, self._here = asarray, here
        self._on: set[Device] = set()
        #: indices on the device, by those of the selections that have them
        self._indices: dict[int, tuple[np.ndarray, Any]] = {}

    def begin(self) -> None:
        """Wait for what was done with arrays, on any stream."""
        for on in self._on:
            on.after(device.EVERY)

    def described(self, field: Any, written: bool) -> np.ndarray:
        """An array that says where a field lies, and may not be touched; what its
        producer does with the field is waited for."""
        x = staged.located(field, written)
        staged.synchronize(x)
        self._on.add(staged.home(x))
        return _untouched(x)

    def room(self, nbytes: int) -> MPI.memory:
        """Scratch memory: one byte, repeated; the view keeps it."""
        with self._here:
            array = self._done(self._asarray(np.zeros(1, np.uint8)).repeat(nbytes))
        return MPI.memory(array)

    def pack(self, source: Any, selection: Selection, target: Any, start: int) -> None:
        """Copy selected bytes of one buffer side by side into another."""
        if selection.nbytes:
            packed = self._packed(target, start, selection)
            self._copy(packed, ..., *self._selected(source, selection))

    def unpack(
        self, source: Any, start: int, target: Any, selection: Selection
    ) -> None:
        """Copy bytes that lie side by side to where a selection has them."""
        if selection.nbytes:
            packed = self._packed(source, start, selection)
            self._copy(*self._selected(target, selection), packed, ...)

    def move(
        self, source: Any, read: Selection, target: Any, written: Selection
    ) -> None:
        """Copy selected bytes of one buffer to the selected places of another."""
        if _is_nested(read) and _is_nested(written) and is_parallel(read, written):
            x, y = self._selected(source, read), self._selected(target, written)
            self._copy(*y, *x)
            return
        packed = self.room(read.nbytes)
        self.pack(source, read, packed, 0)
        self.unpack(packed, 0, target, written)

    def _packed(self, memory: Any, start: int, selection: Selection) -> Any:
        unit = selection.unit
        is_nested = _is_nested(selection)
        shape = shape_of(selection) if is_nested else [selection.nbytes // unit]
        strides, step = [], unit
        for n in reversed(shape):
            strides.append(step)
            step *= n
        return self._view(memory.address + start, shape, strides[::-1], unit)

    def _selected(self, memory: Any, selection: Selection) -> tuple[Any, Any]:
        """The array in which selected integers lie, and the index of these."""
        unit = selection.unit
        if _is_nested(selection):
            assert selection.levels is not None
            strides = [*(step for _, step in selection.levels), unit]
            address = memory.address + int(selection.offsets[0])
            return self._view(address, shape_of(selection), strides, unit), ...
        count = (selection.span[1] - selection.span[0]) // unit
        address = memory.address + selection.span[0]
        return self._view(address, [count], [unit], unit), self._index(selection)

    def _index(self, selection: Selection) -> Any:
        """The index of selected integers, on the device."""
        known = self._indices.get(id(selection.offsets))
        if known is None:
            index = selection.index
            with self._here:
                known = selection.offsets, self._done(self._asarray(index))
            self._indices[id(selection.offsets)] = known
        return known[1]

    def _view(
        self, address: int, shape: Sequence[int], strides: Sequence[int], unit: int
    ) -> Any:
        """Memory as an array of integers; it keeps nothing alive."""
        described = {
            "data": (address, False),
            "shape": tuple(shape),
            "strides": tuple(strides),
            "typestr": np.dtype(f"i{unit}").str,
            "version": 2,
        }
        with self._here:
            return self._asarray(_Memory(described))

    def _copy(self, y: Any, to: Any, x: Any, frm: Any) -> None:
        with self._here:
            y[to] = x[frm]
            self._done(y)

    @staticmethod
    def _done(array: Any) -> Any:
        """An array, when what its library does with it is done."""
        staged.synchronize(staged.located(array))
        return array


def _is_nested(selection: Selection) -> bool:
    """Whether an array has the selected integers at its positive strides.

    The libraries take no negative ones; such integers are taken by their index.
    """
    levels = selection.levels
    return levels is not None and all(step > 0 for _, step in levels)


def _untouched(x: device.Array) -> np.ndarray:
    """An array of the same shape, strides and type, by an address that nobody reads."""
    reach = [(n - 1) * step for n, step in zip(x.shape, x.strides, strict=True)]
    if 0 in x.shape:
        return np.empty(x.shape, x.dtype)
    low = sum(step for step in reach if step < 0)
    size = sum(step for step in reach if step > 0) - low + x.dtype.itemsize
    raw = view(MPI.memory.fromaddress(x.address + low, size))
    array: np.ndarray = np.ndarray(x.shape, x.dtype, raw, -low, x.strides)
    return array


def library(fields: Sequence[Any]) -> OnDevice | None:
    """The library of some arrays, if all are on one device and it can pack there."""
    if len({(_root(x), *place(x)) for x in fields}) != 1:
        return None
    module: Any = sys.modules.get(_root(fields[0]))
    here = getattr(fields[0], "device", None)
    if hasattr(module, "as_tensor"):  # torch
        return OnDevice(partial(module.as_tensor, device=here), nullcontext())
    if hasattr(module, "asarray"):  # CuPy, whose devices are contexts
        return OnDevice(module.asarray, here or nullcontext())
    return None


def _root(x: Any) -> str:
    """The name of the library that a type is from."""
    return type(x).__module__.partition(".")[0]
