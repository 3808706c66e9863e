"""Buffers in the memory of a device: refused, unless the MPI library takes them.

A library that does not know such memory reads its addresses as if they were the host's,
and ends with a segmentation fault.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np
from mpi4py import MPI

from ... import settings

Class = TypeVar("Class", bound=type)
_ndarray = np.ndarray
#: DLPack's numbers for memory that the host can read: plain, pinned for CUDA or ROCm,
#: managed by CUDA
_HOST = (1, 3, 11, 13)
_INTERFACES = ("__cuda_array_interface__", "__hip_array_interface__")
#: functions of MPI libraries that say whether they take such memory
_QUERIES = (
    "MPIX_Query_cuda_support",
    "MPIX_Query_hip_support",
    "MPIX_Query_rocm_support",
    "MPIX_Query_ze_support",
)


def on_device(owner: Any) -> bool:
    """Whether a buffer is in memory that the host cannot read."""
    if hasattr(owner, "__dlpack_device__"):
        return owner.__dlpack_device__()[0] not in _HOST
    return any(hasattr(owner, name) for name in _INTERFACES)


@cache
def taken() -> bool:
    """Whether buffers on a device are passed on: as the environment says, else if the
    MPI library says that it takes them."""
    asked = settings.device()
    if asked is not None:
        return asked == "direct"
    # functions of the library that mpi4py is linked with, and of no other
    loaded = ctypes.CDLL(MPI.__file__)
    found: list[Callable[[], int]] = [
        getattr(loaded, name) for name in _QUERIES if hasattr(loaded, name)
    ]
    return any(query() == 1 for query in found)


def owner_of(spec: Any) -> Any:
    """The buffer of a specification."""
    return spec[0] if isinstance(spec, list | tuple) and spec else spec


def check(owner: Any) -> None:
    """Refuse a buffer on a device without reading it, unless it can be passed on."""
    if on_device(owner) and not taken():
        raise ValueError(
            "message: the buffer is in the memory of a device, and the MPI library "
            "does not say that it takes such memory; copy it to the host, or set "
            f"{settings.DEVICE}=direct if the library does take it"
        )


def check_all(*specs: Any) -> None:
    """Refuse buffers on a device in the arguments of a call that nobody else reads."""
    for spec in specs:
        if type(spec) is not _ndarray:
            check(owner_of(spec))


def _of_one(native: Any) -> Any:
    @wraps(native)
    def method(self: Any, buf: Any, *args: Any, **kwargs: Any) -> Any:
        if type(buf) is not _ndarray:
            check(owner_of(buf))
        return native(self, buf, *args, **kwargs)

    return method


def _of_two(native: Any) -> Any:
    @wraps(native)
    def method(self: Any, sendbuf: Any, recvbuf: Any, *args: Any, **kwargs: Any) -> Any:
        if type(sendbuf) is not _ndarray or type(recvbuf) is not _ndarray:
            check_all(sendbuf, recvbuf)
        return native(self, sendbuf, recvbuf, *args, **kwargs)

    return method


def checking(base: type, *operations: str) -> Callable[[Class], Class]:
    """A class decorator: those operations that are still mpi4py's own refuse buffers on
    a device, in all forms."""

    def decorate(cls: Class) -> Class:
        for op in operations:
            wrap = _of_one if op == "Bcast" else _of_two
            for name in (op, f"I{op.lower()}", f"{op}_init"):
                native = getattr(base, name, None)
                if native is not None and getattr(cls, name) is native:
                    setattr(cls, name, wrap(native))
        return cls

    return decorate


def check_on_host(op: str, *specs: Any) -> None:
    """Refuse buffers on a device in a call of ours that works in host memory."""
    for spec in specs:
        if type(spec) is not _ndarray and on_device(owner := owner_of(spec)):
            check(owner)
            raise ValueError(
                f"message: {op} combines or copies data in the memory of the host, "
                "and the buffer is on a device; with algorithm='native' on all ranks "
                "the MPI library does it"
            )
