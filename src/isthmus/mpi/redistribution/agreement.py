"""Agreement of all ranks before a redistribution or a remapping sends data.

A rank that raised alone would leave further ranks waiting in a collective, so an error
of a single rank is raised on all.
"""

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
#: the name of the class in errors
REDISTRIBUTION_CLASS = "isthmus.Redistribution"


def raise_everywhere(
    context: Context, error: str, name: str = REDISTRIBUTION_CLASS
) -> None:
    """Raise the error of the first failed rank on all ranks; collective."""
    failed_rank = np.array(context.number if error else context.comm.size)
    context.comm.Allreduce(MPI.IN_PLACE, failed_rank, MPI.MIN)
    first = int(failed_rank)
    if first < context.comm.size:
        text = context.comm.bcast(error, first)
        raise MismatchError(f"{name}: {context.who(first)}: {text}")


def without_error(
    context: Context, make: Callable[[], Value], name: str = REDISTRIBUTION_CLASS
) -> Value:
    """The value that `make` returns, or on all ranks the error of a single rank."""
    error, value, interruption = "", None, None
    try:
        value = make()
    except Exception as exception:
        error = f"{type(exception).__name__}: {exception}"
    except BaseException as exception:
        # a signal is raised only after the agreement: further ranks would hang
        # otherwise
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
    """Raise on all ranks unless all ranks of a communicator have the value of rank 0.

    `words` gives the value in words, for the error.
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
    """The arrays of integers received from ranks that are not known before; collective.

    `rows` has the array for each receiver. The exchange takes O(log n) rounds, and
    memory for the peers of a rank only, where an Alltoall needs memory for all ranks.
    Hoefler, Siebert and Lumsdaine 2010: synchronous sends, then a nonblocking barrier.
    A rank that enters the barrier knows that its messages were received, so that after
    the barrier none is under way.
    """
    received = {r: row for r, row in rows.items() if r == comm.rank}
    sends = [comm.Issend(row, r, tag) for r, row in rows.items() if r != comm.rank]
    barrier, status, probes = None, MPI.Status(), 0
    while True:
        probes += 1
        if probes > PROBES_WITHOUT_REST:  # a sender may need the core
            time.sleep(SECONDS_BETWEEN_PROBES)
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
