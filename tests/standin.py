"""A device that stands in for a GPU: only explicit copies can touch its memory.

Device memory is protected, so that a direct read or write ends with a segmentation
fault. Copies are done only when the caller waits, so that a missing wait leaves old
data.

With ISTHMUS_TEST_GPU in the environment, arrays are on a real GPU: see tests/gpu.py.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import time
from functools import partial
from queue import Queue
from random import Random
from typing import Any, ClassVar

import numpy as np
from mpi4py import MPI

import redistributions
from isthmus import settings
from isthmus.mpi.buffers.devices import arrays as device, staged
from isthmus.mpi.buffers.selection import HostPacker

#: whether arrays lie on a real GPU
REAL = "ISTHMUS_TEST_GPU" in os.environ
_libc = ctypes.CDLL(None, use_errno=True)
_NONE, _BOTH = 0, mmap.PROT_READ | mmap.PROT_WRITE
PAGE = mmap.PAGESIZE
#: DLPack's number for CUDA
KIND = 2
#: the default stream
STREAM = 1


def _protect(address: int, nbytes: int, how: int) -> None:
    low = address - address % PAGE
    size = -(-(address + nbytes - low) // PAGE) * PAGE
    if _libc.mprotect(ctypes.c_void_p(low), ctypes.c_size_t(size), how):
        raise OSError(ctypes.get_errno(), "mprotect")


class StandIn:
    """A device of a number, whose copies are done when the caller waits."""

    #: whether device memory is protected
    protected = True

    def __init__(self, number: int) -> None:
        self.number, self.stream = number, 1000 + number
        #: copies begun in each direction, and the number of copies done
        self._queues: tuple[list[Any], list[Any]] = ([], [])
        self._done = [0, 0]
        #: the number of copies begun
        self.begun = 0
        #: the number of looks at each event
        self._looks: dict[Any, int] = {}
        self.after_streams: list[int] = []
        self.pinned: dict[int, Any] = {}

    @staticmethod
    def number_of(address: int) -> int:
        return 0

    def pin(self, nbytes: int) -> int:
        raw = (ctypes.c_char * nbytes)()
        ctypes.memset(raw, 0xAA, nbytes)
        self.pinned[ctypes.addressof(raw)] = raw
        return ctypes.addressof(raw)

    def unpin(self, address: int) -> None:
        del self.pinned[address]

    def after(self, stream: int) -> None:
        self.after_streams.append(stream)
        if stream == device.ALL_STREAMS:
            _work_upto(len(_work))
        elif stream == STREAM:
            for queue in self._queues:
                queue.append(partial(_work_upto, len(_work)))

    def copy(self, out, host, there, width, rows, pitch) -> None:
        assert width > 0 and rows > 0
        assert rows == 1 or pitch >= width
        self.begun += 1
        self._queues[out].append((host, there, width, rows, pitch))

    def record(self, out: bool) -> tuple[bool, int]:
        return out, len(self._queues[out])

    def is_complete(self, event) -> bool:
        self._looks[event] = self._looks.get(event, 0) + 1
        if self._looks[event] < 3:
            return False
        self.wait(event)
        return True

    def wait(self, event) -> None:
        out, end = event
        queue = self._queues[out]
        while self._done[out] < end:
            item, queue[self._done[out]] = queue[self._done[out]], None
            self._done[out] += 1
            if callable(item):
                item()
                continue
            host, there, width, rows, pitch = item
            for i in range(rows):
                ends = host + i * width, there + i * pitch, width
                _copy(out, *ends) if self.protected else _plain_copy(out, *ends)


def _copy(out: bool, host: int, there: int, n: int) -> None:
    """Copy n bytes to a device, or from a device."""
    if REAL:
        on = staged.device_of(KIND, 0)
        on.copy(out, host, there, n, 1, 0)
        on.wait(on.record(out))
        return
    _protect(there, n, _BOTH)
    _plain_copy(out, host, there, n)
    _protect(there, n, _NONE)


def _plain_copy(out: bool, host: int, there: int, n: int) -> None:
    ctypes.memmove(there if out else host, host if out else there, n)


class Open(StandIn):
    """A device with memory of the host, so that MPI can access device arrays."""

    protected = False


def direct(monkeypatch: Any) -> Open:
    """Make the MPI library look like one that takes device memory; the device.

    Numpy's packer must not see device memory: a test fails otherwise.
    """
    for name in ("pack", "unpack", "move"):
        monkeypatch.setattr(HostPacker, name, _on_the_host(getattr(HostPacker, name)))
    monkeypatch.setenv(settings.DEVICE, "direct")
    monkeypatch.setitem(staged.KINDS, KIND, Open)
    staged.device_of.cache_clear()
    return staged.device_of(KIND, 0)  # type: ignore[return-value]


def _on_the_host(packs: Any) -> Any:
    """A method of numpy's packer that fails on device memory."""

    def method(self: Any, *args: Any) -> None:
        memories = [x for x in args if isinstance(x, memoryview)]
        for x in map(MPI.memory, memories):
            for low, high in Plain.spans:
                assert not low <= x.address < high, "numpy packs memory of a device"
        packs(self, *args)

    return method


