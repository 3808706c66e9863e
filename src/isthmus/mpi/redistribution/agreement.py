"""What all ranks of a redistribution must agree on before anything is sent."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from mpi4py import MPI

from ..context.context import Context
from ..waiting.errors import MismatchError

Value = TypeVar("Value")
#: so many times a rank looks for a message before it rests between two looks
LOOKS = 100
REST_SECONDS = 20e-6
NAME = "isthmus.Redistribution"


def raise_everywhere(context: Context, error: str, name: str = NAME) -> None:
    """Raise the error of the first rank that has one, on all ranks."""
    mine = np.array(context.number if error else context.comm.size)
    context.comm.Allreduce(MPI.IN_PLACE, mine, MPI.MIN)
    first = int(mine)
    if first < context.comm.size:
        text = context.comm.bcast(error, first)
        raise MismatchError(f"{name}: {context.who(first)}: {text}")


def without_error(
    context: Context, make: Callable[[], Value], name: str = NAME
) -> Value:
    """What a rank makes; what one of them raises, all raise."""
    error, made, stop = "", None, None
    try:
        made = make()
    except Exception as wrong:
        error = f"{type(wrong).__name__}: {wrong}"
    except BaseException as wrong:  # a signal: the others hear of it, and it goes on
        error, stop = type(wrong).__name__, wrong
    try:
        raise_everywhere(context, error, name)
    except MismatchError:
        if stop is not None:
            raise stop from None
        raise
    return made  # type: ignore[return-value]


def agree(
    context: Context,
    comm: MPI.Intracomm,
    value: Any,
    words: Callable[[Any], str],
    name: str = NAME,
) -> None:
    """Raise on all ranks unless all of a communicator have the value of its rank 0."""
    first = comm.bcast(value if comm.rank == 0 else None)
    who = context.who(0 if comm is context.comm else context.number - context.index)
    error = "" if value == first else f"{words(value)}, but {who} {words(first)}"
    raise_everywhere(context, error, name)


def sparse_exchange(
    comm: MPI.Intracomm, rows: dict[int, np.ndarray], tag: int
) -> dict[int, np.ndarray]:
    """Numbers to some ranks, from whoever sends some; O(log n) rounds, and memory for
    own partners only. Hoefler, Siebert, Lumsdaine 2010: synchronous sends, then a
    nonblocking barrier."""
    found = {r: x for r, x in rows.items() if r == comm.rank}
    sends = [comm.Issend(x, r, tag) for r, x in rows.items() if r != comm.rank]
    barrier, status, looks = None, MPI.Status(), 0
    while True:
        looks += 1
        if looks > LOOKS:
            time.sleep(REST_SECONDS)  # others may need the core
        message = comm.Improbe(MPI.ANY_SOURCE, tag, status)
        if message is not None:
            buffer = np.empty(status.Get_count(MPI.INT64_T), np.int64)
            message.Recv(buffer)
            found[status.Get_source()] = buffer
            looks = 0
        elif barrier is None:
            if MPI.Request.Testall(sends):
                barrier = comm.Ibarrier()
        elif barrier.Test():
            return found
