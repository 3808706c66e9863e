"""How much a dialogue keeps: everything its frames hold while it waits."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType, GeneratorType
from typing import Any

from .dialogue import WORD, Allgather, Dialogue, Exchange, Post, nbytes


def footprint(dialogue: Dialogue[Any], *more: Any) -> int:
    """The bytes of all that a waiting dialogue holds, each thing once.

    The local variables of its generators are looked at, and what its functions have
    closed over; code, classes and Python's own overhead are not counted.
    """
    seen: set[int] = set()
    held = [*_held(dialogue), *more]
    return sum(_size(value, seen) for value in held)


def _held(dialogue: Any) -> Iterator[Any]:
    """The local variables of a generator and of those it waits for."""
    while isinstance(dialogue, GeneratorType):
        if dialogue.gi_frame is not None:
            yield from dialogue.gi_frame.f_locals.values()
        dialogue = dialogue.gi_yieldfrom


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
        return list(_held(value))
    if isinstance(value, FunctionType):
        return [cell.cell_contents for cell in value.__closure__ or ()]
    if callable(value):
        return []
    if hasattr(value, "__dataclass_fields__") and not hasattr(value, "nbytes"):
        return [getattr(value, name) for name in value.__dataclass_fields__]
    return None
