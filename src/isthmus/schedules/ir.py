"""The intermediate form: what one rank does, round by round.

An index is an int, for a single rank, or an int array with an element per rank, so that
the function that builds the rounds of a rank builds those of all ranks as well, in
O(rounds) numpy calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

#: One rank's number, or an int array with one element per rank.
Index: TypeAlias = Any
#: A truth value, or a bool array with one element per rank.
Mask: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Span:
    """Elements of a named buffer.

    A rank has its own "send", "recv" and "tmp"; the ranks of a node share "node".
    """

    buf: str
    start: Index
    size: Index


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Many spans of one buffer as two arrays, equal to a tuple of the spans.

    The first axis goes over the pieces, an optional second axis over the ranks. Arrays
    are used because a message may have thousands of spans, each otherwise an object.
    """

    buf: str
    start: np.ndarray
    size: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    def __iter__(self) -> Iterator[Span]:
        starts, sizes = self.start, self.size
        if starts.ndim == 1:
            # of one rank: plain ints, as everywhere in its rounds
            starts, sizes = starts.tolist(), sizes.tolist()
        for start, size in zip(starts, sizes, strict=True):
            yield Span(self.buf, start, size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pieces | tuple):
            return NotImplemented
        return tuple(self) == tuple(other)


Spans: TypeAlias = tuple[Span, ...]
#: the elements that a message carries
Data: TypeAlias = Spans | Pieces


@dataclass(frozen=True, slots=True)
class Send:
    """Send the elements of the spans, in their order, as one message."""

    to: Index
    data: Data
    when: Mask = True


@dataclass(frozen=True, slots=True)
class Recv:
    """Receive a message into the spans, in their order."""

    frm: Index
    data: Data
    when: Mask = True


@dataclass(frozen=True, slots=True)
class Library:
    """The MPI library's own allgather, in place, of consecutive blocks in a group."""

    base: int
    buf: str
    offsets: tuple[int, ...]

    @property
    def n(self) -> int:
        """The number of ranks in the group."""
        return len(self.offsets) - 1

    @property
    def whole(self) -> Span:
        """The span of all blocks."""
        return Span(self.buf, 0, self.offsets[-1])

    def block(self, i: int) -> Span:
        """The block of the i-th rank of the group."""
        return Span(self.buf, self.offsets[i], self.offsets[i + 1] - self.offsets[i])


@dataclass(frozen=True, slots=True)
class Copy:
    """dst := src, in memory that the rank can access."""

    src: Span
    dst: Span
    when: Mask = True


@dataclass(frozen=True, slots=True)
class Reduce:
    """dst := src (op) dst, the order of MPI.Op.Reduce_local."""

    src: Span
    dst: Span
    when: Mask = True


def is_signal(data: Data) -> bool:
    """Whether a message has no spans: a sign that its sender has come so far."""
    return isinstance(data, tuple) and not data


Comm: TypeAlias = Send | Recv | Library
Local: TypeAlias = Copy | Reduce


@dataclass(frozen=True, slots=True, eq=False)
class Steps(Sequence[Local]):
    """Many local steps of a kind, of a single rank, in arrays; equal to a tuple."""

    kind: type[Local]
    src: Pieces
    dst: Pieces

    def __len__(self) -> int:
        return len(self.src)

    def __iter__(self) -> Iterator[Local]:
        return map(self.kind, self.src, self.dst)

    def __getitem__(self, k: Any) -> Any:
        return tuple(self)[k]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Steps | tuple):
            return NotImplemented
        return tuple(self) == tuple(other)


@dataclass(frozen=True, slots=True)
class Round:
    """Communication in flight at once, then local steps, then perhaps a meeting.

    Local steps follow the end of the communication. At a meeting the rank waits for all
    ranks of its node.

    Sends take the rank's port in their order, and so do receives. A message of empty
    spans is not sent, so that algorithms need no special case for empty blocks; a
    message without spans is a signal, and is sent. Between two meetings, an element of
    "node" written by a rank is touched by no other rank.
    """

    comm: tuple[Comm, ...] = ()
    then: Sequence[Local] = ()
    meet: bool = False


Program: TypeAlias = Iterator[Round]
