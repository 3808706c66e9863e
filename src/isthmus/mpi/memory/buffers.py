"""What a user passes as a buffer: mpi4py's specifications, parsed and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np
from mpi4py import MPI

_IN_PLACE = (
    "MPI.IN_PLACE has no meaning here: it stands alone, in place of what is sent "
    "inside a group"
)
_DENSE = (MPI.COMBINER_CONTIGUOUS, MPI.COMBINER_DUP)


@dataclass(frozen=True, slots=True)
class Message:
    """Blocks of one datatype at a base address; displacements are in bytes."""

    owner: Any
    base: int
    datatype: MPI.Datatype
    counts: tuple[int, ...]
    displs: tuple[int, ...]

    @property
    def nbytes(self) -> tuple[int, ...]:
        """The bytes of data in each block, gaps inside the datatype left out."""
        size = self.datatype.Get_size()
        return tuple(n * size for n in self.counts)

    @property
    def is_dense(self) -> bool:
        """Whether elements lie in memory as they travel, without gaps."""
        return is_dense(self.datatype)

    def block(self, i: int) -> Message:
        """The i-th block alone."""
        return replace(self, counts=self.counts[i : i + 1], displs=(self.displs[i],))


def is_dense(datatype: MPI.Datatype) -> bool:
    """Whether elements of the type lie in memory as they travel, without gaps."""
    if datatype.is_predefined:
        return bool(datatype.Get_size() == datatype.Get_extent()[1])
    if datatype.combiner not in _DENSE:
        return False
    inner = datatype.decode()[0]
    dense = is_dense(inner)
    if not inner.is_predefined:
        inner.Free()
    return dense


def type_of(given: Any, owner: Any) -> MPI.Datatype:
    """The given type, or the one that fits the buffer's own elements."""
    if isinstance(given, MPI.Datatype):
        if given == MPI.DATATYPE_NULL:
            raise ValueError("message: the datatype is null")
        return given
    code = given if given is not None else _format(owner)
    try:
        return MPI.Datatype.fromcode(code)
    except ValueError:
        raise KeyError(f"message: cannot map {code!r} to an MPI datatype") from None


def _format(owner: Any) -> str:
    """The format of a buffer's elements, in native byte order."""
    try:
        code = memoryview(owner).format
    except TypeError:  # a tensor that speaks DLPack or the CUDA array interface only
        code = np.dtype(_array_type(owner)).char
    if code[0] == (">" if np.little_endian else "<"):
        raise BufferError(f"message: format {code!r} has a foreign byte order")
    return code.lstrip("@=<>") or "B"


def _array_type(owner: Any) -> Any:
    if hasattr(owner, "__cuda_array_interface__"):
        return owner.__cuda_array_interface__["typestr"]
    return np.from_dlpack(owner).dtype


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


def _unpack(spec: Any, pairs: tuple[type, ...]) -> tuple[Any, Any, Any, Any]:
    """A specification as (buffer, counts, displacements, type)."""
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
        pair = isinstance(counts, pairs)
        rest = [*counts, datatype] if pair else [counts, None, datatype]
        if len(rest) != 3:
            raise ValueError(f"message: expecting (counts, displs), got {counts!r}")
    counts, displs, datatype = rest
    if owner is MPI.IN_PLACE:
        raise ValueError(_IN_PLACE)
    return owner, counts, displs, datatype


def _infer(nbytes: int, extent: int) -> int:
    """How many elements a buffer holds."""
    if nbytes == 0:
        return 0
    if extent <= 0 or nbytes % extent:
        raise ValueError(
            f"message: cannot infer count, buffer length {nbytes} is not a multiple of "
            f"datatype extent {extent}"
        )
    return nbytes // extent


def _check_bounds(message: Message, nbytes: int) -> Message:
    """Every block must lie inside the buffer."""
    if any(n < 0 for n in message.counts):
        raise ValueError(f"message: negative count {min(message.counts)}")
    if message.owner is MPI.BOTTOM or not any(message.counts):
        return message
    if message.owner is None:
        raise ValueError(f"message: buffer is None but count is {max(message.counts)}")
    extent = message.datatype.Get_extent()[1]
    low, true_extent = message.datatype.Get_true_extent()
    for i, (n, at) in enumerate(zip(message.counts, message.displs, strict=True)):
        first, last = at + low, at + (n - 1) * extent + low + true_extent
        if n and (first < 0 or last > nbytes):
            raise ValueError(
                f"message: block {i} needs bytes {first} to {last} of a buffer of "
                f"{nbytes} bytes"
            )
    return message


