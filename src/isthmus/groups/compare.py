"""Colours and keys that only a function of the user can compare."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, TypeAlias, TypeVar

from .dialogue import Dialogue

T = TypeVar("T")

#: compare(x, y) is negative, zero or positive as x comes before, with or after y
Compare: TypeAlias = Callable[[Any, Any], int]

_comparisons: dict[type, Compare] = {}


def register_comparison(kind: type, compare: Compare) -> None:
    """Let values of a type be colours and keys that `compare` puts in order.

    Such values are pickled, compared and never hashed: only the algorithms that sort
    can be used. Every process must register the same function, and subclasses their
    own.
    """
    if not isinstance(kind, type) or kind.__module__ == "builtins":
        raise TypeError(f"{kind!r} is not a class of your own")
    _comparisons[kind] = compare


def has_comparison(kind: type) -> bool:
    """Whether a comparison is registered for a type."""
    return kind in _comparisons


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """A value with a comparison function; encoded values come before all such values.

    The function is the one registered for the type, or a call's own, which is not sent,
    because functions may not be picklable: `role` names it for the receiver.
    """

    value: Any
    role: str = ""
    compare: Compare | None = None

    @classmethod
    def of(cls, value: Any, role: str = "", compare: Compare | None = None) -> Compared:
        """A value that can be pickled, or the error of pickling."""
        pickle.dumps(value)
        return cls(value, role, compare)

    def __reduce__(self) -> tuple[Any, ...]:
        return Compared, (self.value, self.role)

    @property
    def nbytes(self) -> int:
        """The bytes of the value in a message."""
        return len(pickle.dumps(self.value))

    def _against(self, other: Any) -> int:
        """The comparison with another value; types are in the order of their names."""
        if not isinstance(other, Compared):
            return 1
        if self.compare is not None:
            return self.compare(self.value, other.value)
        mine, its = type(self.value), type(other.value)
        if mine is its:
            return _comparisons[mine](self.value, other.value)
        names = [(x.__module__, x.__qualname__) for x in (mine, its)]
        return -1 if names[0] < names[1] else 1

    def __eq__(self, other: object) -> bool:
        return self._against(other) == 0

    def __lt__(self, other: Any) -> bool:
        return self._against(other) < 0

    __hash__ = None  # type: ignore[assignment]


#: a colour or key in the form in which it is sent and compared
Code: TypeAlias = bytes | Compared


def comparing(dialogue: Dialogue[T], compare: Mapping[str, Compare]) -> Dialogue[T]:
    """The dialogue, with a call's functions bound to the values that it receives."""
    received: Any = None  # what starts a generator
    while True:
        try:
            step = dialogue.send(received)
        except StopIteration as end:
            result: T = end.value
            return result
        received = _bound((yield step), compare)


def _bound(value: Any, compare: Mapping[str, Compare]) -> Any:
    if isinstance(value, Compared) and value.role in compare:
        return Compared(value.value, value.role, compare[value.role])
    if isinstance(value, (tuple, list)):
        return type(value)(_bound(x, compare) for x in value)
    return value
