"""How much a dialogue keeps: everything its frames hold while it waits."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import CellType, CodeType, FrameType, FunctionType, GeneratorType
from typing import Any

from .dialogue import WORD, Allgather, Dialogue, Exchange, Post, nbytes


def footprint(dialogue: Dialogue[Any], *more: Any) -> int:
    """The bytes of all that a waiting dialogue holds, each thing once.

    These are the variables of its generators, what their loops go over, and what its
    functions have closed over; code and Python's own overhead are not counted.
    """
    seen: set[int] = set()
    return sum(_size(value, seen) for value in (dialogue, *more))


def _held(frame: FrameType | None, holder: Any) -> list[Any]:
    """What a generator refers to, also in the middle of an expression or a loop."""
    if frame is None:
        return []
    code = {id(x) for x in (frame, frame.f_globals, frame.f_builtins, frame.f_code)}
    return [x for x in gc.get_referents(holder) if id(x) not in code]


def _size(value: Any, seen: set[int]) -> int:
    if value is None or type(value) in (int, bool, float):
        return nbytes(value)
    if id(value) in seen:
        return WORD
    seen.add(id(value))
    parts = _parts(value)
    if parts is None:
        return nbytes(value)
    return sum(_size(part, seen) for part in parts)


def _parts(value: Any) -> list[Any] | None:
    """What a thing is made of; None if it is one piece."""
    if isinstance(value, (tuple, list, set, frozenset)):
        return list(value)
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, (Exchange, Post)):
        return list(value.sends)
    if isinstance(value, Allgather):
        return [value.value]
    if isinstance(value, GeneratorType):
        frame = value.gi_frame
        # before Python 3.11 the frame holds what later the generator does
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
