"""The values that a call is known by: of its arrays the sizes and the types,
of everything else what it says.

Two calls of equal values do the same at other places in memory, so they share a plan.
No value is an address or the identity of an object. A handle of MPI is a value only if
it is predefined: others are freed and come again with another meaning, so a derived
type is known by its sizes and an operator of the user's by whether it commutes.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from mpi4py import MPI

from ..buffers.datatypes import is_dense
from ..buffers.dlpack import dtype_of, on_device, speaks_of_devices

_ndarray = np.ndarray
_IN_PLACE = MPI.IN_PLACE
#: what stands for arguments that are no buffers
_NOTHING, _REPLACED, _ABSOLUTE = "nothing", "in place", "absolute addresses"


class Unknown(Exception):
    """An argument has no value that says all of it: the call is read every time."""


class OnDevice(Unknown):
    """An argument lies in the memory of a device."""


def values_of(
    args: tuple[Any, ...], *first: Any, may_be_device: bool = False
) -> tuple[tuple[Any, ...], list[MPI.memory | None]]:
    """The values of some arguments after some others, and the memory of each buffer
    among them."""
    values: list[Any] = [*first]
    memories: list[MPI.memory | None] = []
    for x in args:
        kind = type(x)
        if kind is _ndarray:
            memory = MPI.memory(x)
            memories.append(memory)
            values.append(memory.nbytes)
            values.append(x.dtype)
        elif kind is int:
            values.append(x)
        elif kind is MPI.Op:
            values.append(x.handle if x.is_predefined else (x.is_commutative,))
        elif x is None:
            memories.append(None)
            values.append(_NOTHING)
        elif x is _IN_PLACE:
            memories.append(None)
            values.append(_REPLACED)
        elif kind is list or kind is tuple:
            _add_listed(x, values, memories, may_be_device)
        elif isinstance(x, MPI.Op):
            values.append(x.handle if x.is_predefined else (x.is_commutative,))
        else:
            _add_buffer(x, values, memories, may_be_device)
    return tuple(values), memories


def _add_listed(
    x: list[Any] | tuple[Any, ...],
    values: list[Any],
    memories: list[Any],
    may_be_device: bool,
) -> None:
    """The values of a list: counts, or a buffer with counts, displacements and type."""
    if not x:
        raise Unknown
    first, *rest = x
    if isinstance(first, int | np.integer):
        values.append(tuple(map(index, x)))
        return
    _add_buffer(first, values, memories, may_be_device)
    values.append(tuple(map(_part, rest)))


def _add_buffer(
    x: Any, values: list[Any], memories: list[Any], may_be_device: bool
) -> None:
    """The values of an object with memory."""
    if type(x) is _ndarray:
        kind: Any = x.dtype
    elif x is MPI.BOTTOM:
        memories.append(None)
        values.append(_ABSOLUTE)
        return
    elif x is None:
        memories.append(None)
        values.append(_NOTHING)
        return
    elif speaks_of_devices(x):
        if on_device(x) and not may_be_device:
            raise OnDevice
        kind = dtype_of(x)
    else:
        kind = memoryview(x).format
    memory = MPI.memory(x)
    memories.append(memory)
    values.append(memory.nbytes)
    values.append(kind)


def _part(x: Any) -> Any:
    """Counts, displacements or a type, as a value. A tuple stays apart from a list, as
    two items may be counts and displacements."""
    kind = type(x)
    if kind is int or kind is str or x is None:
        return x
    if isinstance(x, MPI.Datatype):
        return _datatype(x)
    if kind is tuple:
        return tuple, *map(_part, x)
    if kind is list:
        return list, *map(_part, x)
    if kind is _ndarray and x.ndim:
        if x.dtype.kind not in "iu":
            raise Unknown
        return list, *x.tolist()
    return index(x)


def _datatype(x: MPI.Datatype) -> tuple[Any, ...]:
    if x == MPI.DATATYPE_NULL:
        raise Unknown
    if x.is_predefined:
        return "type", x.handle
    lower, extent = x.Get_extent()
    true_lower, true_extent = x.Get_true_extent()
    sizes = lower, extent, true_lower, true_extent
    return "derived", x.Get_size(), *sizes, is_dense(x)
