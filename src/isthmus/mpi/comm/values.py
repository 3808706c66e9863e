"""What a call is known by: the values of its arguments, and of arrays their form."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI

_ndarray = np.ndarray
#: what lives as long as the process, by its identity: that takes less time to compare
_LASTING: dict[int, str] = {
    **{
        id(np.dtype(code)): code for code in np.typecodes["All"] if code not in "SUVOMm"
    },
    **{
        id(x): name
        for name, x in vars(MPI).items()
        if isinstance(x, MPI.Op) and x not in (MPI.OP_NULL, MPI.REPLACE, MPI.NO_OP)
    },
}


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


def by_value(op: str, algorithm: str | None, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call is known by; `LookupError` where values do not say all. Of an array
    that is its size and its type: where it lies comes later, if it matters."""
    values: list[Any] = [op, algorithm]
    for x in args:
        kind = type(x)
        if kind is _ndarray:
            dtype = x.dtype
            values.append(x.nbytes)
            values.append(_LASTING.get(id(dtype), dtype))
        elif kind is int:
            values.append(x)
        elif id(x) in _LASTING:
            values.append(_LASTING[id(x)])
        elif x is None or x is MPI.IN_PLACE:
            values.append("nothing" if x is None else "in place")
        elif kind is list and x and type(x[0]) is _ndarray:
            values += list, x[0].nbytes, x[0].dtype
            values += map(_part, x[1:])
        elif kind is list:
            values.append(tuple(x))
        elif isinstance(x, MPI.Op) and x != MPI.OP_NULL:
            # a plan that combines holds on to its operator, so this is no other one
            values += x.handle, x.is_commutative, x.is_predefined or id(x)
        else:
            raise LookupError
    return tuple(values)
