"""Every way to say a buffer, and memory of every kind to say it of.

A saying is drawn once for a series and then said of new memory at every call: what is
kept for a call must not depend on where, and for how long, the memory was there. All
bytes of the memory are looked at afterwards: blocks in their places, the gaps between
them as they were.
"""

from __future__ import annotations

import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from mpi4py import MPI

from .standins import device_array
from .transfers import EQUAL, MIXED, ONE, VECTOR, Side

#: what bytes have that nobody may write
UNTOUCHED = 0xA5
#: kinds of memory; those of the second line need a type, or are bytes
_TYPED_OWNERS = ("array", "slice", "typed memoryview", "array.array")
_RAW_OWNERS = ("bytearray", "memoryview", "bytes")
_ARRAY_CODES = {"u1": "B", "i4": "i", "i8": "l", "f4": "f", "f8": "d"}
_DATATYPES = {
    "u1": (MPI.UNSIGNED_CHAR, MPI.UINT8_T),
    "i4": (MPI.INT, MPI.INT32_T),
    "i8": (MPI.LONG, MPI.INT64_T),
    "f4": (MPI.FLOAT,),
    "f8": (MPI.DOUBLE,),
    "c16": (MPI.C_DOUBLE_COMPLEX,),
}
_CODES = {
    "u1": ("B", "u1"),
    "i4": ("i", "i4"),
    "i8": ("l", "i8"),
    "f4": ("f", "f4"),
    "f8": ("d", "f8"),
    "c16": ("D", "c16"),
}
DTYPES = tuple(_DATATYPES)

Rng = np.random.Generator


@dataclass(frozen=True)
class Saying:
    """How a buffer is said, for all calls of a series."""

    owner: str
    #: "none", "datatype", "code", "pairs" (of elements), "gaps" (every other element)
    typed: str
    #: "bare", "type", "count", "counts", "displacements": what is said after the owner
    layout: str
    #: of the specification, and of counts and displacements
    outer: Callable[[Any], Any]
    numbers: Callable[[Any], Any]
    #: which of several names of the type
    name: int
    #: elements between blocks and before the first; blocks last to first
    gap: int
    is_backwards: bool

    def __str__(self) -> str:
        numbers = getattr(self.numbers, "__name__", "array")
        rest = f", gap {self.gap}" * bool(self.gap) + ", backwards" * self.is_backwards
        outer = self.outer.__name__
        return (
            f"{outer} of {self.owner}, {self.typed}, {self.layout} in {numbers}{rest}"
        )


def _array_of_ints(numbers: Any) -> np.ndarray:
    return np.array(numbers, "i4")


def _array_of_longs(numbers: Any) -> np.ndarray:
    return np.array(numbers, "i8")


def draw(
    rng: Rng, shape: str, *, is_sent: bool, is_combined: bool, on_device: bool
) -> Saying:
    """A saying for blocks of a shape; what is combined has types of MPI's own."""
    owners = [*_TYPED_OWNERS, *_RAW_OWNERS, "bottom"]
    if not is_sent:
        owners.remove("bytes")
    if is_combined:
        owners.remove("bottom")
    owner = str(rng.choice(owners)) if rng.random() < 0.6 else "array"
    if on_device:
        owner = "device"
    types = ["datatype", "code", "none"]
    if not is_combined:
        types += ["pairs", "gaps"]
    typed = str(rng.choice(types))
    layouts = {
        ONE: ["bare", "type", "count", "displacements"],
        EQUAL: ["bare", "type", "count"],
        VECTOR: ["counts", "displacements"],
        MIXED: ["displacements"],
    }[shape]
    outer = (list, tuple)[int(rng.integers(2))]
    numbers = (list, tuple, _array_of_ints, _array_of_longs)[int(rng.integers(4))]
    layout = str(rng.choice(layouts))
    if owner == "bottom" and shape == ONE:  # mpi4py takes no displacement from there
        layout = "count"
    has_places = layout == "displacements" and shape != ONE
    return Saying(
        owner,
        typed,
        layout,
        outer,
        numbers,
        # mpi4py wants one type for what is sent and received, by its name too
        0 if is_combined else int(rng.integers(2)),
        int(rng.integers(3)) if has_places or layout == "displacements" else 0,
        bool(has_places and rng.random() < 0.3),
    )


def numbers_in(argument: Any, rng: Rng) -> Any:
    """A root or counts, in one of the ways to say numbers; anything else as it is."""
    if type(argument) is int:
        return (int, np.int32, np.int64)[int(rng.integers(3))](argument)
    if type(argument) is list:
        ways = list, tuple, _array_of_ints, _array_of_longs
        return ways[int(rng.integers(4))](argument)
    return argument


def plain(shape: str) -> Saying:
    """Arrays, with counts where there must be some."""
    layout = {MIXED: "displacements", VECTOR: "counts"}.get(shape, "bare")
    return Saying("array", "none", layout, list, list, 0, 0, False)


