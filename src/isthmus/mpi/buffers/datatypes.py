"""Datatypes of MPI: which one fits a buffer, and whether elements have gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI

from .dlpack import dtype_of

_CONTIGUOUS = (MPI.COMBINER_CONTIGUOUS, MPI.COMBINER_DUP)
#: the predefined datatype of each numpy type that was met
_known: dict[np.dtype[Any], MPI.Datatype] = {}


def is_dense(datatype: MPI.Datatype) -> bool:
    """Whether elements of the type lie in memory as they travel, without gaps."""
    if datatype.is_predefined:
        return bool(datatype.Get_size() == datatype.Get_extent()[1])
    if datatype.combiner not in _CONTIGUOUS:
        return False
    inner = datatype.decode()[0]
    dense = is_dense(inner)
    if not inner.is_predefined:
        inner.Free()
    return dense


def datatype_of(given: Any, owner: Any) -> MPI.Datatype:
    """The given type, or the one that fits the buffer's own elements."""
    if isinstance(given, MPI.Datatype):
        if given == MPI.DATATYPE_NULL:
            raise ValueError("message: the datatype is null")
        return given
    if given is None and isinstance(owner, np.ndarray):
        datatype = _known.get(owner.dtype)
        if datatype is not None:
            return datatype
    code = given if given is not None else _format(owner)
    try:
        datatype = MPI.Datatype.fromcode(code)
    except ValueError:
        raise KeyError(f"message: cannot map {code!r} to an MPI datatype") from None
    if given is None and isinstance(owner, np.ndarray):
        _known[owner.dtype] = datatype
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
