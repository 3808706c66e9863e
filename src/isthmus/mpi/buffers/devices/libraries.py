"""Packing on a device, by the library of the arrays.

The library (torch, CuPy) copies between arrays of integers made from addresses. Packing
needs no type of the data, so that fields of any type can be packed.
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
    """Device memory in the form that libraries of arrays read."""

    __cuda_array_interface__: dict[str, Any]


class DevicePacker:
    """A library of arrays on a device, such as torch or CuPy.

    A step waits for the copies of the library, because the MPI library knows no streams
    and would send memory not yet written.
    """

    def __init__(self, asarray: Callable[[Any], Any], device_context: Any) -> None:
        """With the function that creates arrays on a device, and its context."""
        self._asarray, self._device_context = asarray, device_context
        self._devices: set[Device] = set()
        #: indices on the device by the identity of a selection's offsets, which the
        #: entry keeps alive: an address could be used again otherwise
        self._indices: dict[int, tuple[np.ndarray, Any]] = {}

    def begin(self) -> None:
        """Wait for work on the arrays, on all streams."""
        for home in self._devices:
            home.after(device.ALL_STREAMS)

    def described(self, field: Any, written: bool) -> np.ndarray:
        """An array with the address and layout of a field, not to be read or written.

        Waits for the work of the field's producer.
        """
        array = staged.located(field, written)
        staged.synchronize(array)
        self._devices.add(staged.home(array))
        return _untouched(array)

    def room(self, nbytes: int) -> MPI.memory:
        """Scratch memory on the device, a repeated byte, kept alive by the view."""
        with self._device_context:
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
        """Copy bytes that lie side by side to the places of a selection."""
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
        """The array that has the selected integers, and the index of the integers."""
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
        entry = self._indices.get(id(selection.offsets))
        if entry is None:
            index = selection.index
            with self._device_context:
                entry = selection.offsets, self._done(self._asarray(index))
            self._indices[id(selection.offsets)] = entry
        return entry[1]

    def _view(
        self, address: int, shape: Sequence[int], strides: Sequence[int], unit: int
    ) -> Any:
        """Memory as an array of integers, without a hold on the memory."""
        described = {
            "data": (address, False),
            "shape": tuple(shape),
            "strides": tuple(strides),
            "typestr": np.dtype(f"i{unit}").str,
            "version": 2,
        }
        with self._device_context:
            return self._asarray(_Memory(described))

    def _copy(self, target: Any, to: Any, source: Any, frm: Any) -> None:
        with self._device_context:
            target[to] = source[frm]
            self._done(target)

    @staticmethod
    def _done(array: Any) -> Any:
        """The array, once the library's work on the array is done."""
        staged.synchronize(staged.located(array))
        return array


def _is_nested(selection: Selection) -> bool:
    """Whether an array with positive strides describes the selected integers.

    Integers at negative strides are selected by an index, since the libraries take no
    negative strides.
    """
    levels = selection.levels
    return levels is not None and all(step > 0 for _, step in levels)


def _untouched(array: device.Array) -> np.ndarray:
    """A numpy array of equal shape, strides and type, at an address of the device."""
    shape, strides = array.shape, array.strides
    reaches = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    if 0 in shape:
        return np.empty(shape, array.dtype)
    low = sum(reach for reach in reaches if reach < 0)
    size = sum(reach for reach in reaches if reach > 0) - low + array.dtype.itemsize
    raw = view(MPI.memory.fromaddress(array.address + low, size))
    untouched: np.ndarray = np.ndarray(shape, array.dtype, raw, -low, strides)
    return untouched


def library(fields: Sequence[Any]) -> DevicePacker | None:
    """The library of arrays that lie on a single device, if able to pack there."""
    if len({(_root(x), *place(x)) for x in fields}) != 1:
        return None
    module: Any = sys.modules.get(_root(fields[0]))
    array_device = getattr(fields[0], "device", None)
    if hasattr(module, "as_tensor"):  # torch
        return DevicePacker(
            partial(module.as_tensor, device=array_device), nullcontext()
        )
    if hasattr(module, "asarray"):  # CuPy, whose devices are contexts
        return DevicePacker(module.asarray, array_device or nullcontext())
    return None


def _root(x: Any) -> str:
    """The name of the library that defines the type of an array."""
    return type(x).__module__.partition(".")[0]
