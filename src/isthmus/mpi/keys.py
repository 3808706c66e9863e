"""How a call is known again: by its very objects, or else by value."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI

_memory = MPI.memory
_ndarray = np.ndarray
#: what a call is known by: its name, its algorithm, and something of each argument
Key = tuple[Any, ...]


def _part(x: Any) -> Any:
    """Counts, displacements or a type, as a value that can be compared."""
    kind = type(x)
    if kind is list:
        typed = x and isinstance(x[0], MPI.Datatype)
        return tuple(map(_part, x)) if typed else tuple(x)
    if kind is tuple:
        return tuple, *map(_part, x)
    if kind is _ndarray:
        return x.dtype, x.tobytes()
    if isinstance(x, MPI.Datatype):
        if not x.is_predefined:  # when freed, its handle may come to mean another type
            raise LookupError
        return x.handle
    return x


def _spec(spec: Any) -> Any:
    """What an argument says, as a value; `LookupError` where that is not known to be
    all it says."""
    kind = type(spec)
    if kind is _ndarray:
        m = _memory(spec)
        return m.address, m.nbytes, m.readonly, spec.dtype
    if kind is int or spec is None:
        return spec
    if kind is list:
        return _spec(spec[0]), *[_part(x) for x in spec[1:]]
    if spec is MPI.IN_PLACE:
        return "in place"
    if isinstance(spec, MPI.Op) and spec != MPI.OP_NULL:
        # a plan that combines holds on to its operator, so this is no other one
        return spec.handle, spec.is_commutative, spec.is_predefined or id(spec)
    raise LookupError


def by_value(op: str, algorithm: str | None, args: tuple[Any, ...]) -> Key | None:
    """What a call's plan depends on; None where it must be made anew.

    Addresses are compared, not objects: a plan holds on to no buffer of the user's.
    """
    try:
        return op, algorithm, *map(_spec, args)
    except LookupError:
        return None


def by_objects(op: str, algorithm: str | None, args: tuple[Any, ...]) -> Key:
    """What a call is known by as long as its objects live: arrays, operators and types
    by themselves, numbers and what is in lists by value."""
    return op, algorithm, *map(_object, args)


def _object(x: Any) -> Any:
    kind = type(x)
    if kind is int:
        return x
    if kind is list or kind is tuple:
        return (kind, *x) if x and type(x[0]) is int else (kind, *map(_object, x))
    return id(x)
