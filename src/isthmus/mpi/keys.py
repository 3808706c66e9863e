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
_ref = weakref.ref
#: what no argument is
_UNKNOWN = object()


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
    #: an argument, or what gives it back while it lives
    args: list[Any]
    plan: Plan

    def is_same(self, op: str, args: tuple[Any, ...], algorithm: str | None) -> bool:
        """Whether these are the very same arguments."""
        if op != self.op or algorithm != self.algorithm:
            return False
        for i, known in enumerate(self.args):  # which is faster than zip
            x = args[i]
            if x is known or (type(known) is _ref and known() is x):
                continue
            if type(x) is not list or not _is_listed(x, known):
                return False
        return True


@dataclass(slots=True)
class _Listed:
    """An array and the counts that followed it in a list, which may change."""

    array: Callable[[], Any]
    counts: list[int]


def _is_listed(x: list[Any], known: Any) -> bool:
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
    known = [_reference(x) for x in args]
    return None if _UNKNOWN in known else Last(op, algorithm, known, plan)


def _reference(x: Any) -> Any:
    """What an argument is known by, without keeping an array alive; unknown are other
    buffers than arrays, whose memory might move."""
    kind = type(x)
    if kind is _ndarray:
        return _ref(x)
    if kind is list and len(x) == 2 and type(x[0]) is _ndarray and type(x[1]) is list:
        return _Listed(_ref(x[0]), list(x[1]))
    if x is MPI.IN_PLACE or x is None or kind is int or isinstance(x, MPI.Op):
        return x
    return _UNKNOWN
