"""Host memory that stands for arrays on a device while a call runs.

The call is a call on host arrays, because other ranks may have data on the host. The
host memory is pinned, so that a device copies at full speed beside the messages. To pin
memory takes long; calls give memory back to a pool, which is bounded in bytes.
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
from .arrays import ALL_STREAMS, Array, described
from .cuda import Device, Gpu

#: by kind of device, the class that copies, whose argument is the number of a device
KINDS: dict[int, Any] = {CUDA: Gpu}
#: bytes of idle pinned memory of a device
MOST_IDLE_PINNED_BYTES = 1 << 30
#: pinned memory has a multiple of the first, or a power of two from the second on
PINNED_MULTIPLE_BYTES, LEAST_PINNED_BYTES = 1 << 20, 1 << 14
#: bytes of the longest step from row to row in a copy of a device
MOST_PITCH_BYTES = (1 << 31) - 1


@cache
def device_of(kind: int, number: int) -> Device:
    """The device of a kind with a number."""
    return _kind(kind)(number)  # type: ignore[no-any-return]


def _kind(kind: int) -> Any:
    if kind not in KINDS:
        raise ValueError(
            "message: the buffer is in the memory of a device of a kind that isthmus "
            f"cannot copy from (DLPack's {kind}); copy it to the host"
        )
    return KINDS[kind]


def stream_of(kind: int, number: int) -> int:
    """The stream of copies from a device."""
    return device_of(kind, number).stream


def home(array: Array) -> Device:
    """The device that has the memory of an array."""
    number = array.number
    if number is None:
        number = _kind(array.kind).number_of(array.address) if array.nbytes else 0
    return device_of(array.kind, number)


def located(owner: Any, written: bool = False) -> Array:
    """The description of an array; an error if isthmus cannot copy or write."""
    _kind(place(owner)[0])
    array = described(owner, stream_of)
    if written and array.readonly:
        raise BufferError("message: the receive buffer is read-only")
    return array


def synchronize(array: Array) -> None:
    """Wait for the work on an array that the producer has started."""
    if array.nbytes and array.stream is not None:
        device = home(array)
        device.after(array.stream)
        device.wait(device.record(False))


def wait_for_producers(specs: tuple[Any, ...]) -> None:
    """Wait for the producers of buffers that are passed to the MPI library directly.

    The MPI library waits for no stream. Arrays of unknown kinds of devices are left to
    the user, since isthmus has no way to wait.
    """
    for i in on_devices.among(specs):
        owner = on_devices.owner_of(specs[i])
        if place(owner)[0] in KINDS:
            synchronize(located(owner))


# -- pinned memory


class Pool:
    """Idle pinned memory of a device, for later calls."""

    def __init__(self, device: Device) -> None:
        self._device = device
        #: addresses with their bytes, the last used at the end
        self._free: list[tuple[int, int]] = []
        #: reentrant, since the finalizer of an array may run inside a locked section
        self._lock = RLock()

    def room(self, nbytes: int) -> np.ndarray:
        """An array of pinned bytes, whose memory returns to the pool."""
        size = max(1 << (nbytes - 1).bit_length(), LEAST_PINNED_BYTES)
        if size > PINNED_MULTIPLE_BYTES:
            size = -(-nbytes // PINNED_MULTIPLE_BYTES) * PINNED_MULTIPLE_BYTES
        with self._lock:
            idle = [entry for entry in self._free if entry[1] == size]
            if idle:
                self._free.remove(idle[-1])
        try:
            address = idle[-1][0] if idle else self._device.pin(size)
        except MemoryError:  # copies of memory that is not pinned are slower, but work
            return np.empty(nbytes, np.uint8)
        raw = (ctypes.c_char * size).from_address(address)
        weakref.finalize(raw, self._give, address, size).atexit = False
        memory: np.ndarray = np.frombuffer(memoryview(raw), np.uint8, nbytes)
        return memory

    def _give(self, address: int, size: int) -> None:
        with self._lock:
            self._free.append((address, size))
            while sum(n for _, n in self._free) > MOST_IDLE_PINNED_BYTES:
                self._device.unpin(self._free.pop(0)[0])


_pools: dict[Device, Pool] = {}


def _pool(device: Device) -> Pool:
    return _pools.setdefault(device, Pool(device))


# -- one array


@dataclass(frozen=True, slots=True)
class Geometry:
    """The layout of an array on a device, and of the copy without gaps on the host."""

    #: the axes of the copy on the host, by falling strides
    order: tuple[int, ...]
    #: bytes from the address of the array to the first byte in memory
    first: int
    #: nested steps around contiguous bytes: the number of steps, and bytes of a step
    levels: tuple[tuple[int, int], ...]
    #: bytes of data in a step of each level
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


class StagedArray:
    """An array on a device, and host memory with all elements, without gaps."""

    def __init__(self, array: Array) -> None:
        self.array, self.nbytes = array, array.nbytes
        self.device = home(array)
        self.memory = np.empty(0, np.uint8)
        if self.nbytes:
            self.memory = _pool(self.device).room(self.nbytes)
        #: the address of the host memory
        self.address: int = MPI.memory(self.memory).address
        self._geometry = _geometry(array.shape, array.strides, array.dtype.itemsize)
        self._first_address = array.address + self._geometry.first

    @property
    def flat(self) -> np.ndarray:
        """The host memory as elements, in the order of device memory."""
        return self.memory.view(self.array.dtype)

    @cached_property
    def host(self) -> np.ndarray:
        """The host memory in the shape of the array."""
        shape, strides = self.array.shape, self.array.strides
        order = self._geometry.order
        packed = self.flat.reshape([shape[i] for i in order])
        back = sorted(range(len(order)), key=order.__getitem__)
        flip = tuple(slice(None, None, -1 if s < 0 else 1) for s in strides)
        shaped: np.ndarray = packed.transpose(back)[flip]
        return shaped

    @property
    def is_contiguous(self) -> bool:
        """Whether the array has no gaps on the device."""
        return not self._geometry.levels or not self.nbytes

    def fetch(self, start: int, stop: int) -> None:
        """Begin to copy bytes from `start` to `stop` from the device."""
        self._copy(False, start, stop)

    def store(self, start: int, stop: int) -> None:
        """Begin to copy bytes from `start` to `stop` to the device."""
        self._copy(True, start, stop)

    def _copy(self, out: bool, start: int, stop: int) -> None:
        if start < stop:
            for host_offset, device_offset, *rows in self._runs(0, start, stop):
                host = self.address + host_offset
                device = self._first_address + device_offset
                self.device.copy(out, host, device, *rows)

    def _runs(
        self, level: int, start: int, stop: int
    ) -> Iterator[tuple[int, int, int, int, int]]:
        """The bytes from `start` to `stop` as rows, at a level of nested steps.

        Yields the offsets on host and device, the width, the number of rows, and the
        bytes from row to row on the device.
        """
        levels = self._geometry.levels
        if level == len(levels):
            yield start, start, stop - start, 1, 0
            return
        pitch, size = levels[level][1], self._geometry.sizes[level]
        is_last = level + 1 == len(levels)
        may_be_rows = is_last and size <= pitch <= MOST_PITCH_BYTES
        while start < stop:
            k, low = divmod(start, size)
            rows = (stop - start) // size
            if may_be_rows and rows and not low:
                yield start, k * pitch, size, rows, pitch
                start += rows * size
                continue
            high = min(stop, (k + 1) * size)
            inner = self._runs(level + 1, low, low + high - start)
            for on_host, on_device, width, rows, step in inner:
                yield k * size + on_host, k * pitch + on_device, width, rows, step
            start = high


# -- the arrays of a call


class Copies:
    """The arrays of a call on devices, and the arguments with host memory instead."""

    def __init__(
        self,
        staged: Sequence[StagedArray],
        args: tuple[Any, ...] = (),
        *,
        written: Sequence[bool],
        read: Sequence[bool],
        arrays: Mapping[int, int],
        is_persistent: bool = False,
    ) -> None:
        """By array, whether the call may write it and may read it before.

        `arrays` has the array of each argument, by numbers.
        """
        self.staged, self.args = staged, args
        self.written, self.read, self.arrays = written, read, arrays
        self.is_persistent = is_persistent

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the call in the key of a plan, besides those of host memory."""
        return tuple(self.written), tuple(self.read), tuple(self.arrays.items())

    @property
    def devices(self) -> set[Device]:
        """The devices of all arrays with data."""
        return {x.device for x in self.staged if x.nbytes}

    def begin(self) -> None:
        """Let later copies wait for earlier work on the arrays."""
        if self.is_persistent:  # the streams of work before a start are unknown
            for device in self.devices:
                device.after(ALL_STREAMS)
            return
        pairs = {(x.device, x.array.stream) for x in self.staged if x.nbytes}
        for device, stream in pairs:
            if stream is not None:
                device.after(stream)

    def fetch(self, k: int, start: int, stop: int) -> Callable[[], bool]:
        """Begin to copy bytes of an array from the device.

        Returns a function that tells whether the copy is complete.
        """
        staged = self.staged[k]
        staged.fetch(start, stop)
        return partial(staged.device.is_complete, staged.device.record(False))

    def store(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        """Begin to copy bytes of arrays to their devices."""
        for k, start, stop in ranges:
            self.staged[k].store(start, stop)

    def wait(self, out: bool) -> None:
        """Wait for all copies in a direction."""
        for device in self.devices:
            device.wait(device.record(out))

    def fetch_all(self) -> None:
        """Copy all arrays that a call reads from the devices, and wait."""
        self.begin()
        for x, read in zip(self.staged, self.read, strict=True):
            if read:
                x.fetch(0, x.nbytes)
        self.wait(False)

    def store_all(self) -> None:
        """Copy all arrays that a call may write back to the devices, and wait."""
        for x, written in zip(self.staged, self.written, strict=True):
            if written:
                x.store(0, x.nbytes)
        self.wait(True)


def standing(owner: Any, written: bool = False) -> StagedArray:
    """An array on a device, with host memory that stands for the array."""
    return StagedArray(located(owner, written))


#: operations that write the whole receive buffer on all ranks, so that the buffer need
#: not be copied from the device before
_WRITE_ALL = ("Allgather", "Allreduce", "Alltoall", "Reduce_scatter_block", "Scan")


def copies(
    op: str,
    args: tuple[Any, ...],
    *,
    sends: bool = False,
    is_persistent: bool = False,
) -> Copies:
    """The arrays on devices among the buffers of a call, which come first in `args`.

    `sends` says of a Bcast whether this rank is the root.
    """
    arrays: list[StagedArray] = []
    host_args = list(args)
    written: list[bool] = []
    read: list[bool] = []
    array_of: dict[int, int] = {}
    for i in on_devices.among(args[: 1 if op == "Bcast" else 2]):
        spec = args[i]
        writes = not sends if op == "Bcast" else i == 1
        array = standing(on_devices.owner_of(spec), writes)
        if not array.is_contiguous:
            raise BufferError("message: the array on a device is not contiguous")
        staged = next((x for x in arrays if _is_same(x.array, array.array)), None)
        if staged is None:
            staged = array
            arrays.append(staged)
            written.append(writes)
            is_whole = not isinstance(spec, list | tuple) and op in _WRITE_ALL
            is_in_place = args[0] is None or args[0] is MPI.IN_PLACE
            read.append(not (writes and is_whole) or is_in_place)
        else:
            written[-1], read[-1] = True, True
        array_of[i] = arrays.index(staged)
        flat = staged.memory.view(array.array.dtype)
        is_listed = isinstance(spec, list | tuple)
        host_args[i] = [flat, *spec[1:]] if is_listed else flat
    return Copies(
        arrays,
        tuple(host_args),
        written=written,
        read=read,
        arrays=array_of,
        is_persistent=is_persistent,
    )


def _is_same(x: Array, y: Array) -> bool:
    """Whether two arrays have equal memory; an error if the arrays overlap in part."""
    if (x.address, x.nbytes) == (y.address, y.nbytes):
        return bool(x.nbytes)
    if x.address < y.address + y.nbytes and y.address < x.address + x.nbytes:
        raise ValueError("message: send and receive buffers overlap")
    return False
