"""A dialogue: communication of one rank whose next step depends on what it received.

A generator yields steps, is sent what it received, and returns its result. The virtual
machine (`vm`) and MPI run the same dialogues.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

T = TypeVar("T")
#: an int, or an array with a lane for each process (`lanes`); None is -1 there
Index: TypeAlias = Any

#: bytes of a number, of an address, or of the length of a byte string
WORD = 8
_LONG = 1 << 63


@dataclass(frozen=True, slots=True)
class Exchange:
    """Messages in flight at once: (to, value) to send, and ranks to receive from.

    Two ranks have at most one message each way in a step. Values are never changed
    after they are sent or received.
    """

    sends: tuple[tuple[Index, Any], ...] = ()
    recvs: tuple[Index, ...] = ()


@dataclass(frozen=True, slots=True)
class Post:
    """Send values to ranks that do not know the source, and receive `expect` of them.

    They arrive in any order, as with MPI_ANY_SOURCE. No rank may send a value for a
    later `Post` of another before that one has begun it.
    """

    sends: tuple[tuple[Index, Any], ...]
    expect: Index


@dataclass(frozen=True, slots=True)
class Allgather:
    """The MPI library's own allgather, over all ranks there are."""

    value: Any


Step: TypeAlias = Exchange | Post | Allgather
Dialogue: TypeAlias = Generator[Step, list[Any], T]


def swap(
    left: Index, to_left: Any, right: Index, to_right: Any
) -> Dialogue[tuple[Any, Any]]:
    """Exchange a value with the process on either side, where there is one."""
    if isinstance(left, np.ndarray):
        sends = ((left, to_left), (right, to_right))
        from_left, from_right = yield Exchange(sends, (left, right))
        return from_left, from_right
    if left is None:
        if right is None:
            return None, None
        (received,) = yield Exchange(((right, to_right),), (right,))
        return None, received
    if right is None:
        (received,) = yield Exchange(((left, to_left),), (left,))
        return received, None
    from_left, from_right = yield Exchange(
        ((left, to_left), (right, to_right)), (left, right)
    )
    return from_left, from_right


def shift(left: Index, right: Index, value: Any) -> Dialogue[Any]:
    """Send a value to the right, and give the one from the left, if there is one."""
    if isinstance(left, np.ndarray):
        (received,) = yield Exchange(((right, value),), (left,))
        return received
    if left is None and right is None:
        return None
    sends = () if right is None else ((right, value),)
    found = yield Exchange(sends, () if left is None else (left,))
    return found[0] if found else None


def nbytes(value: Any) -> int:
    """The bytes of a message or of kept state, packed as a C program would."""
    kind = type(value)
    if kind is tuple or kind is list:
        total = 0
        for x in value:  # most messages are flat, and calls take time
            is_word = x is None or (type(x) is int and -_LONG < x < _LONG)
            total += WORD if is_word else nbytes(x)
        return total
    if kind is bytes:
        return WORD + len(value)
    if kind is int:
        return WORD * max(1, -(-int(value).bit_length() // 63))
    if value is None or kind is bool or kind is float:
        return WORD
    if kind is str:
        return WORD + len(value.encode("utf-8", "surrogatepass"))
    if kind is dict:
        return sum([nbytes(k) + nbytes(v) for k, v in value.items()])
    known = getattr(value, "nbytes", None)
    return len(pickle.dumps(value)) if known is None else known
