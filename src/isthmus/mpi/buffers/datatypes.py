"""Datatypes of MPI: the type that fits a buffer, and whether elements have gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI

from .dlpack import dtype_of

_CONTIGUOUS = (MPI.COMBINER_CONTIGUOUS, MPI.COMBINER_DUP)
#: predefined datatypes by numpy type, so that a call parses no type code again
_predefined: dict[np.dtype[Any], MPI.Datatype] = {}


def is_dense(datatype: MPI.Datatype) -> bool:
    """Whether elements of a type have no gaps, so that memory equals the message."""
    if datatype.is_predefined:
        return bool(datatype.Get_size() == datatype.Get_extent()[1])
    if datatype.combiner not in _CONTIGUOUS:
        return False
    inner = datatype.decode()[0]
    dense = is_dense(inner)
    if not inner.is_predefined:
        inner.Free()
    return dense


def datatype_of(requested: Any, owner: Any) -> MPI.Datatype:
    """The datatype that a specification requests, by default that of the elements."""
    if isinstance(requested, MPI.Datatype):
        if requested == MPI.DATATYPE_NULL:
            raise ValueError("message: the datatype is null")
        return requested
    if requested is None and isinstance(owner, np.ndarray):
        datatype = _predefined.get(owner.dtype)
        if datatype is not None:
            return datatype
    code = requested if requested is not None else _format(owner)
    try:
        datatype = MPI.Datatype.fromcode(code)
    except ValueError:
        raise KeyError(f"message: cannot map {code!r} to an MPI datatype") from None
    if requested is None and isinstance(owner, np.ndarray):
        _predefined[owner.dtype] = datatype
    return datatype


def _format(owner: Any) -> str:
    """The format of a buffer's elements, in native byte order."""
    try:
        code = memoryview(owner).format
    except TypeError:  # an array that speaks DLPack or the CUDA array interface only
        code = dtype_of(owner).char
    if code[0] == (">" if np.little_endian else "<"):
        raise BufferError(f"message: format {code!r} has a foreign byte order")
    return code.lstrip("@=<>") or "B"