class Slow(StandIn):
    """A device that copies beside the caller, at `rate` bytes a second each way."""

    protected = False
    rate = 1e9

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._work: tuple[Queue[Any], Queue[Any]] = (Queue(), Queue())
        for out in (0, 1):
            threading.Thread(target=self._run, args=(out,), daemon=True).start()

    def _run(self, out: int) -> None:
        free = 0.0
        while True:
            item = self._work[out].get()
            if isinstance(item, threading.Event):
                item.set()
                continue
            host, there, width, rows, pitch = item
            begin = max(free, time.perf_counter())
            for i in range(rows):
                _plain_copy(bool(out), host + i * width, there + i * pitch, width)
            free = begin + rows * width / self.rate
            time.sleep(max(free - time.perf_counter(), 0))

    def after(self, stream: int) -> None:
        """Do nothing, since no library produces arrays on this device."""

    def copy(self, out, host, there, width, rows, pitch) -> None:
        self.begun += 1
        self._work[out].put((host, there, width, rows, pitch))

    def record(self, out: bool) -> Any:
        self._work[out].put(event := threading.Event())
        return event

    def is_complete(self, event: Any) -> bool:
        return bool(event.is_set())

    def wait(self, event: Any) -> None:
        event.wait()


class Quick(Slow):
    """A device that copies immediately, but beside the caller."""

    rate = float("inf")


class GpuMemory:
    """Memory of the first GPU."""

    def __init__(self, nbytes: int) -> None:
        self._gpu, pointer = staged.device_of(KIND, 0), ctypes.c_uint64()
        with self._gpu._current():
            code = self._gpu._cuda.cuMemAlloc_v2(
                ctypes.byref(pointer), ctypes.c_size_t(max(nbytes, 1))
            )
        assert code == 0, f"cuMemAlloc: {code}"
        self.address = pointer.value

    def __del__(self) -> None:
        with self._gpu._current():
            self._gpu._cuda.cuMemFree_v2(ctypes.c_uint64(self.address))


class Plain:
    """Memory in place of a device's, for MPI but not for numpy: see `direct`."""

    protected = False
    #: the addresses of all such memory, from and to
    spans: ClassVar[set[tuple[int, int]]] = set()

    def __init__(self, nbytes: int) -> None:
        self._room = np.zeros(max(nbytes, 1), np.uint8)
        self.address = self._room.ctypes.data
        self._span = self.address, self.address + max(nbytes, 1)
        self.spans.add(self._span)

    def __del__(self) -> None:
        self.spans.discard(self._span)


class Protected:
    """Memory that every direct access ends with a segmentation fault."""

    protected = True

    def __init__(self, nbytes: int) -> None:
        self._map = mmap.mmap(-1, max(nbytes, 1))
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._nbytes = max(nbytes, 1)
        _protect(self.address, self._nbytes, _NONE)

    def __del__(self) -> None:
        _protect(self.address, self._nbytes, _BOTH)


Memory = GpuMemory if REAL else Protected


class DeviceArray:
    """An array on the device, with the interface of CuPy's and Numba's arrays."""

    def __init__(self, memory: Any, shape, strides, dtype, offset=0) -> None:
        self.memory, self.shape, self.strides = memory, tuple(shape), tuple(strides)
        self.dtype, self.offset = np.dtype(dtype), offset

    def __dlpack_device__(self) -> tuple[int, int]:
        return KIND, 0

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "data": (self.memory.address + self.offset, False),
            "version": 3,
            "stream": STREAM,
        }

    def __getitem__(self, where: Any) -> DeviceArray:
        """A view of a part of the array, with numpy's indices."""
        base = np.lib.stride_tricks.as_strided(
            np.empty(1, self.dtype), self.shape, self.strides
        )
        part = base[where]
        offset = self.offset + part.ctypes.data - base.ctypes.data
        return DeviceArray(self.memory, part.shape, part.strides, self.dtype, offset)

    def _elements(self, out: bool, array: np.ndarray) -> None:
        size = self.dtype.itemsize
        flat = array.reshape(-1)
        copy = _copy if REAL or self.memory.protected else _plain_copy
        if array.nbytes and self.strides == array.strides:
            there = self.memory.address + self.offset
            copy(out, flat.ctypes.data, there, array.nbytes)
            return
        for k, where in enumerate(np.ndindex(*self.shape)):
            at = sum(i * s for i, s in zip(where, self.strides, strict=True))
            there = self.memory.address + self.offset + at
            copy(out, flat.ctypes.data + k * size, there, size)

    def get(self) -> np.ndarray:
        """A copy of the data on the host."""
        array = np.empty(self.shape, self.dtype)
        self._elements(False, array)
        return array

    def set(self, array: np.ndarray) -> None:
        """Copy data from the host into the array."""
        self._elements(True, np.ascontiguousarray(array, self.dtype))


