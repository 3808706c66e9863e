"""Arrays on a device: found and described, without touching their memory."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from mpi4py import MPI

from ... import settings

_ndarray = np.ndarray
#: DLPack's numbers for devices
CUDA, ROCM = 2, 10
#: and for memory that the host can read: plain, pinned for CUDA or ROCm, managed
_HOST = (1, 3, 11, 13)
_INTERFACES = {"__cuda_array_interface__": CUDA, "__hip_array_interface__": ROCM}
#: functions of MPI libraries that say whether they take such memory
_QUERIES = (
    "MPIX_Query_cuda_support",
    "MPIX_Query_hip_support",
    "MPIX_Query_rocm_support",
    "MPIX_Query_ze_support",
)
#: files that are there where a GPU can be used
_FILES = "/dev/nvidiactl", "/dev/kfd", "/dev/dxg"
#: all streams of a device
EVERY = -1


def on_device(owner: Any) -> bool:
    """Whether a buffer is in memory that the host cannot read."""
    return place(owner)[0] not in _HOST


def place(owner: Any) -> tuple[int, int | None]:
    """The kind of a buffer's device, and its number if it is known."""
    if hasattr(owner, "__dlpack_device__"):
        kind, number = owner.__dlpack_device__()
        return int(kind), int(number)
    for name, kind in _INTERFACES.items():
        if hasattr(owner, name):
            return kind, None
    return _HOST[0], None


def owner_of(spec: Any) -> Any:
    """The buffer of a specification."""
    return spec[0] if isinstance(spec, list | tuple) and spec else spec


def among(specs: tuple[Any, ...]) -> list[int]:
    """Which of the buffers of a call are on a device."""
    return [
        i
        for i, x in enumerate(specs)
        if type(x) is not _ndarray and x is not None and on_device(owner_of(x))
    ]


@cache
def taken() -> bool:
    """Whether the MPI library says that it takes buffers on a device."""
    # functions of the library that mpi4py is linked with, and of no other
    loaded = ctypes.CDLL(MPI.__file__)
    found: list[Callable[[], int]] = [
        getattr(loaded, name) for name in _QUERIES if hasattr(loaded, name)
    ]
    return any(query() == 1 for query in found)


@cache
def present() -> bool:
    """Whether this process may have arrays on a device."""
    return any(map(os.path.exists, _FILES))


def way(asked: str | None, everyone: bool) -> str:
    """What is done with buffers on a device: as is asked, or as the MPI library, on all
    ranks or not on everyone, can take them."""
    return asked or ("direct" if everyone else "stage")


def refuse() -> None:
    """Refuse a buffer on a device."""
    raise ValueError(
        "message: the buffer is in the memory of a device, which "
        f"{settings.DEVICE}=refuse refuses; copy it to the host"
    )


# -- what an array is


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """An array on a device, by its place there; strides are in bytes."""

    #: what keeps it alive
    owner: Any
    kind: int
    #: of the device, if it is known
    number: int | None
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    readonly: bool
    #: the stream whose work must be done first; `EVERY` for all, None for nothing
    stream: int | None

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return prod(self.shape) * self.dtype.itemsize


def described(owner: Any, stream_of: Callable[[int, int], int]) -> Array:
    """What an array is; `stream_of` gives the stream, of a kind of device and a number,
    on which it will be copied: by DLPack, its producer lets that wait for it."""
    kind, number = place(owner)
    if hasattr(owner, "__dlpack__") and number is not None:
        ours = stream_of(kind, number)
        try:
            capsule = owner.__dlpack__(stream=ours, max_version=(1, 0))
        except TypeError:  # of a producer before version 1
            capsule = owner.__dlpack__(stream=ours)
        return _from_capsule(capsule, owner, kind, number, ours)
    name = next(x for x in _INTERFACES if hasattr(owner, x))
    return _from_interface(owner, getattr(owner, name), kind, number)


def _from_interface(
    owner: Any, found: dict[str, Any], kind: int, number: int | None
) -> Array:
    address, readonly = found["data"]
    shape, dtype = tuple(found["shape"]), np.dtype(found["typestr"])
    strides = found.get("strides") or _dense(shape, dtype.itemsize)
    # before version 3, nothing says which stream it is; then, None means that there is
    # nothing to wait for
    stream = found.get("stream") if found.get("version", 0) >= 3 else EVERY
    ends = owner, kind, number, address
    return Array(*ends, shape, tuple(strides), dtype, readonly, stream)


def _dense(shape: tuple[int, ...], item: int) -> tuple[int, ...]:
    """The strides of an array without gaps, in C's order."""
    found = [item] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        found[i - 1] = found[i] * max(shape[i], 1)
    return tuple(found)


# -- DLPack


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p),
        ("kind", c_int32),
        ("number", c_int32),
        ("ndim", c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("offset", c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    )


_READ_ONLY = 1
#: numpy's letters for DLPack's types; bfloat16 and others are known by their size only
_TYPES = {0: "i", 1: "u", 2: "f", 5: "c"}
_BOOL = 6
_api = ctypes.pythonapi
_is_valid = _api.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, c_char_p), ctypes.c_int
_pointer = _api.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, c_char_p), c_void_p


def _from_capsule(
    capsule: Any, owner: Any, kind: int, number: int, stream: int
) -> Array:
    """What a DLPack capsule says; it is never consumed, so it gives the array back."""
    readonly = False
    if _is_valid(capsule, b"dltensor_versioned"):
        whole = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        x, readonly = whole.tensor, bool(whole.flags & _READ_ONLY)
    else:
        x = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    shape = tuple(x.shape[: x.ndim])
    item = x.bits * x.lanes // 8
    dtype = np.dtype("?" if x.code == _BOOL else f"{_TYPES.get(x.code, 'V')}{item}")
    strides = _dense(shape, item)
    if x.strides:
        strides = tuple(n * item for n in x.strides[: x.ndim])
    address = (x.data or 0) + x.offset
    ends = (capsule, owner), kind, number, address
    return Array(*ends, shape, strides, dtype, readonly, stream)
