"""Scans on a chain, by pointer doubling: ⌈log n⌉ rounds, a constant amount of memory.

In round i every process swaps values with the processes 2^i to either side, and tells
each of the two the address of the other. Values are combined in the order of the chain
only, so an operator need be associative but not commutative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .batch import Shared, any_process, exists, size_of, where
from .chain import ChainLink
from .dialogue import Dialogue, swap

#: op(x, y), where x is from the left of y
Op: TypeAlias = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Scan:
    """The values up to this process, before it, from it on and after it, combined.

    `upto` and `onward` contain the process's own value. `before` is None at the left
    end of the chain and `after` at the right end.
    """

    upto: Any
    before: Any
    onward: Any
    after: Any


def double_scan(
    link: ChainLink,
    rightward_value: Any,
    leftward_value: Any,
    op: Op,
    backward_op: Op | None = None,
) -> Dialogue[Scan]:
    """Scan one value from left to right, and another from right to left.

    `backward_op` combines the values from right to left; without it `op` does both.
    """
    turned_op = _turned(backward_op or op)
    left, right = link.left, link.right
    upto, before, onward, after = rightward_value, None, leftward_value, None
    first = True
    while any_process(exists(left) | exists(right)):
        from_left, from_right = yield from swap(
            left, (onward, right), right, (upto, left)
        )
        before, upto, left = where(
            exists(left),
            _further,
            (op, first, from_left, before, rightward_value),
            (before, upto, left),
        )
        after, onward, right = where(
            exists(right),
            _further,
            (turned_op, first, from_right, after, leftward_value),
            (after, onward, right),
        )
        first = False
    return Scan(upto, before, onward, after)


def _turned(op: Op) -> Op:
    return lambda x, y: op(y, x)


def _further(
    op: Op, first: bool, received: tuple[Any, int | None], beyond: Any, own_value: Any
) -> tuple[Any, Any, int | None]:
    """The values of one side, without and with the own value; the next partner."""
    value, further = received
    beyond = value if first else op(value, beyond)
    return beyond, op(beyond, own_value), further


def _nothing(x: None, y: None) -> None:
    return None


def scan(link: ChainLink, value: Any, op: Op) -> Dialogue[Any]:
    """The combined values of all processes up to and with this process."""
    sums = yield from double_scan(link, value, None, op, _nothing)
    return sums.upto


def exscan(link: ChainLink, value: Any, op: Op) -> Dialogue[Any]:
    """The combined values of all processes before this one; None at the left end."""
    sums = yield from double_scan(link, value, None, op, _nothing)
    return sums.before


def total(link: ChainLink, value: Any, op: Op) -> Dialogue[Any]:
    """The combined values of all processes of the chain.

    Every process groups the values in its own way, so that with an operator that
    rounds, results may differ in the last digit. `trees.allreduce` has equal results.
    """
    sums = yield from double_scan(link, value, value, op)
    upto = where(exists(link.left), op, (sums.before, value), value)
    return where(exists(link.right), op, (upto, sums.after), upto)


@dataclass(frozen=True, eq=False)
class Gathered:
    """In a batch, the values of a stretch of a chain: its first process and its bytes.

    The values themselves exist once for all processes, since n copies of n values would
    fill the memory.
    """

    first: Any
    nbytes: Any
    values: Shared

    def __add__(self, other: Gathered) -> Gathered:
        return Gathered(self.first, self.nbytes + other.nbytes, self.values)


def _join(x: Any, y: Any) -> Any:
    return x + y


def allgather(link: ChainLink, value: Any) -> Dialogue[Any]:
    """The values of all processes in a tuple; in a batch, as `Gathered`."""
    contribution: Any = (value,)
    if isinstance(link.address, np.ndarray):
        sizes = np.broadcast_to(size_of(value), link.address.shape)
        contribution = Gathered(link.address, sizes, Shared(value))
    return (yield from total(link, contribution, _join))


def barrier(link: ChainLink) -> Dialogue[None]:
    """Return when all processes of the chain have called."""
    yield from double_scan(link, None, None, _nothing)


def logchain(link: ChainLink) -> Dialogue[tuple[list[int | None], list[int | None]]]:
    """The addresses of the processes 1, 2, 4, … places to the left and to the right."""
    left, right = link.left, link.right
    lefts, rights = [left], [right]
    while any_process(exists(left) | exists(right)):
        nearer, farther = yield from swap(left, right, right, left)
        left = where(exists(left), _same, (nearer,), None)
        right = where(exists(right), _same, (farther,), None)
        lefts.append(left)
        rights.append(right)
    return lefts, rights


def at_distance(side: list[int | None], d: Any) -> Any:
    """The address of the process 2^d places away, on one side of a logchain."""
    if not isinstance(d, np.ndarray):
        return side[d]
    lowest = d.min()
    if lowest == d.max():
        return side[lowest]
    return np.stack(side)[d, np.arange(len(d))]  # type: ignore[arg-type]


def _same(x: Any) -> Any:
    return x
