"""How a call is known again: the last one by its very objects, others by value."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI

from .plan import Plan

_memory = MPI.memory
_ndarray = np.ndarray


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
        return spec.handle, spec.is_commutative
    raise LookupError


def call_key(op: str, args: tuple[Any, ...], algorithm: str | None) -> Any:
    """What a call's plan depends on; None where it must be made anew.

    Addresses are compared, not objects: a plan holds on to no buffer of the user's.
    """
    try:
        return op, algorithm, *map(_spec, args)
    except LookupError:
        return None


@dataclass(slots=True)
class Last:
    """The arguments of a call, and its plan.

    To compare objects takes a fraction of the time of a key, above all when caches are
    cold. No array is kept alive.
    """

    op: str
    algorithm: str | None
    #: each gives an argument back, while it lives
    args: list[Callable[[], Any]]
    plan: Plan

    def is_same(self, op: str, args: tuple[Any, ...], algorithm: str | None) -> bool:
        """Whether these are the very same arguments."""
        if op != self.op or algorithm != self.algorithm:
            return False
        for x, known in zip(args, self.args, strict=False):
            if x is not known() and not (type(x) is list and _is_listed(x, known)):
                return False
        return True


@dataclass(slots=True)
class _Listed:
    """An array and the counts that followed it in a list, which may change."""

    array: Callable[[], Any]
    counts: list[int]

    def __call__(self) -> Any:
        """What no argument is: what is in the list must be compared."""
        return self


def _is_listed(x: list[Any], known: Callable[[], Any]) -> bool:
    return (
        type(known) is _Listed
        and len(x) == 2
        and x[0] is known.array()
        and x[1] == known.counts
    )


def last_call(
    op: str, args: tuple[Any, ...], algorithm: str | None, plan: Plan
) -> Last | None:
    """What to know a call by; None where that cannot be said of its arguments."""
    found = [_reference(x) for x in args]
    known = [x for x in found if x is not None]
    return Last(op, algorithm, known, plan) if len(known) == len(found) else None


def _reference(x: Any) -> Callable[[], Any] | None:
    """What gives an argument back without keeping it alive; none for other buffers
    than arrays, whose memory might move."""
    kind = type(x)
    if kind is _ndarray:
        return weakref.ref(x)
    if kind is list and len(x) == 2 and type(x[1]) is list:
        array = _reference(x[0])
        return None if array is None else _Listed(array, list(x[1]))
    if x is MPI.IN_PLACE or x is None or kind is int or isinstance(x, MPI.Op):
        return lambda: x
    return None
