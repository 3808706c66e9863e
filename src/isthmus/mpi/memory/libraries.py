"""Who packs: numpy on the host, and on a device the library that an array comes from.

A library sees memory by its address as an array of integers of some bytes, and copies
between such arrays. Packing needs no more, whatever the type of the data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from . import device, memory, staged
from .cuda import Device

Copying = Callable[[], Any]


class Library(Protocol):
    """What packing needs of a library."""

    #: whether the MPI library may take long runs as they lie, by a derived datatype
    takes_runs: bool
    #: whether its arrays may have negative strides
    negative: bool

    def room(self, nbytes: int) -> Any:
        """Memory of our own."""

    def address(self, room: Any) -> int:
        """Where that is."""

    def view(
        self, address: int, shape: Sequence[int], strides: Sequence[int], unit: int
    ) -> Any:
        """Memory as an array of integers of so many bytes; it keeps nothing alive."""

    def index(self, at: np.ndarray) -> Any:
        """Integers by which an array is indexed."""

    def copier(self, y: Any, to: Any, x: Any, frm: Any) -> Copying:
        """What copies x[frm] to y[to]; at most one of them has an index, the other is
        None and means all of it."""


class Numpy:
    """Memory of the host."""

    takes_runs = negative = True

    def room(self, nbytes: int) -> Any:
        """Memory of our own."""
        return memory.scratch(nbytes)

    def address(self, room: Any) -> int:
        """Where that is."""
        found: int = room.__array_interface__["data"][0]
        return found

    def view(
        self, address: int, shape: Sequence[int], strides: Sequence[int], unit: int
    ) -> Any:
        """Memory as an array."""
        return strided(address, shape, strides, f"i{unit}")

    def index(self, at: np.ndarray) -> Any:
        """Integers by which an array is indexed."""
        return at

    def copier(self, y: Any, to: Any, x: Any, frm: Any) -> Copying:
        """What copies."""
        if to is not None:
            return partial(y.__setitem__, to, x)
        if frm is not None:
            return partial(np.take, x, frm, out=y, mode="clip")
        return partial(np.copyto, y, x)


NUMPY = Numpy()


def strided(
    address: int, shape: Sequence[int], strides: Sequence[int], dtype: Any
) -> np.ndarray:
    """Memory as an array, which is not touched by that."""
    dtype = np.dtype(dtype)
    if 0 in shape:
        return np.empty(shape, dtype)
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low = sum(x for x in reach if x < 0)
    size = sum(x for x in reach if x > 0) - low + dtype.itemsize
    raw = memoryview(memory.buffer(address + low, size))
    found: np.ndarray = np.ndarray(shape, dtype, raw, -low, strides)
    return found


@dataclass(frozen=True, slots=True)
class _Memory:
    """Memory of a device, as its libraries take it."""

    __cuda_array_interface__: dict[str, Any]


class OnDevice:
    """A library of arrays on a device, such as torch and CuPy. What it copies is there
    when a step is done: the MPI library knows no streams."""

    takes_runs = negative = False

    def __init__(self, asarray: Callable[[Any], Any], here: Any) -> None:
        """What makes arrays on a device, and the context in which it does."""
        self._asarray, self._here = asarray, here
        self._on: set[Device] = set()

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
        return strided(x.address, x.shape, x.strides, x.dtype)

    def room(self, nbytes: int) -> Any:
        """Memory of our own: one byte, repeated."""
        with self._here:
            return self._done(self._asarray(np.zeros(1, np.uint8)).repeat(nbytes))

    def address(self, room: Any) -> int:
        """Where that is."""
        found: int = room.__cuda_array_interface__["data"][0]
        return found

    def view(
        self, address: int, shape: Sequence[int], strides: Sequence[int], unit: int
    ) -> Any:
        """Memory as an array."""
        found = {
            "data": (address, False),
            "shape": tuple(shape),
            "strides": tuple(strides),
            "typestr": np.dtype(f"i{unit}").str,
            "version": 2,
        }
        with self._here:
            return self._asarray(_Memory(found))

    def index(self, at: np.ndarray) -> Any:
        """Integers by which an array is indexed."""
        with self._here:
            return self._done(self._asarray(at))

    def copier(self, y: Any, to: Any, x: Any, frm: Any) -> Copying:
        """What copies."""
        ends = y, ... if to is None else to, x, ... if frm is None else frm
        return partial(self._copy, *ends)

    def _copy(self, y: Any, to: Any, x: Any, frm: Any) -> None:
        with self._here:
            y[to] = x[frm]
            self._done(y)

    @staticmethod
    def _done(array: Any) -> Any:
        """An array, when what its library does with it is done."""
        staged.synchronize(staged.located(array))
        return array


def library(fields: Sequence[Any]) -> OnDevice | None:
    """The library of some arrays, if all are on one device and it can pack there."""
    if len({(_root(x), *device.place(x)) for x in fields}) != 1:
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
