"""Arrays on a device, described without access to device memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..dlpack import INTERFACES, dense_strides, place, tensor_of

#: in place of a stream: all streams of a device
ALL_STREAMS = -1


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """An array on a device: address, shape and strides in bytes."""

    #: the object that keeps the memory alive
    owner: Any
    kind: int
    #: the number of the device, if known
    number: int | None
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    readonly: bool
    #: the stream whose work must be done first; `ALL_STREAMS` for all, None for none
    stream: int | None

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize


def described(owner: Any, stream_of: Callable[[int, int], int]) -> Array:
    """The description of an array on a device.

    `stream_of` gives the stream for copies, by kind and number of the device. A
    producer that speaks DLPack gets the stream, and lets the stream wait for work on
    the array.
    """
    kind, number = place(owner)
    if hasattr(owner, "__dlpack__") and number is not None:
        stream = stream_of(kind, number)
        try:
            capsule = owner.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:  # a producer before version 1 takes no version
            capsule = owner.__dlpack__(stream=stream)
        return _from_capsule(capsule, owner, kind, number, stream)
    name = next(name for name in INTERFACES if hasattr(owner, name))
    return _from_interface(owner, getattr(owner, name), kind, number)


def _from_interface(
    owner: Any, interface: dict[str, Any], kind: int, number: int | None
) -> Array:
    address, readonly = interface["data"]
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    strides = interface.get("strides") or dense_strides(shape, dtype.itemsize)
    # before version 3 the interface names no stream, so any may have work to wait for
    is_stream_known = interface.get("version", 0) >= 3
    stream = interface.get("stream") if is_stream_known else ALL_STREAMS
    place_of_data = owner, kind, number, address
    return Array(*place_of_data, shape, tuple(strides), dtype, readonly, stream)


def _from_capsule(
    capsule: Any, owner: Any, kind: int, number: int, stream: int
) -> Array:
    tensor = tensor_of(capsule)
    place_of_data = (capsule, owner), kind, number, tensor.address
    geometry = tensor.shape, tensor.strides, tensor.dtype
    return Array(*place_of_data, *geometry, tensor.is_readonly, stream)
