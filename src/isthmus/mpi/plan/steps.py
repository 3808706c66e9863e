"""What one rank does in one call, as steps on offsets into numbered buffers.

A plan that knows where the user's arrays lie has to be made anew wherever they come to
lie. So a plan knows offsets only: no address, no tag, no communicator and no object of
MPI is in it. Any number of calls may use it at once, wherever their arrays lie and
whichever half of the node memory is theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from ..buffers.selection import Selection

#: the buffers of an operation: what the user passed, scratch, a half of the node
#: memory, and what this rank says before an irregular call; parts of the user's data
#: that lie in further places follow
SEND, RECV, TMP, NODE, SAID, FURTHER = range(6)


class Run(NamedTuple):
    """The bytes `start` to `stop` of a buffer."""

    buffer: int
    start: int
    stop: int


class Post(NamedTuple):
    """A receive of one run of bytes, whose request is kept in a slot."""

    source: int
    buffer: int
    start: int
    nbytes: int
    slot: int


class Send(NamedTuple):
    """A send of one run of bytes, whose request is kept in a slot."""

    target: int
    buffer: int
    start: int
    nbytes: int
    slot: int


class PostTyped(NamedTuple):
    """A receive into long runs of one buffer.

    MPI takes them by a derived datatype, which is made when the message is and freed at
    once: that takes some 5 µs, packing a long message much more.
    """

    source: int
    buffer: int
    selection: Selection
    slot: int


class SendTyped(NamedTuple):
    """A send of long runs of one buffer, by a derived datatype as in `PostTyped`."""

    target: int
    buffer: int
    selection: Selection
    slot: int


class Gather(NamedTuple):
    """The MPI library's own nonblocking Allgatherv, in place, of consecutive blocks.

    The bytes of rank i of the group lie from offsets[i] to offsets[i + 1] of a buffer.
    """

    is_local: bool
    buffer: int
    offsets: tuple[int, ...]
    slot: int


class Synchronize(NamedTuple):
    """The MPI library's own nonblocking Barrier of all ranks."""

    slot: int


class Await(NamedTuple):
    """The end of the messages in some slots; they belong to a round of the schedule."""

    slots: tuple[int, ...]
    round_number: int


class AwaitSized(NamedTuple):
    """The end of a message in a slot, from a rank that must send so many bytes.

    MPI says so itself where a message is too long; one that is too short would leave
    old data in its place.
    """

    slot: int
    source: int
    nbytes: int
    round_number: int


class Copy(NamedTuple):
    """The bytes of one buffer, put into another."""

    source: int
    read: slice
    target: int
    written: slice


class LongCopy(NamedTuple):
    """A copy that takes so long that other threads should go on meanwhile."""

    source: int
    read: slice
    target: int
    written: slice


class Pack(NamedTuple):
    """Selected bytes of one buffer, put side by side into another from an offset on."""

    source: int
    selection: Selection
    target: int
    start: int


class Unpack(NamedTuple):
    """Bytes that lie side by side from an offset on, put where a selection has them."""

    source: int
    start: int
    target: int
    selection: Selection


class Move(NamedTuple):
    """Selected bytes of one buffer, put where a selection of another has them."""

    source: int
    read: Selection
    target: int
    written: Selection


class Reduce(NamedTuple):
    """target := source (op) target, for each source in its order: elements of one of
    the call's datatypes, which begin at offsets in bytes."""

    #: buffers, and the offsets in them
    sources: tuple[tuple[int, int], ...]
    target: int
    written: int
    elements: int
    #: which of the call's operators, of which only fields of several types have several
    operator: int = 0


class ArrayAt(NamedTuple):
    """Where an array lies: a buffer, and the offset of its first element there."""

    buffer: int
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


class Compute(NamedTuple):
    """A function's work on arrays that lie in buffers: it is called with those that it
    reads and then those that it writes.

    The function is a value like the rest of a plan: it knows no array of a call. It
    should take less than a millisecond, as MPI moves no message meanwhile.
    """

    function: Callable[..., object]
    read: tuple[ArrayAt, ...]
    written: tuple[ArrayAt, ...]


class Enter(NamedTuple):
    """The wait until all ranks of the node are done with a half of the node memory."""


class Meet(NamedTuple):
    """A meeting of ranks of the node, by ranges of their places there.

    At the first meeting of a call, `contribution` is how many bytes this rank believes
    to contribute, and `expected` what it believes of the others: a user's sizes that do
    not match are found before anything is read at a wrong offset.
    """

    ranges: tuple[tuple[int, int], ...]
    #: counted from 1 on in a call; 0 is where ranks meet to ask each other
    meeting: int
    round_number: int
    contribution: int = -1
    expected: list[bytes] | None = None


class StartNative(NamedTuple):
    """The start of the MPI library's own call, whose request is kept in a slot.

    It is a step only where something of ours comes before and after it: copies from
    and to a device.
    """

    slot: int


class Fetched(NamedTuple):
    """The end of the copies from a device up to one, by its number.

    It may have to be awaited at once, whoever advances the operation.
    """

    number: int
    is_awaited: bool = False


class Store(NamedTuple):
    """The beginning of copies to a device: buffers, first bytes, one after the last."""

    ranges: tuple[tuple[int, int, int], ...]


class Stored(NamedTuple):
    """The end of all copies to devices."""


class Ask(NamedTuple):
    """The end of the steps that ask others: so many bytes of a buffer are the answer.

    Together with the values of the call it is the key of the plan that the operation
    goes on with.
    """

    buffer: int
    start: int
    nbytes: int


Step: TypeAlias = (
    Post
    | Send
    | PostTyped
    | SendTyped
    | Gather
    | Synchronize
    | Await
    | AwaitSized
    | Copy
    | LongCopy
    | Pack
    | Unpack
    | Move
    | Reduce
    | Compute
    | Enter
    | Meet
    | StartNative
    | Fetched
    | Store
    | Stored
    | Ask
)
