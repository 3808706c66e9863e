"""The arguments of collectives among several groups."""

from __future__ import annotations

from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ...choose.several import allgatherv as choose_allgatherv
from ...collectives.known import OwnLines, unit_of
from ...schedules.registry import named, resolve
from ...schedules.schedule import Schedule
from ..buffers.user_buffer import UserBuffer, check_disjoint, read_block, read_vector
from ..plan.question import ask_each, first_column
from ..plan.task import Data, Task
from .readers import Readers

if TYPE_CHECKING:
    from ..context.several import SeveralContext

Counts = tuple[int, ...]
#: what reads the arguments of operations among several groups
READERS = Readers()


def known(c: SeveralContext, name: str) -> None:
    """Refuse an unknown algorithm."""
    if name != "auto":
        resolve("multi_allgatherv", name)


def _ends(
    c: SeveralContext, sendbuf: Any, recvbuf: Any, is_irregular: bool
) -> tuple[UserBuffer, UserBuffer]:
    send, n = read_block(sendbuf, writable=False), len(c.senders)
    if is_irregular and n:
        recv = read_vector(recvbuf, n)
    elif n:
        recv = read_block(recvbuf, writable=True, n=n)
    else:
        recv = UserBuffer(None, 0, MPI.BYTE, (), ())
    check_disjoint(send, recv)
    return send, recv


@READERS.reads("Allgather")
def allgather(
    c: SeveralContext, name: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    """Allgather."""
    known(c, name)
    send, recv = _ends(c, sendbuf, recvbuf, is_irregular=False)
    if c.senders and send.nbytes != recv.sizes[0]:
        raise ValueError(
            f"message: this rank sends {send.nbytes} bytes and receives "
            f"{recv.sizes[0]} from each; blocks of different sizes are for Allgatherv"
        )
    own = (send.nbytes,) * c.sizes[c.mine]
    schedule = partial(_gathering, c, name, recv, own)
    return _gathered(c, name, send, recv, schedule=schedule)


@READERS.reads("Allgatherv")
def allgatherv(
    c: SeveralContext, name: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    """Allgatherv."""
    known(c, name)
    return gathered(c, name, form, *_ends(c, sendbuf, recvbuf, is_irregular=True))


def gathered(c: SeveralContext, name: str, form: str, send: Data, recv: Data) -> Task:
    """The task of an Allgatherv, of data that may lie in several places."""
    question = ask_each(c.group, [send.nbytes], first_column)
    schedule = partial(_gathering, c, name, recv)
    return _gathered(c, name, send, recv, question=question, schedule=schedule)


def _gathering(c: SeveralContext, name: str, recv: Data, own: Counts) -> Schedule:
    """The schedule of an Allgatherv, once the counts of the own group are known."""
    sizes = recv.sizes
    counts = np.array((*sizes[: c.base], *own, *sizes[c.base :]), np.int64)
    unit = unit_of(int(np.bitwise_or.reduce(counts)))
    ends = accumulate(c.sizes, initial=0)
    groups = [counts[low:high] for low, high in pairwise(ends)]
    if name == "auto":
        name = choose_allgatherv(groups, c.machine).name
    of_units = [x // unit for x in groups]
    return c.schedule("multi_allgatherv", name, {"groups": of_units}, unit)


def _gathered(
    c: SeveralContext, name: str, send: Data, recv: Data, **more: Any
) -> Task:
    expected = dict(zip(c.senders, recv.sizes, strict=True))
    ends: dict[str, Any] = {"send": (send,), "recv": (recv,), "sent": send.nbytes}
    return Task(algorithm=name, expected=expected, **ends, **more)


@READERS.reads("Alltoall")
def alltoall(
    c: SeveralContext, name: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    """Alltoall."""
    return _exchange(c, name, sendbuf, recvbuf, is_irregular=False)


@READERS.reads("Alltoallv")
def alltoallv(
    c: SeveralContext, name: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    """Alltoallv."""
    return _exchange(c, name, sendbuf, recvbuf, is_irregular=True)


def _exchange(
    c: SeveralContext, name: str, sendbuf: Any, recvbuf: Any, is_irregular: bool
) -> Task:
    if name == "auto":
        name = "rotated"
    named("multi_alltoallv", name)
    n = len(c.senders)
    if not n:
        return Task(algorithm=name)
    if is_irregular:
        send = read_vector(sendbuf, n, writable=False)
        recv = read_vector(recvbuf, n)
    else:
        send = read_block(sendbuf, writable=False, n=n)
        recv = read_block(recvbuf, writable=True, n=n)
    check_disjoint(send, recv)
    sizes = send.sizes, recv.sizes
    if not is_irregular and sizes[0][0] != sizes[1][0]:
        raise ValueError(
            f"message: {sizes[0][0]} bytes are sent to each, {sizes[1][0]} received; "
            "blocks of different sizes are for Alltoallv"
        )
    table = OwnLines((c.size, c.size), *sizes)
    tables = {"sizes": c.sizes, "table": table}
    schedule = partial(c.schedule, "multi_alltoallv", name, tables)
    sent, expected = (dict(zip(c.senders, x, strict=True)) for x in sizes)
    return Task(
        algorithm=name,
        schedule=schedule,
        send=(send,),
        recv=(recv,),
        sent=sent,
        expected=expected,
    )
