"""The values by which a call is known: sizes and types of arrays, integers, operators.

Two calls of equal values share a plan, since their work differs only in places in
memory. No value is an address or the identity of an object. A handle of MPI is a value
only if predefined, because a handle of the user may be freed and come again with
another meaning. A derived type is therefore known by sizes, and an operator of the
user by whether it commutes.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from mpi4py import MPI

from ..buffers.datatypes import is_dense
from ..buffers.dlpack import dtype_of, on_device, speaks_of_devices

_ndarray = np.ndarray
_in_place = MPI.IN_PLACE
#: operations with one buffer, which is sent at the root and received elsewhere
OF_ONE_BUFFER = ("Bcast",)
#: the values of None, MPI.IN_PLACE and MPI.BOTTOM
_NO_BUFFER, _OMITTED, _ABSOLUTE = "nothing", "in place", "absolute addresses"


class UnknownValue(Exception):
    """An argument without a value: the arguments are read at each call."""


class DeviceArgument(UnknownValue):
    """An argument in the memory of a device."""


#: the errors of arguments that have no values or cannot be read; any other is that of a
#: signal handler, as `TimeoutError` from an alarm
READING_ERRORS = (
    UnknownValue,
    TypeError,
    ValueError,
    AttributeError,
    LookupError,
    ArithmeticError,
    BufferError,
    NotImplementedError,
    MPI.Exception,
)


def values_of(
    args: tuple[Any, ...], name: str, *prefix: Any, may_be_device: bool = False
) -> tuple[tuple[Any, ...], list[MPI.memory | None]]:
    """The values of arguments, behind those of a call, and the memory of each buffer.

    Buffers come first; then counts, an operator or a root. An argument's place alone
    says which: an integer of numpy and an array of counts have memory too, and their
    values are not the sizes of that memory.
    """
    values: list[Any] = [name, *prefix]
    memories: list[MPI.memory | None] = []
    buffers = 1 if name in OF_ONE_BUFFER else 2
    for argument in args[:buffers]:
        kind = type(argument)
        if kind is _ndarray:
            memory = MPI.memory(argument)
            memories.append(memory)
            values.append(memory.nbytes)
            values.append(argument.dtype)
        elif argument is None:
            memories.append(None)
            values.append(_NO_BUFFER)
        elif argument is _in_place:
            memories.append(None)
            values.append(_OMITTED)
        elif kind is list or kind is tuple:
            if not argument:
                raise UnknownValue
            _add_buffer(argument[0], values, memories, may_be_device)
            values.append(tuple(map(_item_value, argument[1:])))
        else:
            _add_buffer(argument, values, memories, may_be_device)
    for argument in args[buffers:]:
        if isinstance(argument, MPI.Op):
            is_predefined = argument.is_predefined
            values.append(
                argument.handle if is_predefined else (argument.is_commutative,)
            )
        else:
            values.append(_item_value(argument))
    return tuple(values), memories


def _add_buffer(
    buffer: Any,
    values: list[Any],
    memories: list[MPI.memory | None],
    may_be_device: bool,
) -> None:
    """Add the values of an object with memory."""
    if type(buffer) is _ndarray:
        element_type: Any = buffer.dtype
    elif buffer is MPI.BOTTOM:
        memories.append(None)
        values.append(_ABSOLUTE)
        return
    elif buffer is None:
        memories.append(None)
        values.append(_NO_BUFFER)
        return
    elif speaks_of_devices(buffer):
        if on_device(buffer) and not may_be_device:
            raise DeviceArgument
        element_type = dtype_of(buffer)
    else:
        element_type = memoryview(buffer).format
    memory = MPI.memory(buffer)
    memories.append(memory)
    values.append(memory.nbytes)
    values.append(element_type)


def _item_value(item: Any) -> Any:
    """The value of counts, of displacements, of a type or of a root.

    The values of tuples and lists differ, since a tuple of two items may be counts and
    displacements.
    """
    kind = type(item)
    if kind is int or kind is str or item is None:
        return item
    if isinstance(item, MPI.Datatype):
        return _datatype_value(item)
    if kind is tuple:
        return tuple, *map(_item_value, item)
    if kind is list:
        return list, *map(_item_value, item)
    if kind is _ndarray and item.ndim:
        if item.dtype.kind not in "iu":
            raise UnknownValue
        return list, *item.tolist()
    return index(item)


def _datatype_value(datatype: MPI.Datatype) -> tuple[Any, ...]:
    if datatype == MPI.DATATYPE_NULL:
        raise UnknownValue
    if datatype.is_predefined:
        return "type", datatype.handle
    lower, extent = datatype.Get_extent()
    true_lower, true_extent = datatype.Get_true_extent()
    sizes = lower, extent, true_lower, true_extent
    return "derived", datatype.Get_size(), *sizes, is_dense(datatype)
