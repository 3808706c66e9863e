"""The CUDA driver: what copying between host and device needs of it, and no more.

It is loaded when an array on a GPU is first seen; it comes with the GPU's driver.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import cache
from typing import Any, Protocol

from .arrays import EVERY

_NAMES = "libcuda.so.1", "libcuda.so"
_NOT_READY = 600
#: constants of cuda.h
_NON_BLOCKING, _NO_TIMING, _PORTABLE = 1, 2, 1
_HOST, _DEVICE = 1, 2
_ATTRIBUTE_ORDINAL = 9


class Device(Protocol):
    """What staging needs of a device. Copies run in two queues, from it and to it."""

    #: the queue of copies from the device, as DLPack's producers take it
    stream: int

    @staticmethod
    def number_of(address: int) -> int:
        """The number of the device that has an address."""

    def pin(self, nbytes: int) -> int:
        """The address of host memory that the device copies from and to by itself."""

    def unpin(self, address: int) -> None:
        """Give it back."""

    def after(self, stream: int) -> None:
        """Copies from now on wait for what is on a stream now, or on every one."""

    def copy(
        self, out: bool, host: int, there: int, width: int, rows: int, pitch: int
    ) -> None:
        """Begin to copy rows that follow each other on the host, and begin `pitch`
        bytes apart on the device: out to the device, or from it."""

    def record(self, out: bool) -> Any:
        """What is complete when all copies begun so far are, in one direction."""

    def is_complete(self, event: Any) -> bool:
        """Whether it is."""

    def wait(self, event: Any) -> None:
        """Wait until it is."""


class _Rows(ctypes.Structure):
    """CUDA_MEMCPY2D."""

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


#: the arguments of each function
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
    """The driver, if there is one."""
    for name in _NAMES:
        try:
            found = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        raise ValueError(
            "message: the buffer is in the memory of a device, and the CUDA driver "
            f"({_NAMES[0]}) cannot be loaded; copy it to the host"
        )
    for function, arguments in _FUNCTIONS.items():
        getattr(found, function).argtypes = arguments
    _check(found.cuInit(0), "cuInit")
    return found


def _check(code: int, function: str) -> None:
    if code:
        raise RuntimeError(f"{function} of the CUDA driver failed: error {code}")


class _Event:
    """An event of the driver, which another may have when this one is gone."""

    def __init__(self, handle: c_void_p, free: list[c_void_p]) -> None:
        self.handle, self._free = handle, free

    def __del__(self) -> None:
        self._free.append(self.handle)


class Gpu:
    """A GPU by its number: its primary context, and two streams of our own there."""

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
            for x in self._streams:
                self._do("cuStreamCreate", byref(x), _NON_BLOCKING)
        self.stream: int = self._streams[0].value or 0

    @staticmethod
    def number_of(address: int) -> int:
        """The number of the GPU that has an address."""
        found, what = c_int(), _ATTRIBUTE_ORDINAL
        code = _library().cuPointerGetAttribute(byref(found), what, address)
        _check(code, "cuPointerGetAttribute")
        return found.value

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Do something in this GPU's context, whatever the caller's is."""
        now = c_void_p()
        self._do("cuCtxGetCurrent", byref(now))
        if now.value == self._context.value:
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
        """Memory of the process that is pinned. What the driver allocates itself has
        small pages, and other processes cannot read it as MPI libraries do."""
        # not shared, as mmap's is by default: that has small pages too
        room = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for advice in ("MADV_HUGEPAGE", "MADV_DONTFORK"):
            with suppress(OSError, AttributeError):  # a kernel may be made without them
                room.madvise(getattr(mmap, advice))
        address = ctypes.addressof(ctypes.c_char.from_buffer(room))
        with self._current():
            if self._cuda.cuMemHostRegister_v2(address, nbytes, _PORTABLE):
                raise MemoryError(f"no {nbytes} bytes of pinned memory")
        self._pinned[address] = room
        return address

    def unpin(self, address: int) -> None:
        """Free it; at the end of a process the driver may be gone."""
        with self._current():
            self._cuda.cuMemHostUnregister(address)
        del self._pinned[address]

    def after(self, stream: int) -> None:
        """Wait for a stream on the GPU, or for all of them here."""
        with self._current():
            if stream == EVERY:
                self._do("cuCtxSynchronize")
                return
            event = self._event()
            self._do("cuEventRecord", event.handle, stream)
            for x in self._streams:
                self._do("cuStreamWaitEvent", x, event.handle, 0)

    def copy(
        self, out: bool, host: int, there: int, width: int, rows: int, pitch: int
    ) -> None:
        """Begin to copy."""
        stream = self._streams[out]
        with self._current():
            if rows > 1:
                self._copy_rows(stream, out, host, there, width, rows, pitch)
            elif out:
                self._do("cuMemcpyHtoDAsync_v2", there, host, width, stream)
            else:
                self._do("cuMemcpyDtoHAsync_v2", host, there, width, stream)

    def _copy_rows(
        self,
        stream: Any,
        out: bool,
        host: int,
        there: int,
        width: int,
        rows: int,
        pitch: int,
    ) -> None:
        here: dict[str, Any] = {"type": _HOST, "host": host, "pitch": width}
        far: dict[str, Any] = {"type": _DEVICE, "device": there, "pitch": pitch}
        ends = ("src", here), ("dst", far)
        if not out:
            ends = ("src", far), ("dst", here)
        every = {f"{end}_{name}": x for end, some in ends for name, x in some.items()}
        what = _Rows(width=width, height=rows, **every)
        self._do("cuMemcpy2DAsync_v2", byref(what), stream)

    def record(self, out: bool) -> _Event:
        """An event after the copies in one direction."""
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
        """Whether an event has come."""
        code = self._cuda.cuEventQuery(event.handle)
        if code == _NOT_READY:
            return False
        _check(code, "cuEventQuery")
        return True

    def wait(self, event: _Event) -> None:
        """Wait for an event."""
        self._do("cuEventSynchronize", event.handle)
