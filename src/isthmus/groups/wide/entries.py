"""What all processes bring to a split, and what they get, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..dialogue import WORD
from ..place import Entry
from .links import NONE, Links
from .network import Array


@dataclass(frozen=True)
class Entries:
    """Colours and keys by their number in the order of all; a colour below 0 is none.

    `codes` are the colours by number; weights are the bytes of each in a message.
    """

    color: Array
    key: Array
    codes: list[bytes]
    keys: list[bytes]
    split: bool
    reorder: bool

    @property
    def color_weight(self) -> Array:
        """The bytes of every process's colour; one that is left out sends a word."""
        sizes = np.array([WORD + len(code) for code in self.codes] + [WORD])
        found: Array = sizes[self.color]
        return found

    @property
    def key_weight(self) -> Array:
        """The bytes of every process's key."""
        sizes = np.array([WORD + len(code) for code in self.keys])
        found: Array = sizes[self.key]
        return found


@dataclass(frozen=True)
class Places:
    """The links of all processes in their groups, and the groups' numbers if known."""

    links: Links
    id: Array | None = None


def entries(items: Sequence[Entry]) -> Entries:
    """The entries of all processes; all say the same of `split` and `reorder`."""
    codes, color = _numbers([item.color for item in items])
    keys, key = _numbers([item.key for item in items])
    return Entries(color, key, codes, keys, items[0].split, items[0].reorder)


def _numbers(values: Sequence[object]) -> tuple[list[bytes], Array]:
    """The different values in order, and the number of each; None is none."""
    distinct = set(values) - {None}
    if not all(isinstance(value, bytes) for value in distinct):
        raise TypeError("only values with an encoding can be put into arrays")
    codes: list[bytes] = sorted(distinct)  # type: ignore[arg-type]
    number: dict[object, int] = {code: i for i, code in enumerate(codes)}
    number[None] = NONE
    return codes, np.fromiter((number[value] for value in values), int, len(values))
