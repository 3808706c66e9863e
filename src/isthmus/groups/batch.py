"""Batches: a dialogue of one process, or of all processes at once.

A process's knowledge is a plain value, or an array with an element for each process, in
which None is -1. A dialogue that chooses by the functions of this file, and not by
`if`, runs both ways: with plain values under MPI and in `vm`, with arrays in
`vm_batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from .dialogue import WORD_BYTES, nbytes

#: the share of processes from which `where` computes all
SHARE_TO_COMPUTE_ALL = 0.75


class Shared:
    """Data of all processes together, inside a batch."""

    __slots__ = ("sizes", "values")

    def __init__(self, values: Any, sizes: Any = None) -> None:
        self.values, self.sizes = values, sizes


def any_process(mask: Any) -> bool:
    """Whether a condition holds for any process."""
    return bool(mask.any()) if isinstance(mask, np.ndarray) else bool(mask)


def exists(x: Any) -> Any:
    """Whether a process, a rank or a bin exists: None does not."""
    return x >= 0 if isinstance(x, np.ndarray) else x is not None


def largest(x: Any) -> int:
    """The largest value of any process."""
    return int(x.max()) if isinstance(x, np.ndarray) else int(x)


def bit_length(x: Any) -> Any:
    """`int.bit_length` of every process's value, of less than 63 bits."""
    if not isinstance(x, np.ndarray):
        return x.bit_length()
    high = x >> 32
    bits = np.where(high > 0, 32 + np.frexp(high)[1], np.frexp(x & 0xFFFFFFFF)[1])
    return bits.astype(np.int64)


def _map(f: Callable[..., Any], *values: Any) -> Any:
    """f of the parts of tuples and dataclasses of one form; None has any form."""
    example = next((x for x in values if x is not None), None)
    if isinstance(example, tuple):
        absent = (None,) * len(example)
        rows = zip(*(absent if x is None else x for x in values), strict=True)
        return tuple([_map(f, *row) for row in rows])
    if is_dataclass(example):
        names = example.__dataclass_fields__
        parts = ([getattr(x, name, None) for x in values] for name in names)
        return type(example)(*(_map(f, *part) for part in parts))  # type: ignore
    return f(*values)


def take(value: Any, processes: Any) -> Any:
    """The value of some processes: their numbers, or a slice."""

    def taken(x: Any) -> Any:
        # `take` is 2 to 5 times as fast as an index where a process has a row
        if isinstance(x, np.ndarray) and isinstance(processes, np.ndarray):
            return x.take(processes, 0)
        return x[processes] if isinstance(x, np.ndarray | Received) else x

    return _map(taken, value)


class Received:
    """Values sent by other processes, still to be taken from those of their senders.

    `where` takes the values of the chosen processes only, to save time.
    """

    __slots__ = ("source", "value")

    def __init__(self, value: Any, source: np.ndarray) -> None:
        self.value, self.source = value, source

    def __getitem__(self, processes: Any) -> Any:
        return take(self.value, self.source[processes])


def pick(mask: Any, yes: Any, no: Any) -> Any:
    """`yes` where the mask holds, `no` elsewhere."""
    if not isinstance(mask, np.ndarray):
        return yes if mask else no

    def choose(x: Any, y: Any) -> Any:
        if (x is y and x is not None) or isinstance(x, Shared):
            return x
        x, y = (-1 if z is None else z for z in (x, y))
        extra_axes = max(np.ndim(x), np.ndim(y)) - 1
        return np.where(mask.reshape(mask.shape + (1,) * extra_axes), x, y)

    return _map(choose, yes, no)


def where(
    mask: Any, f: Callable[..., Any], args: tuple[Any, ...], otherwise: Any
) -> Any:
    """f of the arguments where the mask holds, `otherwise` elsewhere.

    f never gets the arguments of other processes, since None stands there for no value.
    """
    if not isinstance(mask, np.ndarray):
        return f(*args) if mask else otherwise
    n, chosen = len(mask), np.flatnonzero(mask)
    if not len(chosen):
        return otherwise
    if len(chosen) == n:
        return f(*take(args, slice(None)))
    if len(chosen) > SHARE_TO_COMPUTE_ALL * n:
        # unchosen processes get the arguments of a chosen one, which takes less time
        unchosen = np.flatnonzero(~mask)
        results = f(*_map(partial(_filled, unchosen, chosen[0]), args))
        return _map(partial(_restore, mask, unchosen), results, otherwise)

    def put(new: Any, old: Any) -> Any:
        if new is old or isinstance(new, Shared):
            return new
        if isinstance(old, np.ndarray):
            results = old.copy()
        else:
            shape, kind = np.shape(new)[1:], np.asarray(new).dtype
            results = np.full((n, *shape), -1 if old is None else old, kind)
        results[chosen] = new
        return results

    return _map(put, f(*take(args, chosen)), otherwise)


def _filled(unchosen: np.ndarray, donor: int, x: Any) -> Any:
    """A copy in which unchosen processes have the value of a chosen one."""
    if isinstance(x, Received):
        return take(x.value, _filled(unchosen, donor, x.source))
    if isinstance(x, np.ndarray):
        x = x.copy()
        x[unchosen] = x[donor]
    return x


