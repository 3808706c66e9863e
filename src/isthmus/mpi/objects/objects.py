"""Collectives of Python objects: first how long they are, then their bytes."""

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
#: mpi4py has no call for bytes that lie in several places
_NO_NATIVE = NativeCall("", is_raw=True)


def agree(
    context: Context, label: str, algorithm: str, read: Callable[[], Value]
) -> Value:
    """What a rank reads of its arguments. In the checked mode all ranks compare what
    they call, and what is wrong with the arguments of one, all raise."""
    try:
        value = read()
    except BaseException as error:
        if context.checked and not context.refused:
            checked.share(context, label, error)
        raise
    if context.checked:
        checked.agree_on_method(context, label, algorithm)
    return value


def _arrays(context: Context, op: str, algorithm: str, *args: Any) -> None:
    """Make a call of arrays."""
    complete(context, Call(context, op, INTERNAL, algorithm, args))


def _parts(context: Context, op: str, task: Task) -> None:
    """Make a call of data that lie in several places."""
    complete(context, Call.of_task(context, op, task))


# -- from all


def _gathered(context: Context, name: str, send: Data, recv: Data) -> Task:
    if isinstance(context, InterContext):
        return between.allgatherv_task(context, name, INTERNAL, send, recv)
    if isinstance(context, IntraContext):
        return inside.allgather_task(context, name, INTERNAL, send, recv, None)
    assert isinstance(context, SeveralContext)
    return several.allgatherv_task(context, name, send, recv)


def _check_algorithm(context: Context, name: str) -> None:
    """Refuse an unknown algorithm before anything is sent."""
    if isinstance(context, IntraContext):
        inside.check_algorithm(context, "allgatherv", name)
    elif isinstance(context, SeveralContext):
        several.check_algorithm(name)
    else:
        between.check_algorithm(name)


def allgather(context: Context, obj: Any, name: str) -> list[Any]:
    """The objects of one group, or of the other groups."""

    def read() -> Parts:
        _check_algorithm(context, name)
        return encode(obj)

    send = agree(context, "allgather", name, read)
    with context.uninterrupted("allgather"):
        lengths = np.empty(len(context.senders), np.int64)
        _arrays(context, "Allgather", name, np.array([send.nbytes]), lengths)
        arrived = room_for(lengths)
        task = _gathered(context, name, send, Parts(tuple(arrived)))
        _parts(context, "Allgatherv", task)
    return [decode(x) for x in arrived]


# -- between a root and the other group


def bcast(c: InterContext, obj: Any, root: int) -> Any:
    """The root's object, in the other group."""

    def read() -> tuple[RootedGroup | None, Parts]:
        at = between_rooted.rooted_group(c, root)
        return at, encode(obj) if at and at.is_root else Parts(())

    at, data = agree(c, "bcast", "auto", read)
    with c.uninterrupted("bcast"):
        if at is None:
            return None
        length = np.array([data.nbytes])
        _arrays(c, "Bcast", "auto", length, root)
        arrived = room_for(length)
        if not at.is_root:
            data = Parts(tuple(arrived))
        how = "auto", INTERNAL, at, data, _NO_NATIVE
        _parts(c, "Bcast", between_rooted.bcast_task(c, *how))
    return decode(arrived[0]) if not at.is_root else None


def _blocks(c: InterContext, op: str, at: RootedGroup, data: Sequence[Parts]) -> None:
    """Make a Gatherv or Scatterv of objects: at the root of all, elsewhere of one."""
    sizes = tuple(size for x in data for size in _object_sizes(x, op, at))
    how = "auto", INTERNAL, f"inter_{op.lower()}", at, tuple(data), sizes, _NO_NATIVE
    _parts(c, op, between_rooted.blocks_task(c, *how))


def _object_sizes(x: Parts, op: str, at: RootedGroup) -> tuple[int, ...]:
    """The sizes of the objects of which some buffers are: of one that is sent, it is
    all of them, of those that arrived, each."""
    is_sent = ("Scatter" in op) == (at.is_root)
    return (x.nbytes,) if is_sent else x.sizes


def gather(c: InterContext, obj: Any, root: int) -> list[Any] | None:
    """The objects of the other group, at the root."""

    def read() -> tuple[RootedGroup | None, Parts]:
        at = between_rooted.rooted_group(c, root)
        return at, encode(obj) if at and not at.is_root else Parts(())

    at, data = agree(c, "gather", "auto", read)
    with c.uninterrupted("gather"):
        if at is None:
            return None
        if not at.is_root:
            _arrays(c, "Gather", "auto", np.array([data.nbytes]), None, root)
            _blocks(c, "Gatherv", at, [data])
            return None
        lengths = np.empty(at.q, np.int64)
        _arrays(c, "Gather", "auto", None, lengths, root)
        arrived = room_for(lengths)
        _blocks(c, "Gatherv", at, [Parts(tuple(arrived))])
    return [decode(x) for x in arrived]


def scatter(c: InterContext, objs: Sequence[Any] | None, root: int) -> Any:
    """One of the root's objects for each of the other group."""

    def read() -> tuple[RootedGroup | None, list[Parts]]:
        at = between_rooted.rooted_group(c, root)
        return at, _each(objs, at.q) if at and at.is_root else []

    at, data = agree(c, "scatter", "auto", read)
    with c.uninterrupted("scatter"):
        if at is None:
            return None
        if at.is_root:
            lengths = np.array([x.nbytes for x in data])
            _arrays(c, "Scatter", "auto", lengths, None, root)
            _blocks(c, "Scatterv", at, data)
            return None
        length = np.empty(1, np.int64)
        _arrays(c, "Scatter", "auto", None, length, root)
        (arrived,) = room_for(length)
        _blocks(c, "Scatterv", at, [Parts((arrived,))])
    return decode(arrived)


# -- one to each of the other group


def alltoall(c: InterContext, objs: Sequence[Any] | None) -> list[Any]:
    """One object for each of the other group, and one from each."""
    objs = [None] * c.there if objs is None else objs  # as mpi4py takes it
    data = agree(c, "alltoall", "auto", lambda: _each(objs, c.there))
    sizes = tuple(x.nbytes for x in data)
    lengths = np.empty(c.there, np.int64)
    with c.uninterrupted("alltoall"):
        _arrays(c, "Alltoall", "auto", np.array(sizes), lengths)
        arrived = room_for(lengths)
        ends = tuple(data), (Parts(tuple(arrived)),), sizes, tuple(lengths.tolist())
        _parts(c, "Alltoallv", between.alltoallv_task(c, "auto", INTERNAL, *ends))
    return [decode(x) for x in arrived]


def _each(objs: Sequence[Any] | None, n: int) -> list[Parts]:
    """As many encoded objects as there are receivers."""
    if objs is None or len(objects := list(objs)) != n:
        given = "none" if objs is None else str(len(objects))
        raise ValueError(f"expecting {n} objects, one for each receiver, got {given}")
    return [encode(x) for x in objects]