@dataclass
class Buffer:
    """Memory of one call, and the specification that says it."""

    saying: Saying
    side: Side
    dtype: np.dtype[Any]
    is_sent: bool
    spec: Any = None
    types: list[MPI.Datatype] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Lay the blocks out, fill the memory and say it."""
        side = self.side
        if side.open_elements:  # all of the memory is the buffer
            self.saying = replace(self.saying, gap=0)
        saying = self.saying
        self._counts = [len(x) for x in side.blocks]
        is_even = all(n % 2 == 0 for n in self._counts) and not side.open_elements
        typed = saying.typed
        if typed == "pairs" and (not is_even or saying.gap % 2):
            typed = "datatype"
        raw = saying.owner in (*_RAW_OWNERS, "bottom")
        if typed == "none" and (raw or side.shape == MIXED):
            typed = "datatype"
        self._typed = typed
        self._step = 2 if typed == "gaps" else 1
        self._places = self._starts()
        ends = [at + n for at, n in zip(self._places, self._counts, strict=True)]
        self._elements = max([*ends, 0]) + side.open_elements
        self._owner: Any = None
        self.refill()
        self.spec = self._said()

    # -- where things lie

    def _starts(self) -> list[int]:
        """The place of each block, in elements."""
        gap, counts = self.saying.gap, self._counts
        if self.side.shape == ONE:
            return [gap] * bool(counts)
        order = range(len(counts))
        order = reversed(order) if self.saying.is_backwards else order  # type: ignore
        places, at = dict.fromkeys(range(len(counts)), 0), gap
        for i in order:
            places[i] = at
            at += counts[i] + gap
        return [places[i] for i in range(len(counts))]

    def _bytes_with(self, blocks: list[np.ndarray] | None) -> np.ndarray:
        """All bytes of the memory, with blocks in their places."""
        room = np.full(
            self._elements * self._step * self.dtype.itemsize, UNTOUCHED, "u1"
        )
        elements = room.view(self.dtype)[:: self._step]
        for at, block in zip(self._places, blocks or (), strict=False):
            elements[at : at + len(block)] = block
        return room

    def refill(self) -> None:
        """Have in the memory what it has before a call."""
        side = self.side
        self._before = self._bytes_with(side.blocks if self.is_sent else side.before)
        self._write(self._before)

    def fault(self) -> str:
        """What is wrong with the memory after the call."""
        now = self._read()
        if self.is_sent:
            return "" if (now == self._before).all() else "what is sent was changed"
        wanted = self._bytes_with(self.side.before)
        elements = wanted.view(self.dtype)[:: self._step]
        seen = now.view(self.dtype)[:: self._step]
        for at, block in zip(self._places, self.side.blocks, strict=True):
            elements[at : at + len(block)] = block
        if self.side.open_elements:
            last = self._elements - self.side.open_elements
            elements[last:] = seen[last:]
        wrong = np.flatnonzero(now != wanted)
        if not len(wrong):
            return ""
        k = int(wrong[0]) // self.dtype.itemsize
        values = now.view(self.dtype), wanted.view(self.dtype)
        return (
            f"{len(wrong)} of {len(now)} bytes are wrong: element {k} is "
            f"{values[0][k]}, not {values[1][k]} (places {self._places}, "
            f"counts {self._counts})"
        )

    # -- the memory

    def _write(self, room: np.ndarray) -> None:
        owner, dtype = self.saying.owner, self.dtype
        if self._owner is None:
            self._owner = _OWNERS[owner](room, dtype)
        elif owner == "device":
            self._owner.set(room.view(dtype))
        elif owner != "bytes":
            np.frombuffer(self._owner, "u1")[:] = room

    def _read(self) -> np.ndarray:
        if self.saying.owner == "device":
            return np.ascontiguousarray(self._owner.get()).view("u1")
        return np.frombuffer(self._owner, "u1") if self._elements else np.empty(0, "u1")

    # -- the specification

    def _element(self) -> Any:
        """The type of an element, as it is said: a code or a datatype."""
        key, name = self.dtype.str[1:], self.saying.name
        has_code = self._typed == "code" and self.saying.owner != "bottom"
        if has_code and self.side.shape != MIXED:  # mpi4py takes none there
            return _CODES[key][name % len(_CODES[key])]
        return self._datatype(_DATATYPES[key][name % len(_DATATYPES[key])])

    def _datatype(self, element: MPI.Datatype) -> MPI.Datatype:
        size = self.dtype.itemsize
        derived = element
        if self._typed == "pairs":
            derived = element.Create_contiguous(2)
        elif self._typed == "gaps":
            derived = element.Create_resized(0, 2 * size)
        if self.saying.owner == "bottom":
            address = MPI.Get_address(self._owner) if self._elements else 0
            extent = derived.Get_extent()[1]
            absolute = derived.Create_hindexed([1], [address])
            self.types += [absolute] + [derived] * (derived is not element)
            derived = absolute.Create_resized(0, extent)
        if derived is not element:
            self.types.append(derived.Commit())
        return derived

    @property
    def _elements_each(self) -> int:
        """Elements of the dtype in one of the type that is said."""
        return 2 if self._typed == "pairs" else 1

    def _said(self) -> Any:
        saying, side = self.saying, self.side
        owner = MPI.BOTTOM if saying.owner == "bottom" else self._owner
        layout, each, outer = saying.layout, self._elements_each, saying.outer
        counts = [n // each for n in self._counts]
        places = [at // each for at in self._places]
        if side.shape == MIXED:
            return self._said_mixed(owner)
        has_type = self._typed != "none"
        kind = [self._element()] if has_type else []
        needs_count = saying.owner == "bottom" or (saying.gap and side.shape == ONE)
        if side.shape in (ONE, EQUAL):
            if side.open_elements or (layout in ("bare", "type") and not needs_count):
                return outer([owner, *kind]) if has_type else owner
            count = counts[0] if counts else 0
            number = np.array(count) if saying.numbers is _array_of_longs else count
            if layout == "displacements" or saying.gap:
                pair = (list, tuple)[saying.name]([count, places[0] if places else 0])
                return outer([owner, pair, *kind])
            return outer([owner, number, *kind])
        numbers = saying.numbers
        if layout == "counts" and not saying.gap and not saying.is_backwards:
            # a tuple in this place would be counts and displacements
            plain = list if numbers is tuple else numbers
            return outer([owner, plain(counts), *kind])
        if has_type and saying.name:
            return outer([owner, numbers(counts), numbers(places), *kind])
        return outer([owner, (numbers(counts), numbers(places)), *kind])

    def _said_mixed(self, owner: Any) -> Any:
        """Blocks of their own types; places are in bytes."""
        numbers, size = self.saying.numbers, self.dtype.itemsize
        counts, types = [], []
        for i, n in enumerate(self._counts):
            is_bytes = i % 2 == 1 and self._typed == "datatype"
            is_bytes &= self.saying.owner != "bottom"
            types.append(MPI.BYTE if is_bytes else self._element())
            counts.append(n * size if is_bytes else n // self._elements_each)
        places = [at * size * self._step for at in self._places]
        types = (list, tuple)[self.saying.name](types)  # type: ignore[assignment]
        if self.saying.gap % 2:
            return self.saying.outer([owner, numbers(counts), numbers(places), types])
        return self.saying.outer([owner, (numbers(counts), numbers(places)), types])

    def free(self) -> None:
        """Free the types and the memory, which something else has at once.

        Who still reads it would find the data of before there otherwise: the next
        buffer of a series often lies where the last one was.
        """
        for datatype in self.types:
            datatype.Free()
        nbytes = len(self._before)
        self.types, self.spec, self._owner = [], None, None
        _LATER.append(bytes([UNTOUCHED ^ len(_LATER)]) * nbytes)


#: what has the memory of buffers that were freed
_LATER: deque[bytes] = deque(maxlen=16)


def forget_freed_buffers() -> None:
    """Free what has the memory of buffers that were freed: up to 16 large arrays."""
    _LATER.clear()


def _array(room: np.ndarray, dtype: Any) -> Any:
    return room.view(dtype).copy()


def _slice(room: np.ndarray, dtype: Any) -> Any:
    """A part of a larger array, at a place that changes from call to call."""
    global _turn
    _turn = (_turn + 1) % 61
    whole = np.empty(len(room) // dtype.itemsize + 61, dtype)
    part = whole[_turn : _turn + len(room) // dtype.itemsize]
    part[:] = room.view(dtype)
    return part


_turn = 0


def _typed_view(room: np.ndarray, dtype: Any) -> Any:
    # numpy's complex numbers have a format that memoryview cannot be indexed by
    return memoryview(room.view(dtype).copy())


def _array_array(room: np.ndarray, dtype: Any) -> Any:
    code = _ARRAY_CODES.get(dtype.str[1:])
    if code is None:
        return _array(room, dtype)
    owner = array.array(code)
    owner.frombytes(room.tobytes())
    return owner


_OWNERS: dict[str, Callable[[np.ndarray, Any], Any]] = {
    "array": _array,
    "slice": _slice,
    "typed memoryview": _typed_view,
    "array.array": _array_array,
    "bytearray": lambda room, dtype: bytearray(room.tobytes()),
    "memoryview": lambda room, dtype: memoryview(bytearray(room.tobytes())),
    "bytes": lambda room, dtype: room.tobytes(),
    "bottom": lambda room, dtype: room.copy(),
    "device": lambda room, dtype: device_array(room.view(dtype)),
}
