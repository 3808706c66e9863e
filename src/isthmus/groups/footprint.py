"""The memory of a waiting dialogue: all objects reachable from its frames."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import CellType, CodeType, FrameType, FunctionType, GeneratorType
from typing import Any

from .dialogue import (
    WORD_BYTES,
    AllgatherStep,
    Dialogue,
    ExchangeStep,
    PostStep,
    nbytes,
)


def footprint(dialogue: Dialogue[Any], *others: Any) -> int:
    """The bytes of all objects that a waiting dialogue and others hold, each once.

    Objects are the variables of the dialogue's generators, the iterators of their loops
    and the closures of their functions; code and Python's own overhead are not counted.
    """
    seen: set[int] = set()
    return sum(_size(value, seen) for value in (dialogue, *others))


def _held(frame: FrameType | None, holder: Any) -> list[Any]:
    """The referents of a generator, also in the middle of an expression or a loop.

    The garbage collector is asked because `frame.f_locals` lacks the iterator of a
    running loop and the operands of an unfinished expression.
    """
    if frame is None:
        return []
    excluded = {id(x) for x in (frame, frame.f_globals, frame.f_builtins, frame.f_code)}
    return [x for x in gc.get_referents(holder) if id(x) not in excluded]


def _size(value: Any, seen: set[int]) -> int:
    if value is None or type(value) in (int, bool, float):
        return nbytes(value)
    if id(value) in seen:
        return WORD_BYTES
    seen.add(id(value))
    parts = _parts(value)
    if parts is None:
        return nbytes(value)
    return sum(_size(part, seen) for part in parts)


def _parts(value: Any) -> list[Any] | None:
    """The parts of a compound value; None if the value is a single piece."""
    if isinstance(value, (tuple, list, set, frozenset)):
        return list(value)
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, (ExchangeStep, PostStep)):
        return list(value.sends)
    if isinstance(value, AllgatherStep):
        return [value.value]
    if isinstance(value, GeneratorType):
        frame = value.gi_frame
        # before Python 3.11 the frame, later the generator refers to the variables
        return [*_held(frame, value), *_held(frame, frame)]
    if isinstance(value, (Iterator, CellType)):
        return gc.get_referents(value)
    if isinstance(value, FunctionType):
        return list(value.__closure__ or ())
    if callable(value) or isinstance(value, CodeType):
        return []
    if hasattr(value, "__dataclass_fields__") and not hasattr(value, "nbytes"):
        return [getattr(value, name) for name in value.__dataclass_fields__]
    return None