def _restore(
    mask: np.ndarray, unchosen: np.ndarray, results: Any, otherwise: Any
) -> Any:
    """Results where the mask holds, other values of the few unchosen processes."""
    if results is otherwise or isinstance(results, Shared):
        return results
    dtype = otherwise.dtype if isinstance(otherwise, np.ndarray) else np.dtype(np.int64)
    if not isinstance(results, np.ndarray) or dtype.kind != results.dtype.kind:
        return pick(mask, results, otherwise)
    # an array with data of its own was made by f, and may be changed
    merged = results if results.flags.owndata else results.copy()
    otherwise = -1 if otherwise is None else otherwise
    is_array = isinstance(otherwise, np.ndarray)
    merged[unchosen] = otherwise[unchosen] if is_array else otherwise
    return merged


def same(x: Any, y: Any) -> Any:
    """Whether two values, or tuples of values, are equal."""
    if not isinstance(x, tuple):
        return x == y
    equal: Any = True
    for a, b in zip(x, y, strict=True):
        equal = equal & same(a, b)
    return equal


def size_of(value: Any) -> Any:
    """The bytes of every process's value, as `nbytes` counts them."""
    if isinstance(value, tuple):
        return sum(map(size_of, value))
    return WORD_BYTES if isinstance(value, np.ndarray) else nbytes(value)


@dataclass(frozen=True, eq=False)
class Ordered:
    """A batch of bytes, or of rows of values, as numbers in their common order."""

    number: Any
    table: Shared

    @property
    def nbytes(self) -> Any:
        """The bytes of every process."""
        return self.table.sizes[self.number]

    def __eq__(self, other: object) -> Any:
        return self.number == other.number if isinstance(other, Ordered) else False

    def __lt__(self, other: Ordered) -> Any:
        return self.number < other.number

    __hash__ = None  # type: ignore[assignment]


def _numbers(value: Any) -> Iterator[Any]:
    """The arrays by which a value is sorted, the most significant first."""
    if isinstance(value, tuple):
        for x in value:
            yield from _numbers(x)
    elif isinstance(value, Ordered):
        yield value.number
    elif isinstance(value, np.ndarray):
        yield value


def row(*values: Any) -> Any:
    """Values to be sent and compared together: a tuple, or a batch of rows."""
    keys = list(_numbers(values))
    if not keys:
        return values
    order = np.lexsort(keys[::-1])
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    sizes = np.broadcast_to(size_of(values), order.shape)[order]
    return Ordered(number, Shared(take(values, order), sizes))


def unpack(item: Any) -> tuple[Any, ...]:
    """The values of a row."""
    if not isinstance(item, Ordered):
        return item  # type: ignore[no-any-return]
    values: tuple[Any, ...] = take(item.table.values, item.number)
    return values


def numbered(values: Sequence[Any]) -> tuple[np.ndarray, list[Any]]:
    """Each value's number in sorted order, -1 for None; and the distinct values."""
    try:
        distinct = sorted(set(values) - {None})
        number: dict[Any, int] = {value: i for i, value in enumerate(distinct)}
        number[None] = -1
        return np.array([number[value] for value in values]), distinct
    except TypeError:  # values that can be compared only
        present = [i for i, value in enumerate(values) if value is not None]
        present.sort(key=lambda i: values[i])
        runs = [list(run) for _, run in groupby(present, lambda i: values[i])]
        number_of_process = np.full(len(values), -1)
        for i, run in enumerate(runs):
            number_of_process[run] = i
        return number_of_process, [values[run[0]] for run in runs]


def codes(values: Sequence[bytes | None]) -> Ordered:
    """A batch of encoded values or None, one for each process."""
    if not all(value is None or isinstance(value, bytes) for value in values):
        raise TypeError("only values with an encoding can be put into a batch")
    number, distinct = numbered(values)
    sizes = np.array([*map(nbytes, distinct), WORD_BYTES])
    return Ordered(number, Shared(distinct, sizes))


def each(f: Callable[[Any], Any], code: Any) -> Any:
    """f of a code or of None; in a batch, called once for each distinct code."""
    if not isinstance(code, Ordered):
        return f(code)
    results = [f(x) for x in (*code.table.values, None)]
    return np.array(results)[code.number]


def each_byte(f: Callable[[Sequence[Any]], Any], code: Any) -> Any:
    """f of the bytes of a code; all of equal length in one call."""
    if not isinstance(code, Ordered):
        return f(code) if isinstance(code, bytes) else None
    distinct = code.table.values
    lengths = np.fromiter(map(len, distinct), np.int64, len(distinct))
    results = np.full(len(distinct) + 1, -1)
    for length in np.unique(lengths).tolist():
        of_this_length = np.flatnonzero(lengths == length)
        joined = b"".join([distinct[i] for i in of_this_length.tolist()])
        columns = np.frombuffer(joined, np.uint8).reshape(len(of_this_length), length).T
        results[of_this_length] = f([*columns.astype(np.int64)])
    return results[code.number]


class ProcessRow(int):
    """The row of a single process, in place of an element of `Ordered`."""

    nbytes: int

    def __new__(cls, number: int, nbytes: int) -> ProcessRow:
        row = super().__new__(cls, number)
        row.nbytes = nbytes
        return row


@dataclass(frozen=True, slots=True)
class PerProcess:
    """A step of a batch: every process with a link runs a dialogue of its own."""

    dialogue: Callable[[Any, Any], Any]
    link: Any
    item: Ordered


def per_process(dialogue: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A dialogue of a link and a row that returns a row, callable in a batch."""

    def call(link: Any, item: Any) -> Any:
        if not isinstance(item, Ordered):
            return (yield from dialogue(link, item))
        (number,) = yield PerProcess(dialogue, link, item)
        return Ordered(number, item.table)

    return call
