"""Arrays that speak DLPack or the interfaces of CUDA and ROCm: device and description.

A DLPack capsule is read in place, not consumed. Numpy would consume the capsule, and
takes no array of a device.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np


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


class _VersionedTensor(ctypes.Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    )


#: DLPack's codes of kinds of devices
CUDA, ROCM = 2, 10
#: DLPack's codes of memory that the host reads: plain, pinned (CUDA, ROCm), managed
_HOST_KINDS = (1, 3, 11, 13)
INTERFACES = {"__cuda_array_interface__": CUDA, "__hip_array_interface__": ROCM}
_READ_ONLY = 1
#: numpy's letters by DLPack's type codes; bfloat16 and the like become bytes ("V")
_LETTERS = {0: "i", 1: "u", 2: "f", 5: "c"}
_FLOAT, _COMPLEX, _BOOL = 2, 5, 6
_api = ctypes.pythonapi
_is_valid = _api.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, c_char_p), ctypes.c_int
_pointer = _api.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, c_char_p), c_void_p


@dataclass(frozen=True, slots=True)
class Tensor:
    """The description of an array in a capsule; strides are in bytes."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    is_readonly: bool


def tensor_of(capsule: Any) -> Tensor:
    """The array that a capsule describes.

    The capsule is not consumed, so that its destructor still releases the array.
    """
    is_readonly = False
    if _is_valid(capsule, b"dltensor_versioned"):
        managed = _VersionedTensor.from_address(
            _pointer(capsule, b"dltensor_versioned")
        )
        tensor, is_readonly = managed.tensor, bool(managed.flags & _READ_ONLY)
    else:
        tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[: tensor.ndim])
    item = tensor.bits * tensor.lanes // 8
    # complex numbers of 256 bits, more than "bits" can say, come as two lanes of floats
    code = _COMPLEX if tensor.code == _FLOAT and tensor.lanes == 2 else tensor.code
    dtype = np.dtype("?" if code == _BOOL else f"{_LETTERS.get(code, 'V')}{item}")
    strides = dense_strides(shape, item)
    if tensor.strides:
        strides = tuple(n * item for n in tensor.strides[: tensor.ndim])
    return Tensor(
        (tensor.data or 0) + tensor.offset, shape, strides, dtype, is_readonly
    )


def dense_strides(shape: tuple[int, ...], item: int) -> tuple[int, ...]:
    """The strides of an array without gaps, in C's order."""
    strides = [item] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        strides[i - 1] = strides[i] * max(shape[i], 1)
    return tuple(strides)


def dtype_of(owner: Any) -> np.dtype[Any]:
    """The element type of an array that speaks the CUDA array interface, or DLPack.

    A capsule is read by `tensor_of`, since numpy's reader of DLPack knows no long
    double.
    """
    if hasattr(owner, "__cuda_array_interface__"):
        dtype: np.dtype[Any] = np.dtype(owner.__cuda_array_interface__["typestr"])
    else:
        dtype = tensor_of(owner.__dlpack__()).dtype
    return dtype


def speaks_of_devices(owner: Any) -> bool:
    """Whether a buffer has an interface that names its device."""
    return hasattr(owner, "__dlpack_device__") or any(
        hasattr(owner, name) for name in INTERFACES
    )


def on_device(owner: Any) -> bool:
    """Whether the host cannot read the memory of a buffer."""
    return place(owner)[0] not in _HOST_KINDS


def place(owner: Any) -> tuple[int, int | None]:
    """The kind and, if known, the number of a buffer's device."""
    if hasattr(owner, "__dlpack_device__"):
        kind, number = owner.__dlpack_device__()
        return int(kind), int(number)
    for name, kind in INTERFACES.items():
        if hasattr(owner, name):
            return kind, None
    return _HOST_KINDS[0], None
