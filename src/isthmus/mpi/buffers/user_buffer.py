"""What a user passes as a buffer: mpi4py's specifications, read and checked."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from operator import index
from typing import Any

import numpy as np
from mpi4py import MPI

from .datatypes import datatype_of, is_dense

_IN_PLACE = (
    "MPI.IN_PLACE has no meaning here: it stands alone, in place of what is sent "
    "inside a group"
)


def view(memory: MPI.memory | np.ndarray) -> memoryview:
    """The bytes of a buffer, as Python slices them."""
    return memoryview(memory)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class UserBuffer:
    """Blocks of one datatype in a user's memory; displacements are in bytes."""

    owner: Any
    address: int
    datatype: MPI.Datatype
    counts: tuple[int, ...]
    displacements: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The bytes of data in each block, gaps inside the datatype left out."""
        size = self.datatype.Get_size()
        return tuple(n * size for n in self.counts)

    @property
    def nbytes(self) -> int:
        """The bytes of data in all blocks."""
        return sum(self.counts) * self.datatype.Get_size()

    @property
    def is_dense(self) -> bool:
        """Whether elements lie in the owner's memory as they travel, without gaps."""
        return self.owner is not MPI.BOTTOM and is_dense(self.datatype)

    def block(self, i: int) -> UserBuffer:
        """The i-th block alone."""
        one = (self.displacements[i],)
        return replace(self, counts=self.counts[i : i + 1], displacements=one)

    def ranges(self) -> list[tuple[int, int]]:
        """First and last address of every block that is not empty."""
        starts = [self.address + at for at in self.displacements]
        return [(x, x + n) for x, n in zip(starts, self.sizes, strict=True) if n]


