"""Colours and keys without an encoding, compared by a function of the user."""

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
    """Let values of a type be colours and keys, in the order given by `compare`.

    Values of the type are pickled, compared and never hashed, so only algorithms that
    sort can split by them. Every process must register the same function, and
    subclasses their own.
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
        own_type, other_type = type(self.value), type(other.value)
        if own_type is other_type:
            return _comparisons[own_type](self.value, other.value)
        names = [
            (kind.__module__, kind.__qualname__) for kind in (own_type, other_type)
        ]
        return -1 if names[0] < names[1] else 1

    def __eq__(self, other: object) -> bool:
        return self._against(other) == 0

    def __lt__(self, other: Any) -> bool:
        return self._against(other) < 0

    __hash__ = None  # type: ignore[assignment]


#: a colour or key in the form to be sent and compared
Code: TypeAlias = bytes | Compared


def comparing(dialogue: Dialogue[T], compare: Mapping[str, Compare]) -> Dialogue[T]:
    """The dialogue, with a call's functions bound to all values received."""
    received: Any = None  # None starts a generator
    while True:
        try:
            step = dialogue.send(received)
        except StopIteration as end:
            result: T = end.value
            return result
        received = _bound((yield step), compare)


def _bound(value: Any, compare: Mapping[str, Compare]) -> Any:
    """A value with a call's functions bound to its compared values."""
    if isinstance(value, Compared) and value.role in compare:
        return Compared(value.value, value.role, compare[value.role])
    if isinstance(value, (tuple, list)):
        return type(value)(_bound(x, compare) for x in value)
    return value
