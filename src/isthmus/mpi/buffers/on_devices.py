"""Whether buffers are on devices, and what is done with them then, without touching
their memory.

All that has to do with a device itself is in `devices`, which is imported where there
is such a buffer.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from mpi4py import MPI

from ... import settings
from .dlpack import on_device

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
