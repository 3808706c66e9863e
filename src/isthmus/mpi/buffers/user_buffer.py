"""Users' buffers: mpi4py's specifications, read and checked in one place.

mpi4py would check a buffer only when a message is posted, in the middle of a call. So a
specification is read before the call, by mpi4py's rules and with similar errors.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from operator import index
from typing import Any

import numpy as np
from mpi4py import MPI

from .datatypes import datatype_of, is_dense

_IN_PLACE_ERROR = (
    "MPI.IN_PLACE has no meaning here: it stands alone, in place of what is sent "
    "inside a group"
)


def view(memory: MPI.memory | np.ndarray) -> memoryview:
    """The bytes of a buffer as a memoryview that steps can slice."""
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
        """The bytes of data in each block, without gaps inside the datatype."""
        size = self.datatype.Get_size()
        return tuple(n * size for n in self.counts)

    @property
    def nbytes(self) -> int:
        """The bytes of data in all blocks."""
        return sum(self.counts) * self.datatype.Get_size()

    @property
    def is_dense(self) -> bool:
        """Whether the data have an owner, and elements have no gaps."""
        return self.owner is not MPI.BOTTOM and is_dense(self.datatype)

    def block(self, i: int) -> UserBuffer:
        """The i-th block alone."""
        counts, displacements = self.counts[i : i + 1], self.displacements[i : i + 1]
        return replace(self, counts=counts, displacements=displacements)

    def ranges(self) -> list[tuple[int, int]]:
        """The first address and the end of each block that is not empty."""
        starts = [self.address + at for at in self.displacements]
        return [(x, x + n) for x, n in zip(starts, self.sizes, strict=True) if n]


@dataclass(frozen=True, slots=True)
class Parts:
    """Buffers anywhere in memory that are the blocks of a message."""

    owners: tuple[Any, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The bytes of each buffer."""
        return tuple(MPI.memory(owner).nbytes for owner in self.owners)

    @property
    def nbytes(self) -> int:
        """The bytes of all buffers together."""
        return sum(self.sizes)


def read_block(spec: Any, *, writable: bool, n: int = 1) -> UserBuffer:
    """A specification of n blocks of one size, one after the other."""
    owner, count, displacement, requested = _items(spec, pairs=(list, tuple))
    if owner is MPI.BOTTOM and requested is None:
        raise TypeError("message: MPI.BOTTOM needs an explicit datatype")
    address, nbytes = _memory(owner, writable)
    datatype = datatype_of(requested, owner)
    extent = datatype.Get_extent()[1]
    start = index(displacement) if displacement is not None else 0
    if start < 0 or (start * extent > nbytes and owner is not MPI.BOTTOM):
        raise ValueError(f"message: displacement {start} out of bounds")
    if count is None:
        elements = _elements(nbytes - start * extent, extent)
        if elements % n:
            raise ValueError(
                f"message: cannot infer count: {elements} elements are not a multiple "
                f"of {n} blocks, one for each rank that they come from or go to"
            )
        count = elements // n
    count = index(count)
    starts = tuple((start + i * count) * extent for i in range(n))
    buffer = UserBuffer(owner, address, datatype, (count,) * n, starts)
    return _check_bounds(buffer, nbytes)


def read_vector(spec: Any, n: int, *, writable: bool = True) -> UserBuffer:
    """A specification of n blocks with a count and a displacement each.

    Blocks to receive (`writable`) must not overlap, since messages arrive in any order.
    """
    owner, spec_counts, spec_starts, requested = _items(spec, pairs=(tuple,))
    if owner is MPI.BOTTOM and requested is None:
        raise TypeError("message: MPI.BOTTOM needs an explicit datatype")
    address, nbytes = _memory(owner, writable)
    datatype = datatype_of(requested, owner)
    extent = datatype.Get_extent()[1]
    if spec_counts is None:
        quotient, remainder = divmod(_elements(nbytes, extent), n)
        counts = tuple(quotient + (i < remainder) for i in range(n))
    elif _is_integer(spec_counts):
        counts = (index(spec_counts),) * n
    else:
        counts = integers(spec_counts, n, "counts")
    if spec_starts is None:
        starts = tuple(accumulate(counts[:-1], initial=0))
    elif _is_integer(spec_starts):
        starts = tuple(i * index(spec_starts) for i in range(n))
    else:
        starts = integers(spec_starts, n, "displs")
    displacements = tuple(start * extent for start in starts)
    buffer = UserBuffer(owner, address, datatype, counts, displacements)
    buffer = _check_bounds(buffer, nbytes)
    if writable:
        _check_apart(buffer)
    return buffer


def read_mixed(spec: Any, n: int, *, writable: bool) -> tuple[UserBuffer, ...]:
    """A specification of n blocks with a datatype each; displacements are in bytes."""
    if spec is MPI.IN_PLACE:
        raise ValueError(_IN_PLACE_ERROR)
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
    for count, start, requested in zip(*values, types, strict=True):
        datatype = datatype_of(requested, owner)
        block = UserBuffer(owner, address, datatype, (count,), (start,))
        blocks.append(_check_bounds(block, nbytes))
    return tuple(blocks)


def integers(argument: Any, n: int, name: str) -> tuple[int, ...]:
    """The n integers of an argument; `name` is for the error message."""
    is_array = isinstance(argument, np.ndarray)
    values = tuple(argument.tolist() if is_array else argument)
    if len(values) != n:
        raise ValueError(f"message: expecting {n} {name}, got {len(values)}")
    return tuple(map(index, values))


def _is_integer(x: Any) -> bool:
    """Whether an argument is a single integer, or an array without an axis."""
    return x.ndim == 0 if isinstance(x, np.ndarray) else hasattr(x, "__index__")


def _memory(owner: Any, writable: bool) -> tuple[int, int]:
    """The address of a buffer, and the length in bytes."""
    if owner is None:
        return 0, 0
    memory = MPI.memory(owner)
    if writable and memory.readonly:
        raise BufferError("message: the receive buffer is read-only")
    return memory.address, memory.nbytes


def _is_type(x: Any) -> bool:
    return isinstance(x, MPI.Datatype | str)


def _items(spec: Any, *, pairs: tuple[type, ...]) -> tuple[Any, Any, Any, Any]:
    """The buffer, counts, displacements and datatype of a specification.

    An item of a type in `pairs` holds counts and displacements together.
    """
    if spec is MPI.IN_PLACE:
        raise ValueError(_IN_PLACE_ERROR)
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
        raise ValueError(_IN_PLACE_ERROR)
    return owner, counts, starts, datatype


def _elements(nbytes: int, extent: int) -> int:
    """The number of elements in a buffer."""
    if nbytes == 0:
        return 0
    if extent <= 0 or nbytes % extent:
        raise ValueError(
            f"message: cannot infer count, buffer length {nbytes} is not a multiple of "
            f"datatype extent {extent}"
        )
    return nbytes // extent


def _check_bounds(buffer: UserBuffer, nbytes: int) -> UserBuffer:
    """The buffer, if all blocks lie inside of the owner's bytes.

    A message beyond the end would overwrite other memory, since MPI checks no bounds.
    """
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
    """Refuse receive blocks that overlap, except for types with gaps."""
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
    """Refuse a receive buffer that overlaps the send buffer, since the order in which
    messages are sent and received would change the data."""
    if not (send.is_dense and recv.is_dense):
        return
    arriving = sorted(recv.ranges())
    for start, end in send.ranges():
        i = bisect_left(arriving, (end, 0)) - 1
        if i >= 0 and arriving[i][1] > start:
            raise ValueError(f"message: send and receive buffers overlap{hint}")
