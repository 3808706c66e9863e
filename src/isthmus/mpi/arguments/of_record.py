"""The tasks of a collective that is known by its record alone.

Each of MPI's own operations has a reader, since rules for counts, roots and
MPI.IN_PLACE differ. A collective that a user adds has none. The record says what a rank
gives and gets (a vector, a block, or a block for each rank), and the arguments are read
accordingly.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ...choose.choice import choice
from ...collectives.collective import (
    BETWEEN,
    BLOCK,
    BLOCKS,
    NOTHING,
    VECTOR,
    Collective,
    Sizes,
)
from ...collectives.known import unit_of
from ...collectives.records import record_of
from ...schedules.registry import fitting, named
from ..buffers.operators import Operator, operator_for
from ..buffers.user_buffer import UserBuffer, check_disjoint, read_block
from ..plan.task import Task
from .choosing import log_choice

if TYPE_CHECKING:
    from ..context.context import Context
    from .readers import Reader

#: the sizes that follow from a rank's arguments; a record with other sizes has no
#: reader
_READABLE_SIZES = {"p", "q", "m", "k", "ka", "kb"}


def reader_of(operation: str, groups: int) -> Reader:
    """The reader of an operation that has a record only."""
    record = record_of(operation, groups)
    if record.is_rooted or not record.example.keys() <= _READABLE_SIZES:
        sizes = ", ".join(record.example)
        raise TypeError(
            f"{operation}: isthmus reads the arguments of collectives without a root, "
            f"of sizes p, q, m, k, ka and kb; the record {record.name!r} has {sizes}"
        )
    return partial(_read, record)


def _read(
    record: Collective,
    context: Context,
    algorithm: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op,
) -> Task:
    if record.gives == NOTHING:
        sizes = _sizes(record, context, 0, 0)
        schedule = partial(context.schedule, record.name, algorithm, sizes)
        return Task(algorithm=algorithm, schedule=schedule)
    send = _read_buffer(context, record.gives, sendbuf, writable=False)
    recv = _read_buffer(context, record.gets, recvbuf, writable=True)
    check_disjoint(send, recv)
    operator: Operator | None = None
    sent, received = send.sizes[0], recv.sizes[0]
    unit = unit_of(sent | received)
    if record.combines:
        operator = operator_for(op, recv)
        unit = operator.extent
    sizes = _sizes(record, context, sent // unit, received // unit)
    if algorithm == "auto":
        is_ordered = operator is not None and not operator.op.is_commutative
        in_bytes = _sizes(record, context, sent, received)
        best = choice(record, in_bytes, context.machine, is_ordered=is_ordered)
        log_choice(record.operations[0], best)
        algorithm = best.name
    elif record.groups == BETWEEN:
        named(record.name, algorithm)
    else:
        fitting(record.name, algorithm, context.size)
    return Task(
        algorithm=algorithm,
        schedule=partial(context.schedule, record.name, algorithm, sizes, unit),
        send=(send,),
        recv=(recv,),
        operator=operator,
    )


def _read_buffer(
    context: Context, shape: str, spec: Any, *, writable: bool
) -> UserBuffer:
    """A buffer that holds a vector, a block, or a block for each sender."""
    n = len(context.senders) if shape == BLOCKS else 1
    return read_block(spec, writable=writable, n=n)


def _sizes(record: Collective, context: Context, sent: int, received: int) -> Sizes:
    """The sizes that a record names, of all groups.

    `sent` and `received` are the elements of this rank's vector, or of one block.
    """
    here, there = len(context.group), context.size - len(context.group)
    is_second = context.group.start > 0
    p, q = (there, here) if is_second else (here, there)
    local, remote = sent, received
    if record.gives == VECTOR and record.gets == BLOCK:
        # a reduction cut into blocks: a group's size is what its ranks receive
        local, remote = received, sent // max(there, 1)
    ka, kb = (remote, local) if is_second else (local, remote)
    known = {"p": p, "q": q, "m": sent, "k": sent, "ka": ka, "kb": kb}
    return {name: known[name] for name in record.example}
