"""Arrays on a device, described without touching their memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..dlpack import INTERFACES, dense_strides, place, tensor_of

#: all streams of a device
EVERY = -1


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
