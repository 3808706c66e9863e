"""Operators for Python objects: functions of two values, or MPI's own."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from mpi4py import MPI

from ...groups.scans import Op


@cache
def _for_arrays() -> list[tuple[MPI.Op, Any]]:
    """What MPI's operators do to the elements of arrays."""
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


def function_of(op: Any) -> Op:
    """The function of an operator: MPI's work on numbers and on arrays alike."""
    if not callable(op):
        raise TypeError(f"{op!r} is no operator")
    if not isinstance(op, MPI.Op):
        return op  # type: ignore[no-any-return]
    found = next((ufunc for known, ufunc in _for_arrays() if known == op), None)

    def combine(x: Any, y: Any) -> Any:
        if found is not None and isinstance(x, np.ndarray):
            return found(x, y)
        return op(x, y)

    return combine
