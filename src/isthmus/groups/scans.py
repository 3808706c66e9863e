"""Scans on a chain, by pointer doubling: ⌈log n⌉ rounds, a constant amount of memory.

In round i every process exchanges what it has with the processes 2^i to either side,
and tells each who is on its other side. Values are combined in the order of the chain
only, so an operator need be associative but not commutative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .chain import Link
from .dialogue import Dialogue, swap
from .lanes import Shared, any_lane, exists, size_of, where

#: op(x, y), where x is from the left of y
Op: TypeAlias = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Scan:
    """The values up to this process, before it, from it on and after it, combined.

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
    turned = _turned(back or op)
    left, right = link.left, link.right
    upto, before, onward, after = a, None, b, None
    first = True
    while any_lane(exists(left) | exists(right)):
        from_left, from_right = yield from swap(
            left, (onward, right), right, (upto, left)
        )
        before, upto, left = where(
            exists(left),
            _further,
            (op, first, from_left, before, a),
            (before, upto, left),
        )
        after, onward, right = where(
            exists(right),
            _further,
            (turned, first, from_right, after, b),
            (after, onward, right),
        )
        first = False
    return Scan(upto, before, onward, after)


def _turned(op: Op) -> Op:
    return lambda x, y: op(y, x)


def _further(
    op: Op, first: bool, received: tuple[Any, int | None], near: Any, own: Any
) -> tuple[Any, Any, int | None]:
    """What is on one side, without and with the own value; and who comes next there."""
    value, further = received
    near = value if first else op(value, near)
    return near, op(near, own), further


def _nothing(x: None, y: None) -> None:
    return None


def scan(link: Link, value: Any, op: Op) -> Dialogue[Any]:
    """The combined values of all processes up to this one."""
    done = yield from double_scan(link, value, None, op, _nothing)
    return done.upto


def exscan(link: Link, value: Any, op: Op) -> Dialogue[Any]:
    """The combined values of all before this process; None at the left end."""
    done = yield from double_scan(link, value, None, op, _nothing)
    return done.before


def total(link: Link, value: Any, op: Op) -> Dialogue[Any]:
    """The combined values of all.

    Every process groups them in its own way: with an operator that rounds, two may
    differ in the last digit. `trees.allreduce` gives all of them the same.
    """
    done = yield from double_scan(link, value, value, op)
    upto = where(exists(link.left), op, (done.before, value), value)
    return where(exists(link.right), op, (upto, done.after), upto)


@dataclass(frozen=True, eq=False)
class Gathered:
    """In lanes, the values of a stretch of a chain: where it begins, and its bytes.

    The values themselves exist once, for all lanes.
    """

    first: Any
    nbytes: Any
    values: Shared

    def __add__(self, other: Gathered) -> Gathered:
        return Gathered(self.first, self.nbytes + other.nbytes, self.values)


def _join(x: Any, y: Any) -> Any:
    return x + y


def allgather(link: Link, value: Any) -> Dialogue[Any]:
    """The values of all in a tuple; in lanes, as `Gathered`."""
    mine: Any = (value,)
    if isinstance(link.address, np.ndarray):
        sizes = np.broadcast_to(size_of(value), link.address.shape)
        mine = Gathered(link.address, sizes, Shared(value))
    return (yield from total(link, mine, _join))


def barrier(link: Link) -> Dialogue[None]:
    """Return when all processes have called."""
    yield from double_scan(link, None, None, _nothing)


def logchain(link: Link) -> Dialogue[tuple[list[int | None], list[int | None]]]:
    """The processes 1, 2, 4, … to the left, and to the right."""
    left, right = link.left, link.right
    lefts, rights = [left], [right]
    while any_lane(exists(left) | exists(right)):
        nearer, farther = yield from swap(left, right, right, left)
        left = where(exists(left), _same, (nearer,), None)
        right = where(exists(right), _same, (farther,), None)
        lefts.append(left)
        rights.append(right)
    return lefts, rights


def at_distance(side: list[int | None], d: Any) -> Any:
    """The process 2^d away, on one side of a logchain."""
    if not isinstance(d, np.ndarray):
        return side[d]
    lowest = d.min()
    if lowest == d.max():
        return side[lowest]
    return np.stack(side)[d, np.arange(len(d))]  # type: ignore[arg-type]


def _same(x: Any) -> Any:
    return x
