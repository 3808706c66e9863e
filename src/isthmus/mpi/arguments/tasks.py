"""Tasks and checks that calls inside a group, between two and among several share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..buffers.operators import Operator
from ..buffers.user_buffer import UserBuffer
from ..plan.native import NativeCall, elements_spec
from ..plan.task import Contributions, Data, Task

if TYPE_CHECKING:
    from ..context.context import Context


def allgather_task(context: Context, algorithm: str, send: Data, recv: Data) -> Task:
    """The task of a rank that sends one block and receives the blocks of others."""
    return Task(
        algorithm=algorithm,
        send=(send,),
        recv=(recv,),
        sent=send.nbytes,
        expected=dict(zip(context.senders, recv.sizes, strict=True)),
    )


def alltoall_task(
    context: Context,
    algorithm: str,
    send: tuple[Data, ...],
    recv: tuple[Data, ...],
    sent: Sequence[int],
    expected: Sequence[int],
    *,
    is_in_place: bool = False,
) -> Task:
    """The task of a rank that has a block for each other rank, of these bytes.

    The block for the rank itself is copied, not sent: no message tells that sizes
    differ.
    """
    sent_bytes = dict(zip(context.senders, sent, strict=True))
    expected_bytes = dict(zip(context.senders, expected, strict=True))
    own, own_expected = (x.get(context.number) for x in (sent_bytes, expected_bytes))
    if own != own_expected:
        raise ValueError(
            f"message: rank {context.index} sends {own} bytes to itself and receives "
            f"{own_expected}"
        )
    return Task(
        algorithm=algorithm,
        send=send,
        recv=recv,
        is_in_place=is_in_place,
        sent=sent_bytes,
        expected=expected_bytes,
    )


def reduction_task(
    context: Context,
    algorithm: str,
    send: UserBuffer,
    recv: UserBuffer,
    operator: Operator,
    *,
    is_in_place: bool = False,
) -> Task:
    """The task of a rank whose vector is combined with vectors of equal size."""
    nbytes = send.nbytes
    sizes = dict.fromkeys(context.senders, nbytes)

    def contributions(*_: Any) -> Contributions:
        return [nbytes] * context.size

    return Task(
        algorithm=algorithm,
        send=(send,),
        recv=(recv,),
        operator=operator,
        is_in_place=is_in_place,
        contributions=contributions,
        sent=sizes,
        expected=sizes,
    )


def native_reduction(
    operation: str, send: UserBuffer, recv: UserBuffer, is_in_place: bool = False
) -> NativeCall:
    """The MPI library's own reduction, on elements of the user's type.

    The elements are not passed as bytes, since the library combines them.
    """
    send_spec = None if is_in_place else elements_spec(send)
    return NativeCall(operation, send_spec, elements_spec(recv), is_bytes=False)


def check_equal_counts(send: UserBuffer, recv: UserBuffer) -> None:
    """Refuse a reduction of vectors that are sent and received in different sizes."""
    if send.counts != recv.counts:
        raise ValueError(
            f"message: {send.counts[0]} elements are sent, {recv.counts[0]} received"
        )


def check_scattered_counts(
    counts: Sequence[int], index: int, *, own: int, total: int
) -> None:
    """Refuse counts of a Reduce_scatter that the buffers of a rank do not have."""
    if own != counts[index] or total != sum(counts):
        raise ValueError(
            f"message: the counts are {list(counts)}, of which {own} are received "
            f"by rank {index} and {total} are sent by everyone"
        )
