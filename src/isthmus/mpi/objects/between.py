"""Python objects between groups: first how long they are, then their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...choose.recipe_between import RootedGroup
from ..context.context_inter import InterContext
from ..engine import engine
from ..memory.buffers import Message
from ..operations import tasks_exchange, tasks_rooted
from ..operations.call import checked_value
from .objects import decode, encode, message


def _lengths(n: int) -> np.ndarray:
    return np.empty(n, np.int64)


def _length(data: Message) -> int:
    return sum(data.nbytes)


def _no_part(c: InterContext) -> None:
    """Count the two calls in which this rank has no part."""
    c.memory.skip()
    c.memory.skip()


def bcast(c: InterContext, obj: Any, root: int) -> Any:
    """The root's object, in the other group."""

    def parse() -> tuple[RootedGroup | None, Message]:
        at = tasks_rooted.rooted_group(c, root)
        return at, message(encode(obj) if at and at.v == 0 else [])

    at, data = checked_value(c, "bcast", "auto", parse)
    if at is None:
        _no_part(c)
        return None
    if at.v == 0:
        with c.uninterrupted("bcast"):
            engine.once(tasks_rooted.bcast(c, "auto", np.array([_length(data)]), root))
            engine.once(tasks_rooted.broadcast(c, "auto", at, data))
        return None
    with c.uninterrupted("bcast"):
        engine.once(tasks_rooted.bcast(c, "auto", length := _lengths(1), root))
        arrived = np.empty(length[0], np.uint8)
        engine.once(tasks_rooted.bcast(c, "auto", arrived, root))
    return decode(arrived)


def gather(c: InterContext, obj: Any, root: int) -> list[Any] | None:
    """The objects of the other group, at the root."""

    def parse() -> tuple[RootedGroup | None, Message]:
        at = tasks_rooted.rooted_group(c, root)
        return at, message(encode(obj) if at and at.v else [])

    at, data = checked_value(c, "gather", "auto", parse)
    if at is None:
        _no_part(c)
        return None
    if at.v:
        own = _length(data)
        with c.uninterrupted("gather"):
            engine.once(tasks_rooted.gather(c, "auto", np.array([own]), None, root))
            engine.once(
                tasks_rooted.blocks(c, "auto", "inter_gatherv", at, (data,), (own,))
            )
        return None
    with c.uninterrupted("gather"):
        engine.once(
            tasks_rooted.gather(c, "auto", None, lengths := _lengths(at.q), root)
        )
        arrived = [np.empty(n, np.uint8) for n in lengths.tolist()]
        into, sizes = (message(arrived),), tuple(lengths.tolist())
        engine.once(tasks_rooted.blocks(c, "auto", "inter_gatherv", at, into, sizes))
    return [decode(x) for x in arrived]


def scatter(c: InterContext, objs: Sequence[Any] | None, root: int) -> Any:
    """One of the root's objects for each of the other group."""

    def parse() -> tuple[RootedGroup | None, tuple[Message, ...]]:
        at = tasks_rooted.rooted_group(c, root)
        return at, _each(objs, at.q) if at and at.v == 0 else ()

    at, data = checked_value(c, "scatter", "auto", parse)
    if at is None:
        _no_part(c)
        return None
    if at.v == 0:
        sizes = tuple(map(_length, data))
        with c.uninterrupted("scatter"):
            engine.once(tasks_rooted.scatter(c, "auto", np.array(sizes), None, root))
            engine.once(
                tasks_rooted.blocks(c, "auto", "inter_scatterv", at, data, sizes)
            )
        return None
    with c.uninterrupted("scatter"):
        engine.once(tasks_rooted.scatter(c, "auto", None, length := _lengths(1), root))
        arrived = np.empty(length[0], np.uint8)
        engine.once(tasks_rooted.scatter(c, "auto", None, arrived, root, v="v"))
    return decode(arrived)


def alltoall(c: InterContext, objs: Sequence[Any]) -> list[Any]:
    """One object for each of the other group, and one from each."""
    data = checked_value(c, "alltoall", "auto", lambda: _each(objs, c.there))
    sizes = tuple(map(_length, data))
    lengths = _lengths(c.there)
    with c.uninterrupted("alltoall"):
        engine.once(tasks_exchange.alltoall(c, "auto", np.array(sizes), lengths))
        arrived = [np.empty(n, np.uint8) for n in lengths.tolist()]
        into, expected = (message(arrived),), tuple(lengths.tolist())
        engine.once(tasks_exchange.exchange(c, "auto", data, into, sizes, expected))
    return [decode(x) for x in arrived]


def _each(objs: Sequence[Any] | None, n: int) -> tuple[Message, ...]:
    """As many objects as there are receivers."""
    if objs is None or len(found := list(objs)) != n:
        given = "none" if objs is None else str(len(found))
        raise ValueError(f"expecting {n} objects, one for each receiver, got {given}")
    return tuple(message(encode(x)) for x in found)