@dataclass(frozen=True, slots=True)
class Parts:
    """Buffers anywhere in memory, whose bytes are blocks of one message."""

    owners: tuple[Any, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The bytes of each."""
        return tuple(MPI.memory(x).nbytes for x in self.owners)

    @property
    def nbytes(self) -> int:
        """The bytes of all."""
        return sum(self.sizes)


def read_block(spec: Any, *, writable: bool, n: int = 1) -> UserBuffer:
    """A specification of n blocks of one size, one after the other."""
    owner, count, displacement, given = _items(spec, pairs=(list, tuple))
    if owner is MPI.BOTTOM and given is None:
        raise TypeError("message: MPI.BOTTOM needs an explicit datatype")
    address, nbytes = _memory(owner, writable)
    datatype = datatype_of(given, owner)
    extent = datatype.Get_extent()[1]
    start = index(displacement) if displacement is not None else 0
    if start < 0 or (start * extent > nbytes and owner is not MPI.BOTTOM):
        raise ValueError(f"message: displacement {start} out of bounds")
    if count is None:
        elements = _elements(nbytes - start * extent, extent)
        if elements % n:
            raise ValueError(
                f"message: cannot infer count, number of entries {elements} is not a "
                f"multiple of required number of blocks {n}"
            )
        count = elements // n
    count = index(count)
    starts = tuple((start + i * count) * extent for i in range(n))
    buffer = UserBuffer(owner, address, datatype, (count,) * n, starts)
    return _check_bounds(buffer, nbytes)


def read_vector(spec: Any, n: int, *, writable: bool = True) -> UserBuffer:
    """A specification of n blocks of their own counts and places; those to receive
    (writable) must not overlap."""
    owner, given_counts, given_starts, given = _items(spec, pairs=(tuple,))
    if owner is MPI.BOTTOM and given is None:
        raise TypeError("message: MPI.BOTTOM needs an explicit datatype")
    address, nbytes = _memory(owner, writable)
    datatype = datatype_of(given, owner)
    extent = datatype.Get_extent()[1]
    if given_counts is None:
        each, rest = divmod(_elements(nbytes, extent), n)
        counts = tuple(each + (i < rest) for i in range(n))
    elif _is_integer(given_counts):
        counts = (index(given_counts),) * n
    else:
        counts = integers(given_counts, n, "counts")
    if given_starts is None:
        starts = tuple(accumulate(counts[:-1], initial=0))
    elif _is_integer(given_starts):
        starts = tuple(i * index(given_starts) for i in range(n))
    else:
        starts = integers(given_starts, n, "displs")
    at = tuple(x * extent for x in starts)
    buffer = UserBuffer(owner, address, datatype, counts, at)
    buffer = _check_bounds(buffer, nbytes)
    if writable:
        _check_apart(buffer)
    return buffer


def read_mixed(spec: Any, n: int, *, writable: bool) -> tuple[UserBuffer, ...]:
    """A specification of n blocks, each of its own type; places are in bytes."""
    if spec is MPI.IN_PLACE:
        raise ValueError(_IN_PLACE)
    if not isinstance(spec, list | tuple) or not 2 <= len(spec) <= 4:
        raise TypeError("message: expecting a list or tuple of 2 to 4 items")
    owner, *places, types = spec
    if len(places) == 1:
        places = list(places[0])
    counts, starts = places or ([1] * n, [0] * n)
    address, nbytes = _memory(owner, writable)
    if len(types := list(types)) != n:
        raise ValueError(f"message: expecting {n} datatypes, got {len(types)}")
    values = integers(counts, n, "counts"), integers(starts, n, "displs")
    blocks = []
    for count, start, given in zip(*values, types, strict=True):
        kind = datatype_of(given, owner)
        block = UserBuffer(owner, address, kind, (count,), (start,))
        blocks.append(_check_bounds(block, nbytes))
    return tuple(blocks)


def integers(given: Any, n: int, what: str) -> tuple[int, ...]:
    """A list of n integers, checked."""
    values = tuple(given.tolist()) if isinstance(given, np.ndarray) else tuple(given)
    if len(values) != n:
        raise ValueError(f"message: expecting {n} {what}, got {len(values)}")
    return tuple(map(index, values))


def _is_integer(x: Any) -> bool:
    """Whether one integer stands for all: of arrays, only those without an axis."""
    return x.ndim == 0 if isinstance(x, np.ndarray) else hasattr(x, "__index__")


def _memory(owner: Any, writable: bool) -> tuple[int, int]:
    """Address and length of a buffer."""
    if owner is None:
        return 0, 0
    memory = MPI.memory(owner)
    if writable and memory.readonly:
        raise BufferError("message: the receive buffer is read-only")
    return memory.address, memory.nbytes


def _is_type(x: Any) -> bool:
    return isinstance(x, MPI.Datatype | str)


def _items(spec: Any, *, pairs: tuple[type, ...]) -> tuple[Any, Any, Any, Any]:
    """A specification as buffer, counts, displacements and type; counts and
    displacements may be one item of some types."""
    if spec is MPI.IN_PLACE:
        raise ValueError(_IN_PLACE)
    if not isinstance(spec, list | tuple):
        if spec is None:
            raise TypeError("message: expecting buffer or list/tuple")
        return spec, None, None, None
    if not 2 <= len(spec) <= 4:
        raise ValueError("message: expecting 2 to 4 items")
    owner, *rest = spec
    if len(rest) == 1:
        rest = [None, *rest] if _is_type(rest[0]) else [*rest, None]
    if len(rest) == 2:
        counts, datatype = rest
        is_pair = isinstance(counts, pairs)
        rest = [*counts, datatype] if is_pair else [counts, None, datatype]
        if len(rest) != 3:
            raise ValueError(f"message: expecting (counts, displs), got {counts!r}")
    counts, starts, datatype = rest
    if owner is MPI.IN_PLACE:
        raise ValueError(_IN_PLACE)
    return owner, counts, starts, datatype


def _elements(nbytes: int, extent: int) -> int:
    """How many elements a buffer holds."""
    if nbytes == 0:
        return 0
    if extent <= 0 or nbytes % extent:
        raise ValueError(
            f"message: cannot infer count, buffer length {nbytes} is not a multiple of "
            f"datatype extent {extent}"
        )
    return nbytes // extent


def _check_bounds(buffer: UserBuffer, nbytes: int) -> UserBuffer:
    """The buffer, every block of which must lie inside of so many bytes."""
    if any(n < 0 for n in buffer.counts):
        raise ValueError(f"message: negative count {min(buffer.counts)}")
    if buffer.owner is MPI.BOTTOM or not any(buffer.counts):
        return buffer
    if buffer.owner is None:
        raise ValueError(f"message: buffer is None but count is {max(buffer.counts)}")
    extent = buffer.datatype.Get_extent()[1]
    low, true_extent = buffer.datatype.Get_true_extent()
    blocks = zip(buffer.counts, buffer.displacements, strict=True)
    for i, (n, at) in enumerate(blocks):
        first, last = at + low, at + (n - 1) * extent + low + true_extent
        if n and (first < 0 or last > nbytes):
            raise ValueError(
                f"message: block {i} needs bytes {first} to {last} of a buffer of "
                f"{nbytes} bytes"
            )
    return buffer


def _check_apart(buffer: UserBuffer) -> None:
    """No two blocks to receive may overlap; types with gaps may interleave."""
    if not buffer.is_dense:
        return
    blocks = sorted(
        (at, at + n, i)
        for i, (at, n) in enumerate(
            zip(buffer.displacements, buffer.sizes, strict=True)
        )
        if n
    )
    for (_, end, i), (start, _, j) in pairwise(blocks):
        if start < end:
            raise ValueError(f"message: receive blocks {i} and {j} overlap")


def check_disjoint(send: UserBuffer, recv: UserBuffer, hint: str = "") -> None:
    """Refuse that what is sent is overwritten while it is being sent."""
    if not (send.is_dense and recv.is_dense):
        return
    arriving = sorted(recv.ranges())
    for start, end in send.ranges():
        i = bisect_left(arriving, (end, 0)) - 1
        if i >= 0 and arriving[i][1] > start:
            raise ValueError(f"message: send and receive buffers overlap{hint}")