def on_device(
    array: np.ndarray, memory: Any = Memory, kind: Any = DeviceArray
) -> DeviceArray:
    """A copy of an array on the device; the strides stay, except for gaps."""
    dense = np.array(array, order="K")
    copy = kind(memory(dense.nbytes), dense.shape, dense.strides, dense.dtype)
    copy.set(array)
    return copy


class Swapped:
    """The arguments of a call, with arrays moved to the device."""

    def __init__(
        self, args: Any, which: Any = (True, True), memory: Any = Memory
    ) -> None:
        self._copies: list[tuple[np.ndarray, DeviceArray]] = []
        self._memory = memory
        ends = zip(args[:2], which, strict=False)
        self.args = tuple(self._swap(x) if on else x for x, on in ends) + args[2:]

    def _swap(self, x: Any) -> Any:
        if isinstance(x, np.ndarray):
            self._copies.append((x, copy := on_device(x, self._memory)))
            return copy
        if isinstance(x, list):
            return [self._swap(x[0]), *x[1:]]
        return x

    def back(self) -> None:
        """Copy the data on the device back into the arrays of the host."""
        for array, copy in self._copies:
            array[...] = copy.get()


def field(
    rng: Random, data: np.ndarray, memory: Any = Memory, kind: Any = DeviceArray
) -> DeviceArray:
    """The data on the device, with a random order of axes and random strides."""
    layout = redistributions.field(rng, data)
    base = layout
    while base.base is not None:
        base = base.base
    if not data.size:
        return on_device(data, memory, kind)
    whole = on_device(np.zeros(base.nbytes, "u1"), memory)
    at = layout.ctypes.data - base.ctypes.data
    device_array = kind(whole.memory, layout.shape, layout.strides, layout.dtype, at)
    device_array.set(data)
    return device_array


# -- a library of arrays on the device, like torch and CuPy: the library copies on the
# stream STREAM, that is, when a caller waits for the stream

_work: list[Any] = []
#: the number of finished copies in `_work`
done = [0]


def _work_upto(end: int) -> None:
    while done[0] < end:
        _work[done[0]]()
        _work[done[0]] = None
        done[0] += 1


class ForeignMemory:
    """Memory at an address, owned by another library."""

    protected = False

    def __init__(self, address: int) -> None:
        self.address = address


class LibraryArray(DeviceArray):
    """An array of the library."""

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def set(self, array: np.ndarray) -> None:
        _work.append(partial(super().set, array))

    def repeat(self, n: int) -> LibraryArray:
        array = LibraryArray(Plain(n), (n,), (1,), self.dtype)
        array.set(np.zeros(n, self.dtype))
        return array

    def __getitem__(self, where: Any) -> Any:
        return self, where

    def __setitem__(self, to: Any, part: Any) -> None:
        x, frm = part
        assert x.dtype == self.dtype
        _work.append(partial(_assign, self, to, x, frm))


def _assign(y: LibraryArray, to: Any, x: LibraryArray, frm: Any) -> None:
    to, frm = (i if i is ... else i.get() for i in (to, frm))
    source, target = (
        np.ndarray(a.shape, a.dtype, _raw(a), strides=a.strides) for a in (x, y)
    )
    assert source[frm].shape == target[to].shape
    target[to] = source[frm]


def _raw(a: LibraryArray) -> Any:
    steps = zip(a.shape, a.strides, strict=True)
    reach = sum((n - 1) * step for n, step in steps) + a.dtype.itemsize
    return (ctypes.c_char * reach).from_address(a.memory.address)


def asarray(x: Any) -> LibraryArray:
    """A library array, as torch's and CuPy's: a view, or a copy of numpy's."""
    if isinstance(x, np.ndarray):
        copy = LibraryArray(Plain(x.nbytes), x.shape, x.strides, x.dtype)
        copy.set(x)
        return copy
    interface = x.__cuda_array_interface__
    address, dtype = interface["data"][0], np.dtype(interface["typestr"])
    for step in (address, *interface["strides"]):  # GPUs need aligned elements
        assert step >= 0 and step % dtype.itemsize == 0
    return LibraryArray(
        ForeignMemory(address), interface["shape"], interface["strides"], dtype
    )
