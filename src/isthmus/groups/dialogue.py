"""A dialogue: communication of one rank whose next step depends on received values.

A generator yields steps, is sent the received values, and returns its result. The
virtual machine (`vm`) and MPI run the same dialogues.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

T = TypeVar("T")
#: an int, or an array with an element for each process (`batch`), in which None is -1
Index: TypeAlias = Any

#: bytes of a number, of an address, or of the length of a byte string in a message
WORD_BYTES = 8
_WORD_VALUES = 1 << 63


@dataclass(frozen=True, slots=True)
class ExchangeStep:
    """Messages in flight at once: (target, value) to send, and ranks to receive from.

    Two ranks have at most one message each way in a step. A value is never changed
    after a send or receive, since the virtual machine hands over the object itself.
    """

    sends: tuple[tuple[Index, Any], ...] = ()
    recvs: tuple[Index, ...] = ()


@dataclass(frozen=True, slots=True)
class PostStep:
    """Send values to ranks that do not know the source, and receive `expect` values.

    Values arrive in any order, as with MPI_ANY_SOURCE. No rank may send a value for a
    later `PostStep` of another rank before that rank has begun the step, since the
    receiver could take the value for part of an earlier step.
    """

    sends: tuple[tuple[Index, Any], ...]
    expect: Index


@dataclass(frozen=True, slots=True)
class AllgatherStep:
    """The MPI library's own allgather over all ranks of the communicator."""

    value: Any


Step: TypeAlias = ExchangeStep | PostStep | AllgatherStep
Dialogue: TypeAlias = Generator[Step, list[Any], T]


def swap(
    left: Index, to_left: Any, right: Index, to_right: Any
) -> Dialogue[tuple[Any, Any]]:
    """Exchange a value with the process on either side, where it exists."""
    if isinstance(left, np.ndarray):
        sends = ((left, to_left), (right, to_right))
        from_left, from_right = yield ExchangeStep(sends, (left, right))
        return from_left, from_right
    if left is None:
        if right is None:
            return None, None
        (received,) = yield ExchangeStep(((right, to_right),), (right,))
        return None, received
    if right is None:
        (received,) = yield ExchangeStep(((left, to_left),), (left,))
        return received, None
    from_left, from_right = yield ExchangeStep(
        ((left, to_left), (right, to_right)), (left, right)
    )
    return from_left, from_right


def shift(left: Index, right: Index, value: Any) -> Dialogue[Any]:
    """Send a value to the right neighbour and return the left neighbour's, if any."""
    if isinstance(left, np.ndarray):
        (received,) = yield ExchangeStep(((right, value),), (left,))
        return received
    if left is None and right is None:
        return None
    sends = () if right is None else ((right, value),)
    received_values = yield ExchangeStep(sends, () if left is None else (left,))
    return received_values[0] if received_values else None


def nbytes(value: Any) -> int:
    """The bytes of a message or of a rank's state, packed as a C program would."""
    type_of_value = type(value)
    if type_of_value is tuple or type_of_value is list:
        total = 0
        for element in value:  # most messages are flat, and calls take time
            is_word = element is None or (
                type(element) is int and -_WORD_VALUES < element < _WORD_VALUES
            )
            total += WORD_BYTES if is_word else nbytes(element)
        return total
    if type_of_value is bytes:
        return WORD_BYTES + len(value)
    if type_of_value is int:
        return WORD_BYTES * max(1, -(-int(value).bit_length() // 63))
    if value is None or type_of_value is bool or type_of_value is float:
        return WORD_BYTES
    if type_of_value is str:
        return WORD_BYTES + len(value.encode("utf-8", "surrogatepass"))
    if type_of_value is dict:
        return sum([nbytes(k) + nbytes(v) for k, v in value.items()])
    array_bytes = getattr(value, "nbytes", None)
    return len(pickle.dumps(value)) if array_bytes is None else array_bytes
