"""Operators on Python objects: functions of two values, or MPI's own operators."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from mpi4py import MPI

from ...groups.scans import Op


def function_of(op: Any) -> Op:
    """The function of an operator, for numbers and for arrays.

    Arrays get numpy's functions, since some of mpi4py's, MPI.MAX for instance, do not
    work by element.
    """
    if not callable(op):
        raise TypeError(f"{op!r} is no operator")
    if not isinstance(op, MPI.Op):
        return op  # type: ignore[no-any-return]
    array_function = next((ufunc for known, ufunc in _ufuncs() if known == op), None)

    def combine(x: Any, y: Any) -> Any:
        if array_function is not None and isinstance(x, np.ndarray):
            return array_function(x, y)
        return op(x, y)

    return combine


@cache
def _ufuncs() -> list[tuple[MPI.Op, Any]]:
    """MPI's operators, each with numpy's function on the elements of arrays."""
    return [
        (MPI.SUM, np.add),
        (MPI.PROD, np.multiply),
        (MPI.MAX, np.maximum),
        (MPI.MIN, np.minimum),
        (MPI.LAND, np.logical_and),
        (MPI.LOR, np.logical_or),
        (MPI.LXOR, np.logical_xor),
        (MPI.BAND, np.bitwise_and),
        (MPI.BOR, np.bitwise_or),
        (MPI.BXOR, np.bitwise_xor),
    ]
