"""Collectives of Python objects: a collective of the lengths, then one of the bytes.

The lengths travel first, since no receiver knows the length of an encoded object, and a
message longer than the receive buffer is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..arguments import between, between_rooted, inside, several
from ..arguments.call import Call
from ..arguments.readers import INTERNAL
from ..buffers.user_buffer import Parts
from ..context import checked
from ..context.inter import InterContext
from ..context.intra import IntraContext
from ..context.several import SeveralContext
from ..forms import complete
from ..plan.native import NativeCall
from ..plan.task import Data, Task
from .encoding import decode, encode, room_for

if TYPE_CHECKING:
    from ..arguments.between_rooted import RootedGroup
    from ..context.context import Context

Value = TypeVar("Value")
#: a placeholder, since mpi4py has no call for data in several places
_NO_NATIVE = NativeCall("", is_raw=True)


def agree(
    context: Context, label: str, algorithm: str, read: Callable[[], Value]
) -> Value:
    """The arguments of this rank, as `read` returns them.

    In the checked mode all ranks compare their methods and algorithms, and an error in
    the arguments of a rank is raised on all ranks.
    """
    try:
        arguments = read()
    except BaseException as error:
        if context.checked and not context.refused:
            checked.share(context, label, error)
        raise
    if context.checked:
        checked.agree_on_method(context, label, algorithm)
    return arguments


def _call_with_arrays(
    context: Context, operation: str, algorithm: str, *args: Any
) -> None:
    """Complete a call of the lengths."""
    complete(context, Call(context, operation, INTERNAL, algorithm, args))


def _call_with_task(context: Context, operation: str, task: Task) -> None:
    """Complete a call of the bytes, which lie in several places."""
    complete(context, Call.of_task(context, operation, task))


# -- from all ranks


def allgather(context: Context, obj: Any, algorithm: str) -> list[Any]:
    """The objects of the group, or of the remote groups."""

    def read() -> Parts:
        _check_algorithm(context, algorithm)
        return encode(obj)

    send = agree(context, "allgather", algorithm, read)
    with context.uninterrupted("allgather"):
        lengths = np.empty(len(context.senders), np.int64)
        own_length = np.array([send.nbytes])
        _call_with_arrays(context, "Allgather", algorithm, own_length, lengths)
        received = room_for(lengths)
        recv = Parts(tuple(received))
        task = _allgatherv_task(context, algorithm, send, recv)
        _call_with_task(context, "Allgatherv", task)
    return [decode(data) for data in received]


def _check_algorithm(context: Context, algorithm: str) -> None:
    """Refuse an unknown algorithm before any message."""
    if isinstance(context, IntraContext):
        inside.check_algorithm(context, "allgatherv", algorithm)
    elif isinstance(context, SeveralContext):
        several.check_algorithm(algorithm)
    else:
        between.check_algorithm(algorithm)


def _allgatherv_task(context: Context, algorithm: str, send: Data, recv: Data) -> Task:
    if isinstance(context, InterContext):
        return between.allgatherv_task(context, algorithm, INTERNAL, send, recv)
    if isinstance(context, IntraContext):
        return inside.allgather_task(context, algorithm, INTERNAL, send, recv, None)
    assert isinstance(context, SeveralContext)
    return several.allgatherv_task(context, algorithm, send, recv)


# -- between a root and the remote group


def bcast(context: InterContext, obj: Any, root: int) -> Any:
    """The object of the root, in the remote group."""

    def read() -> tuple[RootedGroup | None, Parts]:
        group = between_rooted.rooted_group(context, root)
        return group, encode(obj) if group and group.is_root else Parts(())

    group, data = agree(context, "bcast", "auto", read)
    with context.uninterrupted("bcast"):
        if group is None:
            return None
        length = np.array([data.nbytes])
        _call_with_arrays(context, "Bcast", "auto", length, root)
        received = room_for(length)
        if not group.is_root:
            data = Parts(tuple(received))
        task = between_rooted.bcast_task(
            context, "auto", INTERNAL, group, data, _NO_NATIVE
        )
        _call_with_task(context, "Bcast", task)
    return None if group.is_root else decode(received[0])


def gather(context: InterContext, obj: Any, root: int) -> list[Any] | None:
    """The objects of the remote group, at the root."""

    def read() -> tuple[RootedGroup | None, Parts]:
        group = between_rooted.rooted_group(context, root)
        return group, encode(obj) if group and not group.is_root else Parts(())

    group, data = agree(context, "gather", "auto", read)
    with context.uninterrupted("gather"):
        if group is None:
            return None
        if not group.is_root:
            length = np.array([data.nbytes])
            _call_with_arrays(context, "Gather", "auto", length, None, root)
            _call_with_blocks(context, "Gatherv", group, [data])
            return None
        lengths = np.empty(group.q, np.int64)
        _call_with_arrays(context, "Gather", "auto", None, lengths, root)
        received = room_for(lengths)
        _call_with_blocks(context, "Gatherv", group, [Parts(tuple(received))])
    return [decode(data) for data in received]


def scatter(context: InterContext, objs: Sequence[Any] | None, root: int) -> Any:
    """An object of the root for each rank of the remote group."""

    def read() -> tuple[RootedGroup | None, list[Parts]]:
        group = between_rooted.rooted_group(context, root)
        return group, _encode_all(objs, group.q) if group and group.is_root else []

    group, data = agree(context, "scatter", "auto", read)
    with context.uninterrupted("scatter"):
        if group is None:
            return None
        if group.is_root:
            lengths = np.array([parts.nbytes for parts in data])
            _call_with_arrays(context, "Scatter", "auto", lengths, None, root)
            _call_with_blocks(context, "Scatterv", group, data)
            return None
        length = np.empty(1, np.int64)
        _call_with_arrays(context, "Scatter", "auto", None, length, root)
        (received,) = room_for(length)
        _call_with_blocks(context, "Scatterv", group, [Parts((received,))])
    return decode(received)


def _call_with_blocks(
    context: InterContext, operation: str, group: RootedGroup, data: Sequence[Parts]
) -> None:
    """Complete a Gatherv or Scatterv of the bytes of all objects at the root, and of
    one object elsewhere.

    An element of `data` is one object if sent, and all objects if received.
    """
    is_sent = group.is_root == ("Scatter" in operation)
    if is_sent:
        sizes = tuple(parts.nbytes for parts in data)
    else:
        sizes = tuple(size for parts in data for size in parts.sizes)
    task = between_rooted.blocks_task(
        context,
        "auto",
        INTERNAL,
        f"inter_{operation.lower()}",
        group,
        tuple(data),
        sizes,
        _NO_NATIVE,
    )
    _call_with_task(context, operation, task)


# -- an object to each rank of the remote group


def alltoall(context: InterContext, objs: Sequence[Any] | None) -> list[Any]:
    """An object from each rank of the remote group, which gets an object as well."""
    n = context.there
    objs = [None] * n if objs is None else objs  # as in mpi4py
    data = agree(context, "alltoall", "auto", lambda: _encode_all(objs, n))
    sent = tuple(parts.nbytes for parts in data)
    lengths = np.empty(n, np.int64)
    with context.uninterrupted("alltoall"):
        _call_with_arrays(context, "Alltoall", "auto", np.array(sent), lengths)
        received = room_for(lengths)
        recv = (Parts(tuple(received)),)
        expected = tuple(lengths.tolist())
        task = between.alltoallv_task(
            context, "auto", INTERNAL, tuple(data), recv, sent, expected
        )
        _call_with_task(context, "Alltoallv", task)
    return [decode(data) for data in received]


def _encode_all(objs: Sequence[Any] | None, receivers: int) -> list[Parts]:
    """The encoded objects, as many as there are receivers."""
    objects = [] if objs is None else list(objs)
    if objs is None or len(objects) != receivers:
        count = "none" if objs is None else str(len(objects))
        raise ValueError(
            f"expecting {receivers} objects, one for each receiver, got {count}"
        )
    return [encode(obj) for obj in objects]
