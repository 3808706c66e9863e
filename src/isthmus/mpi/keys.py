"""How a call is known again: by its very objects, or else by value."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

_memory = MPI.memory
_ndarray = np.ndarray
#: what a call is known by: its name, its algorithm, and something of each argument
Key = tuple[Any, ...]
#: so many calls are known by their objects at a time
MOST = 256


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


def spec(x: Any) -> Any:
    """What an argument is known by: itself; a list by what is in it.

    The two kinds of lists that are used most are taken apart here, since to look into
    any list takes several times as long.
    """
    if type(x) is not list:
        return id(x)
    if len(x) == 2:
        array, counts = x
        if type(counts) is list and counts and type(counts[0]) is int:
            return id(array), *counts
    elif len(x) == 3 and type(x[1]) is tuple and len(x[1]) == 2:
        array, (counts, displs), types = x
        if type(counts) is type(displs) is type(types) is list:
            return id(array), len(counts), *counts, *displs, *map(id, types)
    return _listed(x)


def numbers(x: Any) -> Any:
    """What counts are known by: their values."""
    if type(x) is _ndarray:
        return x.dtype, x.tobytes()
    return tuple(x) if type(x) is list or type(x) is tuple else id(x)


def _listed(x: Any) -> Any:
    """Numbers by value, other objects by themselves."""
    kind = type(x)
    if kind is list or kind is tuple:
        return (kind, *x) if x and type(x[0]) is int else (kind, *map(_listed, x))
    return x if kind is int else id(x)


class Known:
    """Calls by their very objects, which takes a fraction of the time of a value, above
    all when caches are cold. No array is kept alive: a call is forgotten with it.
    """

    def __init__(self) -> None:
        self.calls: dict[Key, Callable[..., Any]] = {}
        self._alive: dict[Key, list[Any]] = {}

    def keep(self, key: Key, args: tuple[Any, ...], do: Any) -> None:
        """Know a call again, unless other objects could come to look like these."""

        def forget(_: Any) -> None:
            self.calls.pop(key, None)
            self._alive.pop(key, None)

        try:
            alive = [y for x in args for y in _held(x, forget)]
        except LookupError:
            return
        if len(self.calls) >= MOST:
            self.clear()
        self.calls[key], self._alive[key] = do, alive

    def clear(self) -> None:
        """Know no call."""
        self.calls.clear()
        self._alive.clear()


def _held(x: Any, forget: Callable[[Any], None]) -> list[Any]:
    """What must be held so that no other object takes the place of an argument."""
    if type(x) is _ndarray:
        return [weakref.ref(x, forget)]
    if type(x) is list and x and type(x[0]) is _ndarray:
        return [weakref.ref(x[0], forget), *_fixed(x[1:])]
    return _fixed(x)


def _fixed(x: Any) -> list[Any]:
    """What cannot change as long as it lives; `LookupError` where it can."""
    if isinstance(x, list | tuple):
        return [z for y in x for z in _fixed(y)]
    if x is None or x is MPI.IN_PLACE or type(x) is int or isinstance(x, MPI.Op):
        return [x]
    if isinstance(x, MPI.Datatype) and x.is_predefined:
        return [x]
    raise LookupError
