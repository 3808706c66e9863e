"""Calls that are known by their objects, which takes a fraction of the time of values.

The last call of each operation is known soonest: each method compares its arguments
with those, one by one. That is all that such a call takes longer than the MPI library's
own, and where processes share cores, and find their caches cold, it shows.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from .keys import Key

_memory, _ndarray = MPI.memory, np.ndarray
#: does a call that is known
Do = Callable[[], Any]
#: what a method compares its arguments with, then its algorithm, and what does the call
Entry = tuple[Any, ...]
#: gives None, in the time of a reference: its array is no more
_NONE = weakref.ref(np.empty(0))
_MOVED = object()
#: so many calls are known by their objects at a time
MOST = 256


def _array(x: Any) -> Entry:
    """What gives an array again, or None, or MPI.IN_PLACE."""
    if type(x) is _ndarray:
        return (_unmoved(x),)
    if x is None:
        return (_NONE,)
    if x is MPI.IN_PLACE:
        return (lambda: x,)
    raise LookupError


def _unmoved(x: np.ndarray) -> Callable[[], Any]:
    """What gives an array again, as long as it is, and its elements are where they
    were; else what no argument can be."""
    found, place = weakref.ref(x), _memory(x)
    address, nbytes, kind = place.address, place.nbytes, x.dtype

    def array() -> Any:
        y = found()
        if y is None or y.dtype is not kind:
            return _MOVED
        try:
            place = _memory(y)
        except (BufferError, ValueError):  # with gaps now
            return _MOVED
        same = place.address == address and place.nbytes == nbytes
        return y if same else _MOVED

    return array


def _value(x: Any) -> Entry:
    """A root, an operator, or a list, which is compared by what is in it now."""
    _fixed(x)
    return (list(x) if type(x) is list else x,)


def _counted(x: Any) -> Entry:
    """An array and a list of counts, or an array alone."""
    if type(x) is not list:
        return *_array(x), None
    if len(x) != 2 or type(x[1]) is not list:
        raise LookupError
    return *_array(x[0]), *_value(x[1])


def _typed(x: Any) -> Entry:
    """An array and lists of counts, places and types."""
    if type(x) is not list or len(x) != 3 or type(x[1]) is not tuple or len(x[1]) != 2:
        raise LookupError
    array, (counts, displs), types = x
    return *_array(array), *_value(counts), *_value(displs), *_value(types)


#: of each operation, how its arguments are compared with those of its last call
FORMS: dict[str, tuple[Callable[[Any], Entry], ...]] = {
    "Bcast": (_array, _value),
    "Reduce": (_array, _array, _value, _value),
    "Gather": (_array, _array, _value),
    "Gatherv": (_array, _counted, _value),
    "Scatter": (_array, _array, _value),
    "Scatterv": (_counted, _array, _value),
    "Allgather": (_array, _array),
    "Allgatherv": (_array, _counted),
    "Allreduce": (_array, _array, _value),
    "Reduce_scatter": (_array, _array, _value, _value),
    "Reduce_scatter_block": (_array, _array, _value),
    "Alltoall": (_array, _array),
    "Alltoallv": (_counted, _counted),
    "Alltoallw": (_typed, _typed),
    "Barrier": (),
}
_LENGTH: dict[Callable[[Any], Entry], int] = {
    _array: 1,
    _value: 1,
    _counted: 2,
    _typed: 4,
}


def is_counted(x: Any, array: Any, counts: Any) -> bool:
    """Whether an argument is that array with those counts."""
    if type(x) is not list:
        return counts is None and array() is x
    if len(x) != 2 or type(x[1]) is not list:
        return False
    return x[1] == counts and array() is x[0]


class Last:
    """The last call of each operation, as an attribute of its name."""

    def __init__(self) -> None:
        for op in FORMS:
            setattr(self, op, _never(op))


@dataclass(slots=True)
class _Call:
    """What does a call, and what must be held while it is known."""

    do: Do
    held: list[Any]
    arrays: list[Do]
    entry: Entry = ()


class Known:
    """Calls by their objects: the last ones, and any number in turn.

    No array is kept alive: a call is forgotten with it.
    """

    def __init__(self) -> None:
        self.last = Last()
        self.calls: dict[Key, _Call] = {}

    def recall(self, key: Key, args: tuple[Any, ...]) -> Do | None:
        """What does a call, if it is known; it is the last one then."""
        call = self.calls.get(key)
        if call is None:
            return None
        if any(array() is _MOVED for array in call.arrays):
            self._forget(key, None)
            return None
        call.entry = call.entry or _entry(key, args, call.do)
        setattr(self.last, key[0], call.entry)
        return call.do

    def keep(self, key: Key, args: tuple[Any, ...], do: Do) -> None:
        """Know a call again, unless other objects could come to look like these."""
        try:
            held = [y for x in args for y in _held(x, partial(self._forget, key))]
        except LookupError:
            return
        if len(self.calls) >= MOST:
            self.clear()
        arrays = [_unmoved(x) for x in map(_first, args) if type(x) is _ndarray]
        self.calls[key] = _Call(do, held, arrays)

    def _forget(self, key: Key, _: Any) -> None:
        """An array of a call is no more; it is None now, which may be passed too."""
        self.calls.pop(key, None)
        setattr(self.last, key[0], _never(key[0]))

    def clear(self) -> None:
        """Know no call."""
        self.calls.clear()
        for op in FORMS:
            setattr(self.last, op, _never(op))


def _first(x: Any) -> Any:
    """The array of an argument, if it has one."""
    return x[0] if type(x) is list and x else x


def _never(op: str) -> Entry:
    """What no argument can be."""
    return (object,) * (sum(_LENGTH[form] for form in FORMS[op]) + 2)


def _entry(key: Key, args: tuple[Any, ...], do: Do) -> Entry:
    """What a method compares its arguments with, if it can."""
    op, algorithm, *_ = key
    try:
        parts = [form(x) for form, x in zip(FORMS[op], args, strict=True)]
    except LookupError:
        return _never(op)
    return *[y for part in parts for y in part], algorithm, do


def weakly(x: Any) -> Do:
    """What gives an argument again, and keeps no array alive."""
    kind = type(x)
    if kind is _ndarray:
        return weakref.ref(x)
    if kind is list or kind is tuple:
        parts = [weakly(y) for y in x]
        return lambda: kind(part() for part in parts)
    return lambda: x


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
    if x is None or x is MPI.IN_PLACE or type(x) is int:
        return [x]
    if isinstance(x, MPI.Op | MPI.Datatype) and x.is_predefined:
        return [x]
    raise LookupError
