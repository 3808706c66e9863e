"""Scans on a chain, by pointer doubling: ⌈log n⌉ rounds, a constant amount of memory.

In round i every process exchanges what it has with the processes 2^i to either side,
and tells each who is on its other side. Values are combined in the order of the chain
only, so an operator need be associative but not commutative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from .chain import Link
from .dialogue import Dialogue, swap

#: op(x, y), where x is from the left of y
Op: TypeAlias = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Scan:
    """The values of all up to me, before me, from me on and after me, each combined.

    `before` is None at the left end of the chain and `after` at the right end.
    """

    upto: Any
    before: Any
    onward: Any
    after: Any


def double_scan(
    link: Link, a: Any, b: Any, op: Op, back: Op | None = None
) -> Dialogue[Scan]:
    """Scan the values a from left to right, and b from right to left."""
    back = back or op
    left, right = link.left, link.right
    upto, before, onward, after = a, None, b, None
    first = True
    while left is not None or right is not None:
        from_left, from_right = yield from swap(
            left, (onward, right), right, (upto, left)
        )
        if left is not None:
            value, left = from_left
            before = value if first else op(value, before)
            upto = op(before, a)
        if right is not None:
            value, right = from_right
            after = value if first else back(after, value)
            onward = back(b, after)
        first = False
    return Scan(upto, before, onward, after)


def _nothing(x: None, y: None) -> None:
    return None


def scan(link: Link, value: Any, op: Op) -> Dialogue[Any]:
    """The values of all up to me."""
    done = yield from double_scan(link, value, None, op, _nothing)
    return done.upto


def exscan(link: Link, value: Any, op: Op) -> Dialogue[Any]:
    """The values of all before me; None at the left end."""
    done = yield from double_scan(link, value, None, op, _nothing)
    return done.before


def total(link: Link, value: Any, op: Op) -> Dialogue[Any]:
    """The values of all.

    Every process groups them in its own way: with an operator that rounds, two may
    differ in the last digit. `trees.allreduce` gives all of them the same.
    """
    done = yield from double_scan(link, value, value, op)
    if link.left is not None:
        value = op(done.before, value)
    return value if link.right is None else op(value, done.after)


def _join(x: tuple[Any, ...], y: tuple[Any, ...]) -> tuple[Any, ...]:
    return x + y


def allgather(link: Link, value: Any) -> Dialogue[tuple[Any, ...]]:
    """The values of all, one by one."""
    values: tuple[Any, ...] = yield from total(link, (value,), _join)
    return values


def barrier(link: Link) -> Dialogue[None]:
    """Wait until all have come."""
    yield from double_scan(link, None, None, _nothing)


def ladder(link: Link) -> Dialogue[tuple[list[int | None], list[int | None]]]:
    """The processes 1, 2, 4, … to the left, and to the right."""
    left, right = link.left, link.right
    lefts, rights = [left], [right]
    while left is not None or right is not None:
        nearer, farther = yield from swap(left, right, right, left)
        left, right = nearer, farther
        lefts.append(left)
        rights.append(right)
    return lefts, rights
