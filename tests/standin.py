"""A device that stands in for a GPU: only explicit copies can touch its memory.

Its memory is protected, so that whoever reads or writes it directly ends with a
segmentation fault. Copies are done when somebody waits for them, not before: who
forgets to wait finds old data.

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

#: whether arrays are on a real GPU
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
    """A device, by its number."""

    #: whether its memory is protected
    protected = True

    def __init__(self, number: int) -> None:
        self.number, self.stream = number, 1000 + number
        #: copies that were begun in each direction, and how many of them are done
        self._queues: tuple[list[Any], list[Any]] = ([], [])
        self._done = [0, 0]
        #: how many copies were begun
        self.begun = 0
        #: how often each event was looked at
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
    """Copy to a device, or from it."""
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
    """A device whose memory is the host's, so that MPI can touch it."""

    protected = False


def direct(monkeypatch: Any) -> Open:
    """The MPI library takes memory of a device, as it seems; who copies from there. It
    is an error if numpy sees such memory."""
    for name in ("pack", "unpack", "move"):
        monkeypatch.setattr(HostPacker, name, _on_the_host(getattr(HostPacker, name)))
    monkeypatch.setenv(settings.DEVICE, "direct")
    monkeypatch.setitem(staged.KINDS, KIND, Open)
    staged.device_of.cache_clear()
    return staged.device_of(KIND, 0)  # type: ignore[return-value]


def _on_the_host(packs: Any) -> Any:
    """A method of numpy's packer, which may see no memory of a device."""

    def method(self: Any, *args: Any) -> None:
        memories = [x for x in args if isinstance(x, memoryview)]
        for x in map(MPI.memory, memories):
            for low, high in Plain.spans:
                assert not low <= x.address < high, "numpy packs memory of a device"
        packs(self, *args)

    return method


class Slow(StandIn):
    """A device that copies beside the caller, so many bytes a second each way."""

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
        """Its arrays have no producer."""

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
    """A device that copies at once, but beside the caller."""

    rate = float("inf")


class GpuMemory:
    """Memory of the first GPU."""

    def __init__(self, nbytes: int) -> None:
        self._gpu, found = staged.device_of(KIND, 0), ctypes.c_uint64()
        with self._gpu._current():
            code = self._gpu._cuda.cuMemAlloc_v2(
                ctypes.byref(found), ctypes.c_size_t(max(nbytes, 1))
            )
        assert code == 0, f"cuMemAlloc: {code}"
        self.address = found.value

    def __del__(self) -> None:
        with self._gpu._current():
            self._gpu._cuda.cuMemFree_v2(ctypes.c_uint64(self.address))


class Plain:
    """Memory that stands for a device's, and that MPI may touch, but numpy may not:
    see `direct`."""

    protected = False
    #: where there is such memory
    spans: ClassVar[set[tuple[int, int]]] = set()

    def __init__(self, nbytes: int) -> None:
        self._room = np.zeros(max(nbytes, 1), np.uint8)
        self.address = self._room.ctypes.data
        self._span = self.address, self.address + max(nbytes, 1)
        self.spans.add(self._span)

    def __del__(self) -> None:
        self.spans.discard(self._span)


class Protected:
    """Protected memory."""

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
    """An array on the device, as those of CuPy and Numba look."""

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
        """A part of it, as numpy cuts it."""
        base = np.lib.stride_tricks.as_strided(
            np.empty(1, self.dtype), self.shape, self.strides
        )
        part = base[where]
        moved = part.ctypes.data - base.ctypes.data
        ends = part.shape, part.strides, self.dtype, self.offset + moved
        return DeviceArray(self.memory, *ends)

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
        """What it holds."""
        found = np.empty(self.shape, self.dtype)
        self._elements(False, found)
        return found

    def set(self, array: np.ndarray) -> None:
        """Hold something else."""
        self._elements(True, np.ascontiguousarray(array, self.dtype))


def on_device(
    array: np.ndarray, memory: Any = Memory, kind: Any = DeviceArray
) -> DeviceArray:
    """A copy of an array on the device, with the same strides if it has no gaps."""
    dense = np.array(array, order="K")
    found = kind(memory(dense.nbytes), dense.shape, dense.strides, dense.dtype)
    found.set(array)
    return found


class Swapped:
    """The arguments of a call with arrays on the device in place of some."""

    def __init__(
        self, args: Any, which: Any = (True, True), memory: Any = Memory
    ) -> None:
        self._made: list[tuple[np.ndarray, DeviceArray]] = []
        self._memory = memory
        ends = zip(args[:2], which, strict=False)
        self.args = tuple(self._swap(x) if on else x for x, on in ends) + args[2:]

    def _swap(self, x: Any) -> Any:
        if isinstance(x, np.ndarray):
            self._made.append((x, found := on_device(x, self._memory)))
            return found
        if isinstance(x, list):
            return [self._swap(x[0]), *x[1:]]
        return x

    def back(self) -> None:
        """Copy what is on the device into the arrays of the case."""
        for array, found in self._made:
            array[...] = found.get()


def field(
    rng: Random, data: np.ndarray, memory: Any = Memory, kind: Any = DeviceArray
) -> DeviceArray:
    """The data on the device, in some order and with some strides."""
    layout = redistributions.field(rng, data)
    base = layout
    while base.base is not None:
        base = base.base
    if not data.size:
        return on_device(data, memory, kind)
    whole = on_device(np.zeros(base.nbytes, "u1"), memory)
    at = layout.ctypes.data - base.ctypes.data
    found = kind(whole.memory, layout.shape, layout.strides, layout.dtype, at)
    found.set(data)
    return found


# -- a library of arrays on the device, as torch and CuPy are: it copies on the stream
# STREAM, which means when somebody waits for that

_work: list[Any] = []
#: what is done of it
done = [0]


def _work_upto(end: int) -> None:
    while done[0] < end:
        _work[done[0]]()
        _work[done[0]] = None
        done[0] += 1


class _Given:
    """Memory of somebody else's."""

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
        found = LibraryArray(Plain(n), (n,), (1,), self.dtype)
        found.set(np.zeros(n, self.dtype))
        return found

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
    """As torch and CuPy: memory where it is, or a copy of an array of numpy's."""
    if isinstance(x, np.ndarray):
        found = LibraryArray(Plain(x.nbytes), x.shape, x.strides, x.dtype)
        found.set(x)
        return found
    given = x.__cuda_array_interface__
    address, dtype = given["data"][0], np.dtype(given["typestr"])
    for step in (address, *given["strides"]):  # GPUs need it so
        assert step >= 0 and step % dtype.itemsize == 0
    return LibraryArray(_Given(address), given["shape"], given["strides"], dtype)
