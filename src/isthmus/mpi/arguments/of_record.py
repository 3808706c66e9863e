"""The arguments of a collective of which there is only a record.

MPI's own operations have readers of their own, as each has its rules for counts, roots
and MPI.IN_PLACE. A collective that somebody adds is read by what its record says that a
rank gives and gets: a vector, a block, or a block for each.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ...choose.by_cost import by_cost
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

#: the sizes that follow from what a rank passes; a record with others is not read
_READABLE = {"p", "q", "m", "k", "ka", "kb"}


def reader_of(operation: str, groups: int) -> Reader:
    """Reads the arguments of an operation by the record that makes it."""
    record = record_of(operation, groups)
    if record.is_rooted or not record.example.keys() <= _READABLE:
        sizes = ", ".join(record.example)
        raise TypeError(
            f"{operation}: isthmus reads the arguments of collectives without a root, "
            f"of sizes p, q, m, k, ka and kb; the record {record.name!r} has {sizes}"
        )
    return partial(_read, record)


def _read(
    record: Collective,
    c: Context,
    name: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op,
) -> Task:
    if record.gives == NOTHING:
        schedule = partial(c.schedule, record.name, name, _sizes(record, c, 0, 0))
        return Task(algorithm=name, schedule=schedule)
    send = _buffer(c, record.gives, sendbuf, writable=False)
    recv = _buffer(c, record.gets, recvbuf, writable=True)
    check_disjoint(send, recv)
    operator: Operator | None = None
    sent, received = send.sizes[0], recv.sizes[0]
    unit = unit_of(sent | received)
    if record.combines:
        operator = operator_for(op, recv)
        unit = operator.extent
    sizes = _sizes(record, c, sent // unit, received // unit)
    if name == "auto":
        is_ordered = operator is not None and not operator.op.is_commutative
        choice = by_cost(record, sizes, unit, c.machine, is_ordered=is_ordered)
        log_choice(record.operations[0], choice)
        name = choice.name
    elif record.groups == BETWEEN:
        named(record.name, name)
    else:
        fitting(record.name, name, c.size)
    return Task(
        algorithm=name,
        schedule=partial(c.schedule, record.name, name, sizes, unit),
        send=(send,),
        recv=(recv,),
        operator=operator,
    )


def _buffer(c: Context, shape: str, spec: Any, *, writable: bool) -> UserBuffer:
    """A vector or a block as one, or a block for each rank that takes part."""
    n = len(c.senders) if shape == BLOCKS else 1
    return read_block(spec, writable=writable, n=n)


def _sizes(record: Collective, c: Context, sent: int, received: int) -> Sizes:
    """The sizes of a record, where this rank sends and receives so many elements of a
    block or vector."""
    here, there = len(c.group), c.size - len(c.group)
    is_second = c.group.start > 0
    p, q = (there, here) if is_second else (here, there)
    own, other = sent, received
    if record.gives == VECTOR and record.gets == BLOCK:  # both groups' parts of a sum
        own, other = received, sent // max(there, 1)
    ka, kb = (other, own) if is_second else (own, other)
    known = {"p": p, "q": q, "m": sent, "k": sent, "ka": ka, "kb": kb}
    return {name: known[name] for name in record.example}
