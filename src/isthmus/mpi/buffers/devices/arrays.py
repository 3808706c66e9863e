"""Arrays on a device: found and described, without touching their memory."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from mpi4py import MPI

from .... import settings
from ..dlpack import INTERFACES, dense_strides, on_device, place, tensor_of

_ndarray = np.ndarray
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
    name = next(x for x in INTERFACES if hasattr(owner, x))
    return _from_interface(owner, getattr(owner, name), kind, number)


def _from_interface(
    owner: Any, found: dict[str, Any], kind: int, number: int | None
) -> Array:
    address, readonly = found["data"]
    shape, dtype = tuple(found["shape"]), np.dtype(found["typestr"])
    strides = found.get("strides") or dense_strides(shape, dtype.itemsize)
    # before version 3, nothing says which stream it is; then, None means that there is
    # nothing to wait for
    stream = found.get("stream") if found.get("version", 0) >= 3 else EVERY
    ends = owner, kind, number, address
    return Array(*ends, shape, tuple(strides), dtype, readonly, stream)


def _from_capsule(
    capsule: Any, owner: Any, kind: int, number: int, stream: int
) -> Array:
    x = tensor_of(capsule)
    ends = (capsule, owner), kind, number, x.address
    return Array(*ends, x.shape, x.strides, x.dtype, x.is_readonly, stream)