def block(spec: Any, writable: bool, n: int = 1) -> Message:
    """A specification of n blocks of one size, one after the other."""
    owner, count, displ, given = _unpack(spec, (list, tuple))
    if owner is MPI.BOTTOM and given is None:
        raise TypeError("message: MPI.BOTTOM needs an explicit datatype")
    address, nbytes = _memory(owner, writable)
    datatype = type_of(given, owner)
    extent = datatype.Get_extent()[1]
    start = index(displ) if displ is not None else 0
    if start < 0 or (start * extent > nbytes and owner is not MPI.BOTTOM):
        raise ValueError(f"message: displacement {start} out of bounds")
    if count is None:
        whole = _infer(nbytes - start * extent, extent)
        if whole % n:
            raise ValueError(
                f"message: cannot infer count, number of entries {whole} is not a "
                f"multiple of required number of blocks {n}"
            )
        count = whole // n
    count = index(count)
    displs = tuple((start + i * count) * extent for i in range(n))
    message = Message(owner, address, datatype, (count,) * n, displs)
    return _check_bounds(message, nbytes)


def integers(given: Any, n: int, what: str) -> tuple[int, ...]:
    """A list of n ints, checked."""
    values = tuple(given.tolist()) if isinstance(given, np.ndarray) else tuple(given)
    if len(values) != n:
        raise ValueError(f"message: expecting {n} {what}, got {len(values)}")
    return tuple(map(index, values))


def vector(spec: Any, n: int, writable: bool = True) -> Message:
    """A specification of n blocks of their own counts and places; those to receive
    (writable) must not overlap."""
    owner, counts, displs, given = _unpack(spec, (tuple,))
    if owner is MPI.BOTTOM and given is None:
        raise TypeError("message: MPI.BOTTOM needs an explicit datatype")
    address, nbytes = _memory(owner, writable)
    datatype = type_of(given, owner)
    extent = datatype.Get_extent()[1]
    if counts is None:
        each, more = divmod(_infer(nbytes, extent), n)
        counts = tuple(each + (i < more) for i in range(n))
    elif hasattr(counts, "__index__") and not isinstance(counts, np.ndarray):
        counts = (index(counts),) * n
    else:
        counts = integers(counts, n, "counts")
    if displs is None:
        starts = np.cumsum((0, *counts[:-1])).tolist()
    elif hasattr(displs, "__index__") and not isinstance(displs, np.ndarray):
        starts = [i * index(displs) for i in range(n)]
    else:
        starts = integers(displs, n, "displs")
    at = tuple(x * extent for x in starts)
    message = _check_bounds(Message(owner, address, datatype, counts, at), nbytes)
    if writable:
        _check_apart(message)
    return message


def mixed(spec: Any, n: int, writable: bool) -> tuple[Message, ...]:
    """A specification of n blocks, each of its own type; places are in bytes."""
    if spec is MPI.IN_PLACE:
        raise ValueError(_IN_PLACE)
    if not isinstance(spec, list | tuple) or not 2 <= len(spec) <= 4:
        raise TypeError("message: expecting a list or tuple of 2 to 4 items")
    owner, *places, types = spec
    if len(places) == 1:
        places = list(places[0])
    counts, displs = places or ([1] * n, [0] * n)
    address, nbytes = _memory(owner, writable)
    if len(types := list(types)) != n:
        raise ValueError(f"message: expecting {n} datatypes, got {len(types)}")
    values = integers(counts, n, "counts"), integers(displs, n, "displs")
    found = []
    for count, displ, given in zip(*values, types, strict=True):
        one = Message(owner, address, type_of(given, owner), (count,), (displ,))
        found.append(_check_bounds(one, nbytes))
    return tuple(found)


def _check_apart(message: Message) -> None:
    """No two blocks to receive may overlap; types with gaps may interleave."""
    if not is_dense(message.datatype):
        return
    blocks: Sequence[tuple[int, int, int]] = sorted(
        (at, at + n, i)
        for i, (at, n) in enumerate(zip(message.displs, message.nbytes, strict=True))
        if n
    )
    for (_, end, i), (start, _, j) in pairwise(blocks):
        if start < end:
            raise ValueError(f"message: receive blocks {i} and {j} overlap")
