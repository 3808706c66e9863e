"""Colours and keys that only a function of the user can compare."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, TypeAlias

#: compare(x, y) is negative, zero or positive as x comes before, with or after y
Compare: TypeAlias = Callable[[Any, Any], int]

_comparisons: dict[type, Compare] = {}


def register_comparison(kind: type, compare: Compare) -> None:
    """Let values of a type be colours and keys that `compare` puts in order.

    They are pickled, compared and never hashed: only the algorithms that sort can be
    used. Every process registers the same. Subclasses register for themselves.
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
    """A value with a registered comparison; all of them come after encoded values."""

    value: Any

    @classmethod
    def of(cls, value: Any) -> Compared:
        """A value that can be sent, or an error."""
        pickle.dumps(value)
        return cls(value)

    @property
    def nbytes(self) -> int:
        """The bytes it takes in a message."""
        return len(pickle.dumps(self.value))

    def _against(self, other: Any) -> int:
        """Negative, zero or positive; types are in the order of their names."""
        if not isinstance(other, Compared):
            return 1
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


#: what a colour or key becomes
Code: TypeAlias = bytes | Compared
