"""Detection of buffers on devices, and the choice between staging and direct access.

No function of the file touches device memory. Copies are the business of `devices`, a
folder that is imported with the first buffer on a device, so that hosts without devices
never load a driver.
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
#: functions of MPI libraries that return 1 if the library takes device memory
_QUERIES = (
    "MPIX_Query_cuda_support",
    "MPIX_Query_hip_support",
    "MPIX_Query_rocm_support",
    "MPIX_Query_ze_support",
)
#: device files of the drivers of GPUs
_DRIVER_FILES = "/dev/nvidiactl", "/dev/kfd", "/dev/dxg"


def owner_of(spec: Any) -> Any:
    """The buffer of a specification."""
    return spec[0] if isinstance(spec, list | tuple) and spec else spec


def among(specs: tuple[Any, ...]) -> list[int]:
    """The places of a call's buffers on a device, in the order of the arguments."""
    return [
        i
        for i, x in enumerate(specs)
        if type(x) is not _ndarray and x is not None and on_device(owner_of(x))
    ]


@cache
def taken() -> bool:
    """Whether the MPI library reports support for buffers on a device."""
    # the library that mpi4py is linked with: another loaded one could answer otherwise
    library = ctypes.CDLL(MPI.__file__)
    queries: list[Callable[[], int]] = [
        getattr(library, name) for name in _QUERIES if hasattr(library, name)
    ]
    return any(query() == 1 for query in queries)


@cache
def present() -> bool:
    """Whether this process may have arrays on a device."""
    return any(map(os.path.exists, _DRIVER_FILES))


def way(requested: str | None, all_take: bool) -> str:
    """The treatment of buffers on a device: "direct", "stage" or "refuse".

    Without a request, the MPI libraries of all ranks must take device memory for
    "direct".
    """
    return requested or ("direct" if all_take else "stage")


def refuse() -> None:
    """Raise the error that the user chose for buffers on a device."""
    raise ValueError(
        "message: the buffer is in the memory of a device, which "
        f"{settings.DEVICE}=refuse refuses; copy it to the host"
    )
