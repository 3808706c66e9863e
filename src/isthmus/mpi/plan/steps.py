"""The steps of one rank in one call, on offsets into numbered buffers.

A plan with the addresses of the user's arrays would have to be made anew for every
array. So a plan knows offsets only, and no address, tag, communicator or MPI object.
Any number of calls may use a plan at once, with arrays at any address and either half
of the node memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from ..buffers.selection import Selection

#: the buffers of an operation: the user's two, scratch, a half of the node memory, and
#: the bytes that this rank says in a question. From FURTHER on follow buffers of user's
#: data that lie in several places
SEND, RECV, TMP, NODE, SAID, FURTHER = range(6)


class Run(NamedTuple):
    """The bytes `start` to `stop` of a buffer."""

    buffer: int
    start: int
    stop: int


class StartReceive(NamedTuple):
    """The start of a receive of one run of bytes, with a slot for the request.

    `peer` is the rank at the other end, in this step and the three that follow.
    """

    peer: int
    buffer: int
    start: int
    nbytes: int
    slot: int


class StartSend(NamedTuple):
    """The start of a send of one run of bytes, with a slot for the request."""

    peer: int
    buffer: int
    start: int
    nbytes: int
    slot: int


class StartTypedReceive(NamedTuple):
    """The start of a receive into long runs of one buffer.

    The runs are described by a derived datatype, created for the message and freed at
    once: about 5 µs, where to pack a long message takes much longer.
    """

    peer: int
    buffer: int
    selection: Selection
    slot: int

    @property
    def nbytes(self) -> int:
        return self.selection.nbytes


class StartTypedSend(NamedTuple):
    """The start of a send of long runs of a buffer, by a datatype as for receives."""

    peer: int
    buffer: int
    selection: Selection
    slot: int

    @property
    def nbytes(self) -> int:
        return self.selection.nbytes


MessageStep: TypeAlias = StartReceive | StartSend | StartTypedReceive | StartTypedSend


class StartAllgatherv(NamedTuple):
    """The MPI library's own nonblocking Allgatherv, in place, of consecutive blocks.

    The bytes of rank i of the group lie from offsets[i] to offsets[i + 1] of a buffer.
    """

    is_local: bool
    buffer: int
    offsets: tuple[int, ...]
    slot: int


class StartBarrier(NamedTuple):
    """The MPI library's own nonblocking Barrier of all ranks."""

    slot: int


class Await(NamedTuple):
    """The end of the messages in slots, which belong to a round of the schedule."""

    slots: tuple[int, ...]
    round_number: int


class AwaitSized(NamedTuple):
    """The end of a message in a slot, with a check of the number of bytes.

    MPI reports a message that is too long. A message that is too short would silently
    leave old data behind.
    """

    slot: int
    source: int
    nbytes: int
    round_number: int


class ShortCopy(NamedTuple):
    """A copy of bytes from one buffer to another."""

    source: int
    read: slice
    target: int
    written: slice


class LongCopy(NamedTuple):
    """A copy long enough to let other threads run meanwhile."""

    source: int
    read: slice
    target: int
    written: slice


class Pack(NamedTuple):
    """A copy of selected bytes of one buffer to consecutive bytes of another."""

    source: int
    selection: Selection
    target: int
    start: int


class Unpack(NamedTuple):
    """A copy of consecutive bytes of one buffer to selected bytes of another."""

    source: int
    start: int
    target: int
    selection: Selection


class Move(NamedTuple):
    """A copy of selected bytes of one buffer to selected bytes of another."""

    source: int
    read: Selection
    target: int
    written: Selection


class ReduceLocal(NamedTuple):
    """target := source (op) target, for each source in order, on elements of one of the
    call's datatypes."""

    #: buffers, and offsets in bytes
    sources: tuple[tuple[int, int], ...]
    target: int
    written: int
    elements: int
    #: the index of the operator in the call; only fields of several types have several
    operator: int = 0


class ArrayAt(NamedTuple):
    """The place of an array: a buffer, the offset of the first element, strides."""

    buffer: int
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


class Compute(NamedTuple):
    """A function's work on arrays in buffers; the arguments are the arrays to read,
    then the arrays to write.

    The function is a value like the rest of a plan, without arrays of a call. A call of
    the function should take less than a millisecond, as MPI moves no message meanwhile.
    """

    function: Callable[..., object]
    read: tuple[ArrayAt, ...]
    written: tuple[ArrayAt, ...]


class Enter(NamedTuple):
    """The wait until all ranks of the node have left a half of the node memory."""


class Meet(NamedTuple):
    """A meeting of ranks of the node, by ranges of their places on the node.

    At the first meeting of a call the ranks compare sizes: `contribution` is the bytes
    that this rank contributes, `expected` the bytes that it expects of each rank. So a
    user's wrong sizes raise an error before a rank reads at a wrong offset.
    """

    ranges: tuple[tuple[int, int], ...]
    #: counted from 1 on in a call; 0 is where ranks meet to ask each other
    meeting: int
    round_number: int
    contribution: int = -1
    expected: list[bytes] | None = None


class StartNative(NamedTuple):
    """The start of the MPI library's own call, with a slot for the request.

    The library's call is a step only between copies from and to a device.
    """

    slot: int


class Fetched(NamedTuple):
    """The end of the copies from a device, up to the copy with a number.

    With `is_awaited` even `advance` waits.
    """

    number: int
    is_awaited: bool = False


class Store(NamedTuple):
    """The start of copies to a device, by buffers, first bytes and ends."""

    ranges: tuple[tuple[int, int, int], ...]


class Stored(NamedTuple):
    """The end of all copies to devices."""


class Ask(NamedTuple):
    """The end of a question: the answer is a run of bytes of a buffer.

    The values of the call and the answer are the key of the plan that follows.
    """

    buffer: int
    start: int
    nbytes: int


Step: TypeAlias = (
    StartReceive
    | StartSend
    | StartTypedReceive
    | StartTypedSend
    | StartAllgatherv
    | StartBarrier
    | Await
    | AwaitSized
    | ShortCopy
    | LongCopy
    | Pack
    | Unpack
    | Move
    | ReduceLocal
    | Compute
    | Enter
    | Meet
    | StartNative
    | Fetched
    | Store
    | Stored
    | Ask
)
