"""Host memory that stands for arrays on a device while a call runs.

The call is the one of host arrays, so it does not matter to others where the data of a
rank lie. What is pinned is kept for later calls, up to a bound.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from math import prod
from threading import RLock
from typing import Any

import numpy as np
from mpi4py import MPI

from .. import on_devices
from ..dlpack import CUDA, place
from . import arrays as device
from .arrays import Array
from .cuda import Device, Gpu

#: who copies from and to devices of each kind, by their number
KINDS: dict[int, Any] = {CUDA: Gpu}
#: bytes of pinned memory that are kept when no call uses them
KEPT = 1 << 30
#: bytes: memory is pinned in multiples of this, or in powers of two below
LARGE, SMALL = 1 << 20, 1 << 14
#: the longest step from row to row that a device takes
MOST_PITCH = (1 << 31) - 1


@cache
def device_of(kind: int, number: int) -> Device:
    """The device of a kind that has a number."""
    return _kind(kind)(number)  # type: ignore[no-any-return]


def _kind(kind: int) -> Any:
    if kind not in KINDS:
        raise ValueError(
            "message: the buffer is in the memory of a device of a kind that isthmus "
            f"cannot copy from (DLPack's {kind}); copy it to the host"
        )
    return KINDS[kind]


def stream_of(kind: int, number: int) -> int:
    """The stream on which arrays of a device are copied."""
    return device_of(kind, number).stream


def home(array: Array) -> Device:
    """The device of an array."""
    number = array.number
    if number is None:
        number = _kind(array.kind).number_of(array.address) if array.nbytes else 0
    return device_of(array.kind, number)


def located(owner: Any, written: bool = False) -> Array:
    """An array on a device that isthmus can copy from; it may have to be written."""
    _kind(place(owner)[0])
    array = device.described(owner, stream_of)
    if written and array.readonly:
        raise BufferError("message: the receive buffer is read-only")
    return array


def synchronize(array: Array) -> None:
    """Wait until what its producer does with an array is done."""
    if array.nbytes and array.stream is not None:
        on = home(array)
        on.after(array.stream)
        on.wait(on.record(False))


def wait_for_producers(specs: tuple[Any, ...]) -> None:
    """Wait until buffers that the MPI library takes as they are hold what they will, on
    devices of kinds that isthmus knows."""
    for i in on_devices.among(specs):
        owner = on_devices.owner_of(specs[i])
        if place(owner)[0] in KINDS:
            synchronize(located(owner))


# -- pinned memory


class Pool:
    """Pinned memory of a device that calls give back."""

    def __init__(self, on: Device) -> None:
        self._on = on
        #: addresses by their bytes, those used last at the end
        self._free: list[tuple[int, int]] = []
        self._lock = RLock()  # an array may end anywhere, in here too

    def room(self, nbytes: int) -> np.ndarray:
        """An array of bytes, whose memory is kept when it is gone."""
        size = max(1 << (nbytes - 1).bit_length(), SMALL)
        if size > LARGE:
            size = -(-nbytes // LARGE) * LARGE
        with self._lock:
            found = [x for x in self._free if x[1] == size]
            if found:
                self._free.remove(found[-1])
        try:
            address = found[-1][0] if found else self._on.pin(size)
        except MemoryError:  # not pinned, it is slower
            return np.empty(nbytes, np.uint8)
        raw = (ctypes.c_char * size).from_address(address)
        weakref.finalize(raw, self._give, address, size).atexit = False
        made: np.ndarray = np.frombuffer(memoryview(raw), np.uint8, nbytes)
        return made

    def _give(self, address: int, size: int) -> None:
        with self._lock:
            self._free.append((address, size))
            while sum(n for _, n in self._free) > KEPT:
                self._on.unpin(self._free.pop(0)[0])


_pools: dict[Device, Pool] = {}


def _pool(on: Device) -> Pool:
    return _pools.setdefault(on, Pool(on))


# -- one array


@dataclass(frozen=True, slots=True)
class Geometry:
    """How an array lies on a device, and without gaps on the host."""

    #: its axes on the host, those with the longest strides first
    order: tuple[int, ...]
    #: from its address to its first byte
    first: int
    #: around what is contiguous: how often, and how far apart
    levels: tuple[tuple[int, int], ...]
    #: the bytes of each
    sizes: tuple[int, ...]


@lru_cache(256)
def _geometry(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> Geometry:
    steps = list(zip(shape, strides, strict=True))
    order = sorted(range(len(steps)), key=lambda i: -abs(steps[i][1]))
    nested = [(n, abs(s)) for n, s in (steps[i] for i in order) if n != 1]
    width = item
    while nested and nested[-1][1] == width:
        width *= nested.pop()[0]
    sizes = [width * prod(n for n, _ in nested[i:]) for i in range(len(nested) + 1)]
    first = sum((n - 1) * s for n, s in steps if s < 0 < n)
    return Geometry(tuple(order), first, tuple(nested), tuple(sizes[1:]))


class Staged:
    """An array on a device, and the host memory that stands for it: the same elements
    in the same order, without gaps."""

    def __init__(self, array: Array) -> None:
        self.array, self.nbytes = array, array.nbytes
        self.on = home(array)
        self.room = np.empty(0, np.uint8)
        if self.nbytes:
            self.room = _pool(self.on).room(self.nbytes)
        #: where the host memory is
        self.address: int = MPI.memory(self.room).address
        self._lies = _geometry(array.shape, array.strides, array.dtype.itemsize)
        self._at = array.address + self._lies.first

    @property
    def flat(self) -> np.ndarray:
        """Its elements one after the other, as they lie on the device."""
        return self.room.view(self.array.dtype)

    @cached_property
    def host(self) -> np.ndarray:
        """The same in the shape of the array."""
        shape, strides = self.array.shape, self.array.strides
        order = self._lies.order
        packed = self.flat.reshape([shape[i] for i in order])
        back = sorted(range(len(order)), key=order.__getitem__)
        flip = tuple(slice(None, None, -1 if s < 0 else 1) for s in strides)
        found: np.ndarray = packed.transpose(back)[flip]
        return found

    @property
    def is_contiguous(self) -> bool:
        """Whether it lies on the device without gaps."""
        return not self._lies.levels or not self.nbytes

    def fetch(self, start: int, stop: int) -> None:
        """Begin to copy some of its bytes from the device."""
        self._copy(False, start, stop)

    def store(self, start: int, stop: int) -> None:
        """Begin to copy some of its bytes to the device."""
        self._copy(True, start, stop)

    def _copy(self, out: bool, start: int, stop: int) -> None:
        if start < stop:
            for at, there, width, rows, pitch in self._runs(0, start, stop):
                here = self.address + at
                self.on.copy(out, here, self._at + there, width, rows, pitch)

    def _runs(
        self, level: int, start: int, stop: int
    ) -> Iterator[tuple[int, int, int, int, int]]:
        """Bytes as rows: where they begin here and there, their width, how many there
        are, and how far apart on the device."""
        levels = self._lies.levels
        if level == len(levels):
            yield start, start, stop - start, 1, 0
            return
        pitch, size = levels[level][1], self._lies.sizes[level]
        last = level + 1 == len(levels) and size <= pitch <= MOST_PITCH
        while start < stop:
            k, low = divmod(start, size)
            rows = (stop - start) // size
            if last and rows and not low:
                yield start, k * pitch, size, rows, pitch
                start += rows * size
                continue
            high = min(stop, (k + 1) * size)
            for at, there, *more in self._runs(level + 1, low, low + high - start):
                width, rows, step = more
                yield k * size + at, k * pitch + there, width, rows, step
            start = high


# -- the arrays of a call


class Copies:
    """The arrays of a call that are on devices, and its arguments with host memory in
    their place."""

    def __init__(
        self,
        staged: Sequence[Staged],
        args: tuple[Any, ...] = (),
        *,
        written: Sequence[bool],
        read: Sequence[bool],
        arrays: Mapping[int, int],
        is_persistent: bool = False,
    ) -> None:
        """Which of the arrays may be written, where the steps of a plan do not tell,
        and which may be read before; which array each argument has; whether the call is
        made again and again."""
        self.staged, self.args = staged, args
        self.written, self.read, self.arrays = written, read, arrays
        self.is_persistent = is_persistent

    @property
    def values(self) -> tuple[Any, ...]:
        """What the call is known by, besides the memory that stands for the arrays."""
        return tuple(self.written), tuple(self.read), tuple(self.arrays.items())

    @property
    def devices(self) -> set[Device]:
        """Where the arrays are."""
        return {x.on for x in self.staged if x.nbytes}

    def begin(self) -> None:
        """What is copied from now on follows what was done with the arrays."""
        if self.is_persistent:  # nobody says on which streams that was
            for x in self.devices:
                x.after(device.EVERY)
            return
        for on, stream in {(x.on, x.array.stream) for x in self.staged if x.nbytes}:
            if stream is not None:
                on.after(stream)

    def fetch(self, k: int, start: int, stop: int) -> Callable[[], bool]:
        """Begin to copy bytes of one array from its device; what tells whether that is
        complete."""
        staged = self.staged[k]
        staged.fetch(start, stop)
        return partial(staged.on.is_complete, staged.on.record(False))

    def store(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        """Begin to copy bytes of arrays to their devices."""
        for k, start, stop in ranges:
            self.staged[k].store(start, stop)

    def wait(self, out: bool) -> None:
        """Wait for all copies in one direction."""
        for x in self.devices:
            x.wait(x.record(out))

    def bring(self) -> None:
        """Copy everything from the devices."""
        self.begin()
        for x, read in zip(self.staged, self.read, strict=True):
            if read:
                x.fetch(0, x.nbytes)
        self.wait(False)

    def take(self) -> None:
        """Copy back what may be written."""
        for x, written in zip(self.staged, self.written, strict=True):
            if written:
                x.store(0, x.nbytes)
        self.wait(True)


def standing(owner: Any, written: bool = False) -> Staged:
    """Host memory that stands for an array on a device."""
    return Staged(located(owner, written))


#: operations that write all of what they receive, on every rank
_WHOLE = ("Allgather", "Allreduce", "Alltoall", "Reduce_scatter_block", "Scan")


def copies(
    op: str,
    args: tuple[Any, ...],
    *,
    sends: bool = False,
    is_persistent: bool = False,
) -> Copies:
    """Of a call whose first arguments are buffers, some of them on devices; of a Bcast,
    whether this rank sends."""
    arrays: list[Staged] = []
    host_args = list(args)
    written: list[bool] = []
    read: list[bool] = []
    array_of: dict[int, int] = {}
    for i in on_devices.among(args[: 1 if op == "Bcast" else 2]):
        spec = args[i]
        writes = not sends if op == "Bcast" else i == 1
        mine = standing(on_devices.owner_of(spec), writes)
        if not mine.is_contiguous:
            raise BufferError("message: the array on a device is not contiguous")
        same = next((x for x in arrays if _is_same(x.array, mine.array)), None)
        if same is None:
            same = mine
            arrays.append(same)
            written.append(writes)
            is_whole = not isinstance(spec, list | tuple) and op in _WHOLE
            is_in_place = args[0] is None or args[0] is MPI.IN_PLACE
            read.append(not (writes and is_whole) or is_in_place)
        else:
            written[-1], read[-1] = True, True
        array_of[i] = arrays.index(same)
        flat = same.room.view(mine.array.dtype)
        is_listed = isinstance(spec, list | tuple)
        host_args[i] = [flat, *spec[1:]] if is_listed else flat
    ends: dict[str, Any] = {"written": written, "read": read, "arrays": array_of}
    return Copies(arrays, tuple(host_args), is_persistent=is_persistent, **ends)


def _is_same(x: Array, y: Array) -> bool:
    """Whether two arrays are the same memory; they may not overlap otherwise."""
    if (x.address, x.nbytes) == (y.address, y.nbytes):
        return bool(x.nbytes)
    if x.address < y.address + y.nbytes and y.address < x.address + x.nbytes:
        raise ValueError("message: send and receive buffers overlap")
    return False
