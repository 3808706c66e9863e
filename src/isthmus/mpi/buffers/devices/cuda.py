"""The functions of the CUDA driver for copies between host and device.

The library of the driver is loaded with the first array on a GPU. Nothing is linked or
required, because every host with a GPU has the library.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import cache
from typing import Any, Protocol

from .arrays import ALL_STREAMS

_NAMES = "libcuda.so.1", "libcuda.so"
_NOT_READY = 600
#: constants of cuda.h
_NON_BLOCKING, _NO_TIMING, _PORTABLE = 1, 2, 1
_HOST_MEMORY, _DEVICE_MEMORY = 1, 2
_ATTRIBUTE_ORDINAL = 9


class Device(Protocol):
    """The functions of a device for staging; each direction of copies has a queue."""

    #: the queue of copies from the device, as DLPack's producers take it
    stream: int

    @staticmethod
    def number_of(address: int) -> int:
        """The number of the device with an address."""
        ...

    def pin(self, nbytes: int) -> int:
        """The address of new host memory that the device reads and writes by itself."""
        ...

    def unpin(self, address: int) -> None:
        """Free pinned host memory."""

    def after(self, stream: int) -> None:
        """Let later copies wait for the work on a stream, or on all streams."""

    def copy(
        self, out: bool, host: int, device: int, width: int, rows: int, pitch: int
    ) -> None:
        """Begin to copy rows, out to the device or in from the device.

        Rows lie side by side on the host, and `pitch` bytes apart on the device.
        """

    def record(self, out: bool) -> Any:
        """An event that completes after the copies begun in a direction."""

    def is_complete(self, event: Any) -> bool:
        """Whether an event has completed."""
        ...

    def wait(self, event: Any) -> None:
        """Wait until an event has completed."""


class _CopyOfRows(ctypes.Structure):
    """The struct CUDA_MEMCPY2D of cuda.h."""

    _fields_ = (
        ("src_x", c_size_t),
        ("src_y", c_size_t),
        ("src_type", c_uint),
        ("src_host", c_void_p),
        ("src_device", c_uint64),
        ("src_array", c_void_p),
        ("src_pitch", c_size_t),
        ("dst_x", c_size_t),
        ("dst_y", c_size_t),
        ("dst_type", c_uint),
        ("dst_host", c_void_p),
        ("dst_device", c_uint64),
        ("dst_array", c_void_p),
        ("dst_pitch", c_size_t),
        ("width", c_size_t),
        ("height", c_size_t),
    )


#: the argument types of each function
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDeviceGet": (c_void_p, c_int),
    "cuDevicePrimaryCtxRetain": (c_void_p, c_int),
    "cuPointerGetAttribute": (c_void_p, c_int, c_uint64),
    "cuCtxGetCurrent": (c_void_p,),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuStreamCreate": (c_void_p, c_uint),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuEventCreate": (c_void_p, c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventQuery": (c_void_p,),
    "cuEventSynchronize": (c_void_p,),
    "cuMemHostRegister_v2": (c_void_p, c_size_t, c_uint),
    "cuMemHostUnregister": (c_void_p,),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemcpy2DAsync_v2": (c_void_p, c_void_p),
}


@cache
def _library() -> Any:
    """The library of the driver, or an error for users without a driver."""
    for name in _NAMES:
        try:
            library = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        raise ValueError(
            "message: the buffer is in the memory of a device, and the CUDA driver "
            f"({_NAMES[0]}) cannot be loaded; copy it to the host"
        )
    for function, arguments in _FUNCTIONS.items():
        getattr(library, function).argtypes = arguments
    _check(library.cuInit(0), "cuInit")
    return library


def _check(code: int, function: str) -> None:
    if code:
        raise RuntimeError(f"{function} of the CUDA driver failed: error {code}")


class _Event:
    """An event of the driver; the handle is free for a later event in the end."""

    def __init__(self, handle: c_void_p, free: list[c_void_p]) -> None:
        self.handle, self._free = handle, free

    def __del__(self) -> None:
        self._free.append(self.handle)


class Gpu:
    """A GPU by number: the primary context, and a private stream for each direction."""

    def __init__(self, number: int) -> None:
        self._cuda, device = _library(), c_int()
        self._context = c_void_p()
        _check(self._cuda.cuDeviceGet(byref(device), number), "cuDeviceGet")
        code = self._cuda.cuDevicePrimaryCtxRetain(byref(self._context), device)
        _check(code, "cuDevicePrimaryCtxRetain")
        self._streams = c_void_p(), c_void_p()
        self._events: list[c_void_p] = []
        self._pinned: dict[int, mmap.mmap] = {}
        with self._current():
            for stream in self._streams:
                self._do("cuStreamCreate", byref(stream), _NON_BLOCKING)
        self.stream: int = self._streams[0].value or 0

    @staticmethod
    def number_of(address: int) -> int:
        """The number of the GPU with an address."""
        number = c_int()
        get_attribute = _library().cuPointerGetAttribute
        code = get_attribute(byref(number), _ATTRIBUTE_ORDINAL, address)
        _check(code, "cuPointerGetAttribute")
        return number.value

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Make the GPU's context current for a block, then restore the caller's."""
        current = c_void_p()
        self._do("cuCtxGetCurrent", byref(current))
        if current.value == self._context.value:
            yield
            return
        self._do("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._do("cuCtxPopCurrent_v2", byref(c_void_p()))

    def _do(self, function: str, *args: Any) -> None:
        _check(getattr(self._cuda, function)(*args), function)

    def pin(self, nbytes: int) -> int:
        """The address of pinned memory of the process.

        The process allocates and the driver pins, because memory that the driver
        allocates has small pages, and MPI libraries cannot read such memory from
        another process.
        """
        # private: shared memory, the default of mmap, has small pages too
        memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for advice in ("MADV_HUGEPAGE", "MADV_DONTFORK"):
            with suppress(OSError, AttributeError):  # not in all kernels
                memory.madvise(getattr(mmap, advice))
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        with self._current():
            if self._cuda.cuMemHostRegister_v2(address, nbytes, _PORTABLE):
                raise MemoryError(f"no {nbytes} bytes of pinned memory")
        self._pinned[address] = memory
        return address

    def unpin(self, address: int) -> None:
        """Free pinned memory.

        The result is not checked, since the driver may end before the process does.
        """
        with self._current():
            self._cuda.cuMemHostUnregister(address)
        del self._pinned[address]

    def after(self, stream: int) -> None:
        """Let the GPU wait for a stream, or wait in the caller for all streams."""
        with self._current():
            if stream == ALL_STREAMS:
                self._do("cuCtxSynchronize")
                return
            event = self._event()
            self._do("cuEventRecord", event.handle, stream)
            for own_stream in self._streams:
                self._do("cuStreamWaitEvent", own_stream, event.handle, 0)

    def copy(
        self, out: bool, host: int, device: int, width: int, rows: int, pitch: int
    ) -> None:
        """Begin to copy rows in a direction."""
        stream = self._streams[out]
        with self._current():
            if rows > 1:
                self._copy_rows(stream, out, host, device, width, rows, pitch)
            elif out:
                self._do("cuMemcpyHtoDAsync_v2", device, host, width, stream)
            else:
                self._do("cuMemcpyDtoHAsync_v2", host, device, width, stream)

    def _copy_rows(
        self,
        stream: Any,
        out: bool,
        host: int,
        device: int,
        width: int,
        rows: int,
        pitch: int,
    ) -> None:
        near: dict[str, Any] = {"type": _HOST_MEMORY, "host": host, "pitch": width}
        far: dict[str, Any] = {"type": _DEVICE_MEMORY, "device": device, "pitch": pitch}
        ends = {"src": near, "dst": far} if out else {"src": far, "dst": near}
        fields = {
            f"{end}_{name}": value
            for end, values in ends.items()
            for name, value in values.items()
        }
        copy = _CopyOfRows(width=width, height=rows, **fields)
        self._do("cuMemcpy2DAsync_v2", byref(copy), stream)

    def record(self, out: bool) -> _Event:
        """An event after the copies begun in a direction."""
        event = self._event()
        self._do("cuEventRecord", event.handle, self._streams[out])
        return event

    def _event(self) -> _Event:
        try:
            handle = self._events.pop()
        except IndexError:
            handle = c_void_p()
            with self._current():
                self._do("cuEventCreate", byref(handle), _NO_TIMING)
        return _Event(handle, self._events)

    def is_complete(self, event: _Event) -> bool:
        """Whether an event has completed, without waiting."""
        code = self._cuda.cuEventQuery(event.handle)
        if code == _NOT_READY:
            return False
        _check(code, "cuEventQuery")
        return True

    def wait(self, event: _Event) -> None:
        """Wait for an event of the GPU."""
        self._do("cuEventSynchronize", event.handle)
