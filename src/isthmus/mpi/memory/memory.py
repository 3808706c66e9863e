"""Ranges of a buffer's data as pieces of memory, and messages made of such pieces."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from mpi4py import MPI

from .buffers import Message, is_dense

#: (address, bytes)
Piece = tuple[int, int]
#: (address, count, datatype), as MPI takes it
Spec = tuple[int, int, MPI.Datatype]

#: an int counts bytes up to here in MPI-3; what is longer is sent in larger units
LIMIT = (1 << 31) - 1
CHUNK = 1 << 26
#: by how much one of two equal addresses is moved; 0 and 1 mean something to MPI
ASIDE = 64
#: bytes that are copied in a few microseconds
SHORT = 1 << 16


@dataclass(frozen=True, slots=True)
class View:
    """A buffer's data as one sequence of bytes that may lie in several places."""

    starts: tuple[int, ...]
    addresses: tuple[int, ...]

    def pieces(self, start: int, stop: int) -> list[Piece]:
        """Where the bytes start to stop - 1 lie."""
        found = []
        i = bisect_right(self.starts, start) - 1
        while start < stop:
            end = min(stop, self.starts[i + 1])
            if end > start:
                found.append((self.addresses[i] + start - self.starts[i], end - start))
            start, i = end, i + 1
        return found

    def many(self, start: np.ndarray, stop: np.ndarray) -> list[Piece]:
        """Where many ranges lie, one after the other; neighbours become one."""
        i = np.searchsorted(self.starts, start, side="right") - 1
        if (stop > np.array(self.starts)[i + 1]).any():
            ranges = zip(start.tolist(), stop.tolist(), strict=True)
            return [piece for x in ranges for piece in self.pieces(*x)]
        address = np.array(self.addresses)[i] + start - np.array(self.starts)[i]
        return _joined_neighbours(address, stop - start)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.starts[-1]


def _joined_neighbours(address: np.ndarray, length: np.ndarray) -> list[Piece]:
    """The pieces, of which those that follow each other in memory become one."""
    ends = np.cumsum(length)
    first = np.flatnonzero(np.diff(address - ends + length, prepend=-1))
    lengths = np.diff(ends[np.append(first[1:], len(ends)) - 1], prepend=0)
    return list(zip(address[first].tolist(), lengths.tolist(), strict=True))


def view(pieces: Sequence[Piece]) -> View:
    """The pieces one after the other; neighbours in memory become one."""
    joined: list[Piece] = []
    for address, n in pieces:
        if joined and sum(joined[-1]) == address:
            joined[-1] = (joined[-1][0], joined[-1][1] + n)
        elif n:
            joined.append((address, n))
    starts = accumulate((n for _, n in joined), initial=0)
    return View(tuple(starts), tuple(a for a, _ in joined))


def message_view(message: Message) -> View | None:
    """A message's data where it lies; None where its datatype has gaps."""
    if not is_dense(message.datatype):
        return None
    sizes = message.nbytes
    return view(
        [(message.base + d, n) for d, n in zip(message.displs, sizes, strict=True)]
    )


def scratch(nbytes: int) -> np.ndarray:
    """Memory of our own."""
    return np.empty(nbytes, np.uint8)


def scratch_view(array: np.ndarray) -> View:
    """All of an array of ours."""
    return view([(MPI.memory(array).address, array.nbytes)])


def array(piece: Piece) -> np.ndarray:
    """A piece of memory as an array of bytes."""
    found: np.ndarray = np.frombuffer(memoryview(buffer(*piece)), np.uint8)
    return found


def copier(src: Sequence[Piece], dst: Sequence[Piece]) -> Callable[[], Any]:
    """A function that copies the bytes of some pieces to others."""
    copies = [_copying((x, n), (y, n)) for x, y, n in _matched(src, dst)]

    def copy() -> None:
        for each in copies:
            each()

    return copies[0] if len(copies) == 1 else copy


def _copying(source: Piece, target: Piece) -> Callable[[], Any]:
    """A function that copies one piece: in the shortest time, or, if it takes long, so
    that other threads can go on meanwhile."""
    if source[1] > SHORT:
        return partial(np.copyto, array(target), array(source))
    x, y = memoryview(buffer(*source)), memoryview(buffer(*target))
    return partial(y.__setitem__, slice(None), x)


_NO_BYTES = memoryview(b"")


class Given:
    """The user's buffers of a call, for plans that do not depend on where they lie."""

    __slots__ = ("recv", "send")

    send: memoryview
    recv: memoryview

    def clear(self) -> None:
        """Keep no buffer alive."""
        self.send = self.recv = _NO_BYTES

    def fill(self, places: Sequence[Any]) -> None:
        """What is sent and received lies there; or one buffer for both."""
        if not places:
            return
        first, last = places[0], places[0] if len(places) == 1 else places[1]
        if first is not None:
            self.send = memoryview(first)
        if last is not None:
            self.recv = memoryview(last)


def given_copier(
    given: Given, src: Sequence[Piece], dst: Sequence[Piece], frm: str, to: str
) -> Callable[[], Any]:
    """As `copier`, between memory and the buffers of a call, or two of these, by their
    names: there a piece is where it begins in the buffer."""
    copies: list[Callable[[], Any]] = []
    for x, y, n in _matched(src, dst):
        copies.append(_given_copying(given, x, y, n, frm, to))

    def copy() -> None:
        for each in copies:
            each()

    return copies[0] if len(copies) == 1 else copy


