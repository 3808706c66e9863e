"""Agreement of all ranks before a redistribution or a remapping sends data."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from mpi4py import MPI

from ..context.context import Context
from ..waiting.errors import MismatchError

Value = TypeVar("Value")
#: probes without a message after which a rank rests before each further one
PROBES_WITHOUT_REST = 100
SECONDS_BETWEEN_PROBES = 20e-6
#: the class as errors name it
REDISTRIBUTION_CLASS = "isthmus.Redistribution"


def raise_everywhere(
    context: Context, error: str, name: str = REDISTRIBUTION_CLASS
) -> None:
    """Raise the error of the first rank that has one, on all ranks."""
    failed_rank = np.array(context.number if error else context.comm.size)
    context.comm.Allreduce(MPI.IN_PLACE, failed_rank, MPI.MIN)
    first = int(failed_rank)
    if first < context.comm.size:
        text = context.comm.bcast(error, first)
        raise MismatchError(f"{name}: {context.who(first)}: {text}")


def without_error(
    context: Context, make: Callable[[], Value], name: str = REDISTRIBUTION_CLASS
) -> Value:
    """The value that a rank makes; an exception on one rank is raised on all."""
    error, value, interruption = "", None, None
    try:
        value = make()
    except Exception as exception:
        error = f"{type(exception).__name__}: {exception}"
    except (
        BaseException
    ) as exception:  # a signal: all ranks hear of it before it goes on
        error, interruption = type(exception).__name__, exception
    try:
        raise_everywhere(context, error, name)
    except MismatchError:
        if interruption is not None:
            raise interruption from None
        raise
    return value  # type: ignore[return-value]


def agree(
    context: Context,
    comm: MPI.Intracomm,
    value: Any,
    words: Callable[[Any], str],
    name: str = REDISTRIBUTION_CLASS,
) -> None:
    """Raise on all ranks unless every rank of a communicator has the value of rank 0.

    `words` tells the value in an error.
    """
    first = comm.bcast(value if comm.rank == 0 else None)
    first_rank = context.who(
        0 if comm is context.comm else context.number - context.index
    )
    error = "" if value == first else f"{words(value)}, but {first_rank} {words(first)}"
    raise_everywhere(context, error, name)


def sparse_exchange(
    comm: MPI.Intracomm, rows: dict[int, np.ndarray], tag: int
) -> dict[int, np.ndarray]:
    """Arrays of integers from ranks to ranks of which each knows only the receivers of
    its own.

    It takes O(log n) rounds, and memory for a rank's own partners only. Hoefler,
    Siebert, Lumsdaine 2010: synchronous sends, then a nonblocking barrier.
    """
    received = {r: row for r, row in rows.items() if r == comm.rank}
    sends = [comm.Issend(row, r, tag) for r, row in rows.items() if r != comm.rank]
    barrier, status, probes = None, MPI.Status(), 0
    while True:
        probes += 1
        if probes > PROBES_WITHOUT_REST:
            time.sleep(SECONDS_BETWEEN_PROBES)  # another rank may need the core
        message = comm.Improbe(MPI.ANY_SOURCE, tag, status)
        if message is not None:
            buffer = np.empty(status.Get_count(MPI.INT64_T), np.int64)
            message.Recv(buffer)
            received[status.Get_source()] = buffer
            probes = 0
        elif barrier is None:
            if MPI.Request.Testall(sends):
                barrier = comm.Ibarrier()
        elif barrier.Test():
            return received
