"""The tasks of collectives from or to one rank of a group."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

from mpi4py import MPI

from ...choose.choice import LIBRARY_NAME
from ...collectives.collective import INSIDE
from ...collectives.known import Equal, listed, unit_of
from ...collectives.records import operations_of_blocks
from ...schedules.layout import GroupBlocks, OwnBlock
from ...schedules.registry import named
from ...schedules.schedule import Schedule
from ..buffers.operators import operator_for
from ..buffers.user_buffer import (
    UserBuffer,
    check_disjoint,
    read_block,
    read_vector,
)
from ..plan.native import (
    NO_BUFFER,
    NativeCall,
    block_spec,
    elements_spec,
    vector_spec,
)
from ..plan.question import ask_each, first_column
from ..plan.task import Task
from .inside import (
    OWN_BLOCK_HINT,
    UNROOTED_READERS,
    Counts,
    omits_own,
    read_operands,
    resolve_algorithm,
)
from .readers import BLOCKING, Readers
from .tasks import check_equal_counts, native_reduction

if TYPE_CHECKING:
    from ..context.intra import IntraContext

#: the readers of all operations inside one group
INSIDE_READERS = Readers(UNROOTED_READERS)
#: whether the MPI library's Reduce in place can end the program: that of MPICH 4.0,
#: with so many bytes and more, in groups that are no power of two
ENDS_REDUCE_IN_PLACE = ("MPICH",) < MPI.get_vendor() < ("MPICH", (4, 1, 0))
_ENDING_BYTES = 1 << 11
_ROOT_BLOCK_HINT = "; for a block that stays where it is, receive into MPI.IN_PLACE"


def _root_rank(context: IntraContext, root: SupportsIndex) -> int:
    """The rank of the root, which may be named by any integer, also one of numpy."""
    rank = index(root)
    if not 0 <= rank < context.p:
        raise ValueError(f"root {rank}: there are ranks 0 to {context.p - 1}")
    return rank


@INSIDE_READERS.reads("Bcast")
def bcast(
    context: IntraContext, algorithm: str, form: str, buf: Any, root: int
) -> Task:
    root = _root_rank(context, root)
    p, is_root = context.p, context.number == root
    data = read_block(buf, writable=not is_root)
    nbytes = data.nbytes
    is_native = algorithm == LIBRARY_NAME
    if not is_native:
        algorithm, is_native = resolve_algorithm(
            context,
            "Bcast",
            algorithm,
            form,
            nbytes,
            {"p": p, "m": nbytes, "root": root},
            hosts=context.placement.unequal_hosts,
        )
    task = Task(
        algorithm=LIBRARY_NAME if is_native else algorithm,
        send=(data,) if is_root else (),
        recv=() if is_root else (data,),
        root=root,
        sent=nbytes,
        expected={root: nbytes},
    )
    if is_native:
        spec = block_spec(data)
        native = NativeCall(
            "Bcast",
            send=spec if is_root else None,
            recv=None if is_root else spec,
        )
        return replace(task, native=native)
    unit = unit_of(nbytes)
    sizes = {"p": p, "m": nbytes // unit, "root": root}
    schedule = partial(context.schedule, "bcast", algorithm, sizes, unit)
    return replace(task, schedule=schedule, contributions=lambda: [nbytes] * p)


@INSIDE_READERS.reads("Reduce")
def reduce(
    context: IntraContext,
    algorithm: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op,
    root: int,
) -> Task:
    root = _root_rank(context, root)
    p, is_root = context.p, context.number == root
    is_in_place = is_root and omits_own(sendbuf)
    recv = read_block(recvbuf, writable=True) if is_root else None
    if recv is None:
        send = read_block(sendbuf, writable=False)
    else:
        send = recv if is_in_place else read_operands(sendbuf, recv)
        check_equal_counts(send, recv)
    operator, commutes = operator_for(op, send), op.is_commutative
    nbytes = send.nbytes
    # only the root knows that it is in place, and all ranks must choose alike
    may_end = ENDS_REDUCE_IN_PLACE and p & (p - 1) and nbytes >= _ENDING_BYTES
    algorithm, is_native = resolve_algorithm(
        context,
        "Reduce",
        algorithm,
        form,
        nbytes,
        {"p": p, "m": nbytes, "root": root},
        commutes,
        may_be_native=not may_end or form != BLOCKING,
        hosts=context.placement.unequal_hosts,
    )
    task = Task(
        algorithm=LIBRARY_NAME if is_native else algorithm,
        send=(send,),
        recv=() if recv is None else (recv,),
        operator=operator,
        is_in_place=is_in_place,
        root=root,
        sent=nbytes,
        expected=dict.fromkeys(context.senders, nbytes) if is_root else {},
    )
    if is_native and recv is None:
        specs = elements_spec(send), NO_BUFFER
        return replace(task, native=NativeCall("Reduce", *specs, is_bytes=False))
    if is_native and recv is not None:
        return replace(task, native=native_reduction("Reduce", send, recv, is_in_place))
    sizes = {"p": p, "m": send.counts[0], "root": root}
    schedule = partial(context.schedule, "reduce", algorithm, sizes, operator.extent)
    return replace(task, schedule=schedule, contributions=lambda: [nbytes] * p)


# -- blocks from all to the root, or from the root to all


def _blocks_task(
    operation: str,
    context: IntraContext,
    algorithm: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    root: int,
) -> Task:
    """The task of a Gather, Gatherv, Scatter or Scatterv.

    A rank has a single block; the root has also the buffer of all blocks, where the
    own block may stay.
    """
    root = _root_rank(context, root)
    p, is_root = context.p, context.number == root
    is_scatter, is_irregular = "Scatter" in operation, operation.endswith("v")
    own_spec, whole_spec = (recvbuf, sendbuf) if is_scatter else (sendbuf, recvbuf)
    own = whole = None
    if not (is_root and omits_own(own_spec)):
        own = read_block(own_spec, writable=is_scatter)
    if is_root and is_irregular:
        whole = read_vector(whole_spec, p, writable=not is_scatter)
    elif is_root:
        whole = read_block(whole_spec, writable=not is_scatter, n=p)
    if whole is not None and own is not None:
        _check_root_block(whole, own, root, is_scatter=is_scatter)
    own_bytes = 0
    if own is not None:
        own_bytes = own.nbytes
    elif whole is not None:
        own_bytes = whole.sizes[root]
    sizes = None if whole is None else whole.sizes
    algorithm, is_native = _resolve_blocks(
        context, operation, algorithm, form, own_bytes, root
    )
    send, recv = (whole, own) if is_scatter else (own, whole)
    sent: dict[int, int] = {root: own_bytes}
    expected = dict(zip(context.senders, sizes, strict=True)) if sizes else {}
    if is_scatter:
        sent, expected = expected, sent
    task = Task(
        algorithm=LIBRARY_NAME if is_native else algorithm,
        send=() if send is None else (send,),
        recv=() if recv is None else (recv,),
        own_block=root if is_root and own is None else None,
        root=root,
        sent=sent,
        expected=expected,
    )
    if is_native:
        spec_of_all = vector_spec if is_irregular else block_spec
        own_spec = None if own is None else block_spec(own)
        whole_spec = NO_BUFFER if whole is None else spec_of_all(whole)
        native = NativeCall(
            operation,
            send=whole_spec if is_scatter else own_spec,
            recv=own_spec if is_scatter else whole_spec,
        )
        return replace(task, native=native)
    collective = "scatterv" if is_scatter else "gatherv"
    schedule = partial(_schedule_of_blocks, context, collective, algorithm, root)
    schedule_of_counts = partial(_schedule_of_counts, schedule)
    if not is_irregular:
        group = Equal(p, own_bytes).blocks(1)
        return replace(
            task,
            schedule=partial(schedule, group),
            contributions=lambda: [own_bytes] * p,
        )
    if named(collective, algorithm).own_counts and p > 1:
        context.measure_costs_for(collective, algorithm)
        return replace(
            task,
            schedule=schedule_of_counts,
            question=ask_each(context.group, (own_bytes,), first_column),
            contributions=_answered_counts,
        )
    if sizes is None:
        own_block = OwnBlock(p, context.index, 0, own_bytes, own_bytes)
        return replace(task, schedule=partial(schedule, own_block))
    return replace(task, schedule=partial(schedule_of_counts, sizes))


def _check_root_block(
    whole: UserBuffer, own: UserBuffer, root: int, *, is_scatter: bool
) -> None:
    """Refuse a block of the root that overlaps the buffer of all blocks, or has a
    wrong size."""
    if is_scatter:
        check_disjoint(whole, own, _ROOT_BLOCK_HINT)
    else:
        check_disjoint(own, whole, OWN_BLOCK_HINT)
    sent, room = own.nbytes, whole.sizes[root]
    if is_scatter:
        sent, room = room, sent
    if sent != room:
        raise ValueError(
            f"message: this rank sends {sent} bytes, and has room for {room} of its own"
        )


def _resolve_blocks(
    context: IntraContext,
    operation: str,
    algorithm: str,
    form: str,
    own_bytes: int,
    root: int,
) -> tuple[str, bool]:
    """The algorithm for blocks, and whether the library's own call is taken instead.

    Sizes of irregular blocks have no influence, since only the root knows all of them.
    """
    sizes = {"p": context.p, "root": root}
    if operation.endswith("v"):
        return resolve_algorithm(context, operation, algorithm, form, None, sizes)
    return resolve_algorithm(
        context,
        operation,
        algorithm,
        form,
        own_bytes,
        sizes | {"k": own_bytes},
        hosts=context.placement.unequal_hosts,
    )


def _schedule_of_blocks(
    context: IntraContext,
    collective: str,
    algorithm: str,
    root: int,
    blocks: GroupBlocks,
) -> Schedule:
    sizes = {"counts": blocks, "root": root}
    return context.schedule(collective, algorithm, sizes, 1)


def _schedule_of_counts(schedule: partial[Schedule], counts: Counts) -> Schedule:
    return schedule(listed(counts).blocks(1))


def _answered_counts(counts: Counts) -> Counts:
    """The contributions of all ranks: the counts that ranks asked for."""
    return counts


for _operation in operations_of_blocks(INSIDE):
    INSIDE_READERS[_operation] = partial(_blocks_task, _operation)
