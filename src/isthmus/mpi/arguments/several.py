"""The tasks of collectives among several groups."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ...choose.choice import choice
from ...collectives.known import OwnLines, unit_of
from ...collectives.records import COLLECTIVES
from ...schedules.registry import named, resolve
from ...schedules.schedule import Schedule
from ..buffers.user_buffer import UserBuffer, check_disjoint, read_block, read_vector
from ..plan.question import ask_each, first_column
from ..plan.task import Data, Task
from .readers import Readers
from .tasks import allgather_task

if TYPE_CHECKING:
    from ..context.several import SeveralContext

Counts = tuple[int, ...]
#: the readers of operations among several groups
SEVERAL_READERS = Readers()


def check_algorithm(algorithm: str) -> None:
    """Refuse an unknown algorithm of an Allgatherv."""
    if algorithm != "auto":
        resolve("multi_allgatherv", algorithm)


def _read_allgather(
    context: SeveralContext, sendbuf: Any, recvbuf: Any, is_irregular: bool
) -> tuple[UserBuffer, UserBuffer]:
    """The buffers of an Allgather(v); without other groups no receive buffer is
    read."""
    send, n = read_block(sendbuf, writable=False), len(context.senders)
    if is_irregular and n:
        recv = read_vector(recvbuf, n)
    elif n:
        recv = read_block(recvbuf, writable=True, n=n)
    else:
        recv = UserBuffer(None, 0, MPI.BYTE, (), ())
    check_disjoint(send, recv)
    return send, recv


@SEVERAL_READERS.reads("Allgather")
def allgather(
    context: SeveralContext, algorithm: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    check_algorithm(algorithm)
    send, recv = _read_allgather(context, sendbuf, recvbuf, is_irregular=False)
    if context.senders and send.nbytes != recv.sizes[0]:
        raise ValueError(
            f"message: this rank sends {send.nbytes} bytes and receives "
            f"{recv.sizes[0]} from each; blocks of different sizes are for Allgatherv"
        )
    local_sizes = (send.nbytes,) * context.sizes[context.group_number]
    schedule = partial(_allgatherv_schedule, context, algorithm, recv, local_sizes)
    return replace(allgather_task(context, algorithm, send, recv), schedule=schedule)


@SEVERAL_READERS.reads("Allgatherv")
def allgatherv(
    context: SeveralContext, algorithm: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    check_algorithm(algorithm)
    send, recv = _read_allgather(context, sendbuf, recvbuf, is_irregular=True)
    return allgatherv_task(context, algorithm, send, recv)


def allgatherv_task(
    context: SeveralContext, algorithm: str, send: Data, recv: Data
) -> Task:
    """The task of an Allgatherv, of data that may lie in several places.

    The ranks of a group ask each other, since by MPI's rules a rank knows only the
    sizes of the remote groups.
    """
    return replace(
        allgather_task(context, algorithm, send, recv),
        question=ask_each(context.group, [send.nbytes], first_column),
        schedule=partial(_allgatherv_schedule, context, algorithm, recv),
    )


def _allgatherv_schedule(
    context: SeveralContext, algorithm: str, recv: Data, local_sizes: Counts
) -> Schedule:
    """The schedule of an Allgatherv, from the sizes of the local group in bytes."""
    remote, base = recv.sizes, context.base
    counts = np.array((*remote[:base], *local_sizes, *remote[base:]), np.int64)
    unit = unit_of(int(np.bitwise_or.reduce(counts)))
    bounds = accumulate(context.sizes, initial=0)
    groups = [counts[start:stop] for start, stop in pairwise(bounds)]
    if algorithm == "auto":
        record = COLLECTIVES["multi_allgatherv"]
        algorithm = choice(record, {"groups": groups}, context.machine).name
    sizes = {"groups": [group // unit for group in groups]}
    return context.schedule("multi_allgatherv", algorithm, sizes, unit)


@SEVERAL_READERS.reads("Alltoall")
def alltoall(
    context: SeveralContext, algorithm: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    return _alltoall_task(context, algorithm, sendbuf, recvbuf, is_irregular=False)


@SEVERAL_READERS.reads("Alltoallv")
def alltoallv(
    context: SeveralContext, algorithm: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    return _alltoall_task(context, algorithm, sendbuf, recvbuf, is_irregular=True)


def _alltoall_task(
    context: SeveralContext,
    algorithm: str,
    sendbuf: Any,
    recvbuf: Any,
    is_irregular: bool,
) -> Task:
    if algorithm == "auto":
        record = COLLECTIVES["multi_alltoallv"]
        algorithm = choice(record, {}, context.machine).name
    named("multi_alltoallv", algorithm)
    n = len(context.senders)
    if not n:
        return Task(algorithm=algorithm)
    if is_irregular:
        send = read_vector(sendbuf, n, writable=False)
        recv = read_vector(recvbuf, n)
    else:
        send = read_block(sendbuf, writable=False, n=n)
        recv = read_block(recvbuf, writable=True, n=n)
    check_disjoint(send, recv)
    sent, expected = send.sizes, recv.sizes
    if not is_irregular and sent[0] != expected[0]:
        raise ValueError(
            f"message: {sent[0]} bytes are sent to each, {expected[0]} received; "
            "blocks of different sizes are for Alltoallv"
        )
    table = OwnLines((context.size, context.size), sent, expected)
    sizes = {"sizes": context.sizes, "table": table}
    return Task(
        algorithm=algorithm,
        schedule=partial(context.schedule, "multi_alltoallv", algorithm, sizes),
        send=(send,),
        recv=(recv,),
        sent=dict(zip(context.senders, sent, strict=True)),
        expected=dict(zip(context.senders, expected, strict=True)),
    )