def _given_copying(
    given: Given, x: int, y: int, n: int, frm: str, to: str
) -> Callable[[], Any]:
    source, target = slice(x, x + n), slice(y, y + n)
    if frm and to:

        def pass_on() -> None:
            getattr(given, to)[target] = getattr(given, frm)[source]

        return pass_on
    near = memoryview(buffer(y if frm else x, n))
    if n > SHORT:
        place = np.frombuffer(near, np.uint8)

        def copy() -> None:  # so that other threads can go on meanwhile
            far = getattr(given, frm or to)[source if frm else target]
            ends = np.frombuffer(far, np.uint8), place
            np.copyto(*(ends[::-1] if frm else ends))

        return copy

    def bring() -> None:
        near[:] = getattr(given, frm)[source]

    def take() -> None:
        getattr(given, to)[target] = near

    return bring if frm else take


def _matched(
    src: Sequence[Piece], dst: Sequence[Piece]
) -> Iterator[tuple[int, int, int]]:
    """Where the same bytes lie in two places, in pieces that are whole in both."""
    a, b = list(reversed(src)), list(reversed(dst))
    while a and b:
        (x, n), (y, m) = a.pop(), b.pop()
        k = min(n, m)
        yield x, y, k
        if n > k:
            a.append((x + k, n - k))
        if m > k:
            b.append((y + k, m - k))


def long_type(count: int, unit: MPI.Datatype) -> MPI.Datatype:
    """More elements than an int can count, as one element."""
    whole, rest = divmod(count, CHUNK)
    chunk = unit.Create_contiguous(CHUNK)
    at = whole * chunk.Get_extent()[1]
    joined = MPI.Datatype.Create_struct([whole, rest], [0, at], [chunk, unit])
    chunk.Free()
    return joined.Commit()


def entry(
    count: int, displ: int, datatype: MPI.Datatype
) -> tuple[int, int, MPI.Datatype]:
    """A block of an Alltoallw, also where an int cannot say its count or place.

    The type made for such a block lives on: a request may need it at any time.
    """
    if count <= LIMIT and displ <= LIMIT:
        return count, displ, datatype
    long = long_type(count, datatype)
    placed = MPI.Datatype.Create_struct([1], [displ], [long]).Commit()
    long.Free()
    return 1, 0, placed


def _joined(pieces: Sequence[Piece]) -> MPI.Datatype:
    """Pieces of which some are longer than an int can say, as one element."""
    base = pieces[0][0]
    types = [long_type(n, MPI.BYTE) for _, n in pieces]
    displs = [address - base for address, _ in pieces]
    result = MPI.Datatype.Create_struct([1] * len(pieces), displs, types).Commit()
    for datatype in types:
        datatype.Free()
    return result


def spec(pieces: Sequence[Piece]) -> Spec:
    """The pieces as one message. A derived type belongs to the caller."""
    if not pieces:
        return 0, 0, MPI.BYTE
    base, n = pieces[0]
    if any(length > LIMIT for _, length in pieces):
        return base, 1, _joined(pieces)
    if len(pieces) == 1:
        return base, n, MPI.BYTE
    lengths = [length for _, length in pieces]
    displs = [address - base for address, _ in pieces]
    return base, 1, MPI.BYTE.Create_hindexed(lengths, displs).Commit()


def parts(pieces: Sequence[Piece], limit: int) -> list[list[Piece]]:
    """The pieces as messages of so many bytes at most; as one where there is no limit.

    Both ends cut alike, wherever their data lie.
    """
    total = sum(n for _, n in pieces)
    if not limit or total <= limit:
        return [list(pieces)]
    whole = view(pieces)
    return [whole.pieces(x, min(x + limit, total)) for x in range(0, total, limit)]


def release(datatype: MPI.Datatype) -> None:
    """Free a type that `spec` made; requests that use it keep it alive."""
    if not datatype.is_predefined:
        datatype.Free()


def buffer(base: int, nbytes: int = 1) -> Any:
    """An address as something mpi4py takes for a buffer."""
    return MPI.memory.fromaddress(base, nbytes) if base else MPI.BOTTOM


def in_place(message: Message) -> tuple[Any, MPI.Datatype]:
    """One block of elements without gaps as MPI takes it, where it lies."""
    (count,), (displ,), kind = message.counts, message.displs, message.datatype
    return buffer(message.base + displ, count * kind.Get_size()), kind


def _whole(message: Message) -> tuple[Any, MPI.Datatype]:
    """All blocks of a message as one element, of extent 1 so that it counts as one."""
    base = message.base or 1  # MPI.BOTTOM: mpi4py packs from no null address
    displs = [message.base + d - base for d in message.displs]
    inner = message.datatype.Create_hindexed(message.counts, displs)
    outer = inner.Create_resized(0, 1).Commit()
    inner.Free()
    return buffer(base), outer


def packer(message: Message, room: np.ndarray) -> Callable[[], None]:
    """A function that packs a message's data into an array."""

    def pack() -> None:
        base, datatype = _whole(message)
        datatype.Pack(base, room, 0, MPI.COMM_SELF)
        datatype.Free()

    return pack


def unpacker(room: np.ndarray, message: Message) -> Callable[[], None]:
    """A function that unpacks an array to where a message's data belong."""

    def unpack() -> None:
        base, datatype = _whole(message)
        datatype.Unpack(room, 0, base, MPI.COMM_SELF)
        datatype.Free()

    return unpack


def converter(src: Message, dst: Message) -> Callable[[], None]:
    """A function that copies elements that have gaps."""
    room = scratch(sum(src.nbytes))
    steps = packer(src, room), unpacker(room, dst)

    def convert() -> None:
        for step in steps:
            step()

    return convert
