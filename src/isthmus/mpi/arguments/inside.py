"""The tasks of collectives inside one group, without a root.

By MPI's rules a rank knows all sizes of an operation, except in an Alltoallv and in a
Reduce_scatter without counts, whose tasks may have a question. A call without a named
algorithm may be left to the MPI library. All ranks must decide alike, so a decision
looks only at values equal on all ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ...choose.choice import LIBRARY_NAME, SHORT_BYTES, Choice, check, choice
from ...choose.tuning import BUILT_IN
from ...collectives.collective import INSIDE, Sizes
from ...collectives.known import CountTable, Equal, Group, OwnLines, listed, unit_of
from ...collectives.records import COLLECTIVES, record_of
from ...cost.machine import Machine
from ...schedules.hosts import Hosts
from ...schedules.registry import fitting, named
from ...schedules.schedule import Schedule
from ..buffers.operators import operator_for
from ..buffers.user_buffer import (
    UserBuffer,
    check_disjoint,
    integers,
    read_block,
    read_vector,
)
from ..plan.native import (
    NativeCall,
    block_spec,
    vector_spec,
)
from ..plan.question import Question, ask_each, first_column
from ..plan.task import Contributions, Data, Task
from .choosing import log_choice
from .readers import INTERNAL, NONBLOCKING, PERSISTENT, Readers
from .tasks import (
    alltoall_task,
    check_equal_counts,
    check_scattered_counts,
    native_reduction,
    reduction_task,
)

if TYPE_CHECKING:
    from ..context.intra import IntraContext

Counts = tuple[int, ...]
#: the readers of operations inside one group that have no root
UNROOTED_READERS = Readers()
OWN_BLOCK_HINT = "; for data that are in their place already, send MPI.IN_PLACE"
IN_PLACE_HINT = "; for data that are where results go, send MPI.IN_PLACE"


def omits_own(buffer: Any) -> bool:
    """Whether MPI.IN_PLACE, or None, stands for a buffer."""
    return buffer is None or buffer is MPI.IN_PLACE


def leaves_to_library(
    context: IntraContext, form: str, nbytes: int | None, is_faster: bool
) -> bool:
    """Whether a call without a named algorithm is left to the MPI library.

    A nonblocking call of few bytes is, since nothing beats the library's own request.
    Without threads every nonblocking call is, since MPI alone brings such calls
    forward. A persistent call is not: the rounds of a plan need no more time than the
    library's.
    """
    if form in (PERSISTENT, INTERNAL):
        return False
    if form == NONBLOCKING and context.p > 1:
        is_short = nbytes is not None and nbytes < SHORT_BYTES
        return is_faster or is_short or not context.threads
    return is_faster


def check_algorithm(context: IntraContext, collective: str, algorithm: str) -> None:
    """Refuse an algorithm that is unknown or not for the size of the group."""
    if algorithm not in ("auto", LIBRARY_NAME):
        fitting(collective, algorithm, context.p)


def resolve_algorithm(
    context: IntraContext,
    operation: str,
    algorithm: str,
    form: str,
    nbytes: int | None,
    sizes: Sizes,
    commutative: bool = True,
    *,
    may_be_native: bool = True,
    hosts: Hosts | None = None,
) -> tuple[str, bool]:
    """The algorithm of a call, and whether the MPI library's own call is taken instead.

    A named algorithm is checked. `hosts` are those of a call with a root, if unequal.
    """
    record = record_of(operation, INSIDE)
    if algorithm != "auto":
        fitting(record.name, algorithm, context.p)
        check(record.name, algorithm, commutative)
        return algorithm, False
    costs, is_ordered = partial(_machine_of, context), not commutative
    best = choice(record, sizes, costs, is_ordered=is_ordered, hosts=hosts)
    if not may_be_native:
        best = replace(best, name=best.algorithm)
    log_choice(operation, best)
    is_faster = best.name == LIBRARY_NAME or context.device == "direct"
    return best.algorithm, leaves_to_library(context, form, nbytes, is_faster)


def _machine_of(context: IntraContext) -> Machine:
    """The costs of messages, which all ranks measure together at the first need."""
    return context.machine


# -- Allgather(v)


@UNROOTED_READERS.reads("Allgather")
def allgather(
    context: IntraContext, algorithm: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    recv = read_block(recvbuf, writable=True, n=context.p)
    native = NativeCall("Allgather", recv=block_spec(recv))
    return _read_allgather(context, algorithm, form, sendbuf, recv, native)


@UNROOTED_READERS.reads("Allgatherv")
def allgatherv(
    context: IntraContext, algorithm: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    recv = read_vector(recvbuf, context.p)
    native = NativeCall("Allgatherv", recv=vector_spec(recv))
    return _read_allgather(context, algorithm, form, sendbuf, recv, native)


def _read_allgather(
    context: IntraContext,
    algorithm: str,
    form: str,
    sendbuf: Any,
    recv: UserBuffer,
    native: NativeCall,
) -> Task:
    check_algorithm(context, "allgatherv", algorithm)
    if omits_own(sendbuf):
        return allgather_task(context, algorithm, form, None, recv, native)
    send = read_block(sendbuf, writable=False)
    check_disjoint(send, recv, OWN_BLOCK_HINT)
    expected, sent = recv.sizes[context.index], send.nbytes
    if sent != expected:
        raise ValueError(
            f"message: this rank sends {sent} bytes, and has room for {expected} "
            "of its own"
        )
    native = replace(native, send=block_spec(send))
    return allgather_task(context, algorithm, form, send, recv, native)


def allgather_task(
    context: IntraContext,
    algorithm: str,
    form: str,
    send: Data | None,
    recv: Data,
    native: NativeCall | None,
) -> Task:
    """The task of an Allgather or Allgatherv.

    Without `send`, the own block lies in the receive buffer. `native` is None for
    Python objects, since the MPI library has no call for data in several places.
    """
    sizes, total = recv.sizes, sum(recv.sizes)
    is_auto = algorithm == "auto"
    if is_auto:
        is_irregular = native is None or native.name == "Allgatherv"
        known: Sizes = {"p": len(sizes), "k": sizes[0]}
        if is_irregular:
            known = {"counts": np.array(sizes, np.int64)}
        record, costs = COLLECTIVES["allgatherv"], partial(_machine_of, context)
        best = choice(record, known, costs)
        log_choice("Allgather" + "v" * is_irregular, best)
        algorithm = best.name
        is_faster = algorithm == LIBRARY_NAME
        if native is not None and leaves_to_library(context, form, total, is_faster):
            algorithm = LIBRARY_NAME
    has_no_native = native is None or form == INTERNAL
    needs_rounds = has_no_native or (form == PERSISTENT and is_auto)
    if algorithm == LIBRARY_NAME and needs_rounds:
        from ...algorithms.parts.stages import stage_for

        algorithm = stage_for(context.p, total)
    task = Task(
        algorithm=algorithm,
        send=() if send is None else (send,),
        recv=(recv,),
        sent=sizes[context.index],
        expected=dict(zip(context.senders, sizes, strict=True)),
        own_block=context.index,
    )
    if algorithm == LIBRARY_NAME and native is not None:
        return replace(task, native=native)
    schedule = partial(_allgather_schedule, context, algorithm, _group(sizes))
    return replace(task, schedule=schedule, contributions=lambda: sizes)


def _allgather_schedule(
    context: IntraContext, algorithm: str, group: Group
) -> Schedule:
    unit = unit_of(group.bits)
    sizes = {"counts": group.blocks(unit)}
    return context.schedule("allgatherv", algorithm, sizes, unit)


def _group(sizes: Counts) -> Group:
    """The group of ranks, from the bytes of each block."""
    if min(sizes) == max(sizes):
        return Equal(len(sizes), sizes[0])
    return listed(sizes)


# -- reductions


def read_operands(sendbuf: Any, recv: UserBuffer, *, blocks: int = 1) -> UserBuffer:
    """The vector to combine, of the datatype of `recv` and apart from it.

    A count in `sendbuf` is the count of a block, as in mpi4py; the vector is all
    blocks together.
    """
    send = read_block(sendbuf, writable=False, n=blocks)
    counts, displacements = (sum(send.counts),), send.displacements[:1]
    send = replace(send, counts=counts, displacements=displacements)
    if send.datatype != recv.datatype:
        raise ValueError("message: the types of what is sent and received differ")
    check_disjoint(send, recv, IN_PLACE_HINT)
    return send


@UNROOTED_READERS.reads("Allreduce")
def allreduce(
    context: IntraContext,
    algorithm: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op,
) -> Task:
    recv, is_in_place = read_block(recvbuf, writable=True), omits_own(sendbuf)
    send = recv if is_in_place else read_operands(sendbuf, recv)
    operator = operator_for(op, recv)
    check_equal_counts(send, recv)
    p, nbytes, commutes = context.p, send.nbytes, op.is_commutative
    known = {"p": p, "m": nbytes}
    algorithm, is_native = resolve_algorithm(
        context, "Allreduce", algorithm, form, nbytes, known, commutes
    )
    task = reduction_task(
        context, algorithm, send, recv, operator, is_in_place=is_in_place
    )
    if is_native:
        native = native_reduction("Allreduce", send, recv, is_in_place)
        return replace(task, native=native)
    sizes = {"p": p, "m": send.counts[0]}
    schedule = partial(context.schedule, "allreduce", algorithm, sizes, operator.extent)
    return replace(task, schedule=schedule)


@UNROOTED_READERS.reads("Reduce_scatter_block")
def reduce_scatter_block(
    context: IntraContext,
    algorithm: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op,
) -> Task:
    is_in_place = omits_own(sendbuf)
    if is_in_place:
        blocks = read_block(recvbuf, writable=True, n=context.p)
        start, total = blocks.displacements[:1], (sum(blocks.counts),)
        send = replace(blocks, displacements=start, counts=total)
        recv = blocks.block(0)
    else:
        recv = read_block(recvbuf, writable=True)
        send = read_operands(sendbuf, recv, blocks=context.p)
    block_count = recv.counts[0]
    if send.counts[0] != block_count * context.p:
        raise ValueError(
            f"message: {send.counts[0]} elements are sent, and {block_count} received "
            f"by each of {context.p}"
        )
    return _reduce_scatter_task(
        context,
        "Reduce_scatter_block",
        algorithm,
        form,
        send,
        recv,
        op,
        (block_count,) * context.p,
        is_in_place,
    )


@UNROOTED_READERS.reads("Reduce_scatter")
def reduce_scatter(
    context: IntraContext,
    algorithm: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    recvcounts: Sequence[int] | None,
    op: MPI.Op,
) -> Task:
    """The task of a Reduce_scatter; without `recvcounts`, ranks ask for the counts."""
    recv = read_block(recvbuf, writable=True)
    counts = None
    if recvcounts is not None:
        counts = integers(recvcounts, context.p, "counts")
        if min(counts) < 0:
            raise ValueError(f"message: negative count {min(counts)}")
    is_in_place = omits_own(sendbuf)
    if is_in_place:
        if counts is None:
            raise TypeError("message: expecting counts with MPI.IN_PLACE")
        send, recv = recv, replace(recv, counts=(counts[context.index],))
    else:
        send = read_operands(sendbuf, recv)
    own, total = recv.counts[0], send.counts[0]
    if counts is not None:
        check_scattered_counts(counts, context.index, own=own, total=total)
    return _reduce_scatter_task(
        context,
        "Reduce_scatter",
        algorithm,
        form,
        send,
        recv,
        op,
        counts,
        is_in_place,
    )


def _reduce_scatter_task(
    context: IntraContext,
    operation: str,
    algorithm: str,
    form: str,
    send: UserBuffer,
    recv: UserBuffer,
    op: MPI.Op,
    counts: Counts | None,
    is_in_place: bool,
) -> Task:
    """The task of a reduction whose result is cut into blocks of `counts` elements.

    Without counts, ranks ask each other, and the call is never left to the library,
    because the library's own call needs the counts.
    """
    operator, commutes = operator_for(op, recv), op.is_commutative
    nbytes = None
    known: Sizes = {"p": context.p}
    if counts is not None:
        nbytes = send.nbytes
        known = {"counts": np.array(counts, np.int64) * recv.datatype.Get_size()}
    algorithm, is_native = resolve_algorithm(
        context,
        operation,
        algorithm,
        form,
        nbytes,
        known,
        commutes,
        may_be_native=counts is not None,
    )
    task = reduction_task(
        context, algorithm, send, recv, operator, is_in_place=is_in_place
    )
    if is_native and counts is not None:
        # with MPI.IN_PLACE, mpi4py's Reduce_scatter takes the count of all blocks; for
        # equal blocks mpi4py takes the count of one
        is_block = operation == "Reduce_scatter_block"
        native_recv = send if is_in_place and not is_block else recv
        native_send = replace(send, counts=(recv if is_block else send).counts)
        native = native_reduction(operation, native_send, native_recv, is_in_place)
        return replace(task, native=native)

    def schedule(counts: Counts) -> Schedule:
        sizes = {"counts": counts}
        return context.schedule("reduce_scatter", algorithm, sizes, operator.extent)

    if counts is None:
        context.measure_costs_for("reduce_scatter", algorithm)
        question = ask_each(context.group, recv.counts, first_column)
        return replace(task, schedule=schedule, question=question)
    return replace(task, schedule=partial(schedule, counts))


# -- a block to each rank


@UNROOTED_READERS.reads("Alltoall")
def alltoall(
    context: IntraContext, algorithm: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    p = context.p
    recv = read_block(recvbuf, writable=True, n=p)
    is_in_place = omits_own(sendbuf)
    send = recv if is_in_place else read_block(sendbuf, writable=False, n=p)
    if not is_in_place:
        check_disjoint(send, recv, IN_PLACE_HINT)
    block_bytes = send.sizes[0]
    if block_bytes != recv.sizes[0]:
        raise ValueError(
            f"message: {block_bytes} bytes are sent to each, {recv.sizes[0]} received"
        )
    known = {"p": p, "k": block_bytes}
    algorithm, is_native = resolve_algorithm(
        context, "Alltoall", algorithm, form, block_bytes * p, known
    )
    task = alltoall_task(
        context,
        algorithm,
        (send,),
        (recv,),
        send.sizes,
        recv.sizes,
        is_in_place=is_in_place,
    )
    if is_native:
        send_spec = None if is_in_place else block_spec(send)
        native = NativeCall("Alltoall", send_spec, block_spec(recv))
        return replace(task, native=native)
    unit = unit_of(block_bytes)
    sizes = {"p": p, "k": block_bytes // unit}
    schedule = partial(context.schedule, "alltoall", algorithm, sizes, unit)
    return replace(task, schedule=schedule, contributions=lambda: [block_bytes] * p)


@UNROOTED_READERS.reads("Alltoallv")
def alltoallv(
    context: IntraContext, algorithm: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    """The task of an Alltoallv, in which no rank knows all sizes.

    Ranks ask for sizes only if the algorithm needs further sizes, or if Bruck's
    algorithm may be faster by so much that a question pays.
    """
    p, is_in_place = context.p, omits_own(sendbuf)
    recv = read_vector(recvbuf, p)
    send = recv if is_in_place else read_vector(sendbuf, p, writable=False)
    if not is_in_place:
        check_disjoint(send, recv, IN_PLACE_HINT)
    question: Question | None = None
    contributions: Callable[..., Contributions] | None = None
    if algorithm == "auto":
        machine = context.tuned or BUILT_IN
        best = choice(COLLECTIVES["alltoallv"], {"p": p, "k": 0}, machine).name
        is_direct = best in (LIBRARY_NAME, "rotated")
        if context.device != "direct" and not is_direct:
            question = _ask_largest(context, send)
        else:
            algorithm = "rotated"
            if leaves_to_library(context, form, None, is_faster=True):
                log_choice("Alltoallv", Choice(LIBRARY_NAME, f"on {p} processes"))
                send_spec = None if is_in_place else vector_spec(send)
                native = NativeCall("Alltoallv", send_spec, vector_spec(recv))
                task = alltoall_task(
                    context,
                    algorithm,
                    (send,),
                    (recv,),
                    send.sizes,
                    recv.sizes,
                    is_in_place=is_in_place,
                )
                return replace(task, native=native)
    else:
        entry = fitting("alltoallv", algorithm, p)
        context.measure_costs_for("alltoallv", algorithm)
        if entry.node_memory:
            question = ask_each(
                context.group, send.sizes, lambda rows: (algorithm, CountTable(rows))
            )
            contributions = _row_sums
        elif entry.own_counts and p > 1:  # needs counts of the whole group
            question = _ask_passing(context, algorithm, send)
    own_algorithm = algorithm

    def schedule(
        algorithm: str = own_algorithm, answer: CountTable | bytes = b""
    ) -> Schedule:
        table: CountTable | OwnLines
        if isinstance(answer, CountTable):
            table = answer
        else:
            table = _own_lines(context, send, recv, answer)
        return context.schedule("alltoallv", algorithm, {"table": table})

    task = alltoall_task(
        context,
        algorithm,
        (send,),
        (recv,),
        send.sizes,
        recv.sizes,
        is_in_place=is_in_place,
    )
    return replace(
        task, schedule=schedule, question=question, contributions=contributions
    )


def _own_lines(
    context: IntraContext, send: UserBuffer, recv: UserBuffer, passing: bytes
) -> OwnLines:
    """The own row and column of the count table, and the counts that pass through.

    `passing` is the answer of `_ask_passing`, empty if nobody asked. A single rank need
    not ask, because only the own block passes through.
    """
    p, row, column = context.p, send.sizes, recv.sizes
    counts = np.frombuffer(passing, np.int64) if passing else np.array(row)
    is_known = bool(passing) or p == 1
    levels = counts.reshape(-1, p) if is_known else None
    return OwnLines((p, p), row, column, passing=levels)


def _row_sums(algorithm: str, table: CountTable) -> Contributions:
    sums: list[int] = table.rows.sum(1).tolist()
    return sums


def _ask_largest(context: IntraContext, send: UserBuffer) -> Question:
    """The question for the largest block of all ranks, the size to choose by; Bruck's
    algorithm needs a second question."""
    record, machine = COLLECTIVES["alltoallv"], context.machine

    def read(answer: bytes) -> tuple[Any, ...] | Question:
        largest = int(np.frombuffer(answer, np.int64).max())
        best = choice(record, {"p": context.p, "k": largest}, machine)
        log_choice("Alltoallv", best)
        if named("alltoallv", best.algorithm).own_counts:
            return _ask_passing(context, best.algorithm, send)
        return (best.algorithm,)

    said = np.array([max(send.sizes)], np.int64).tobytes()
    return Question(said, read, context.group, is_local=True)


def _ask_passing(
    context: IntraContext,
    algorithm: str,
    send: UserBuffer,
    level: int = 0,
    rows: bytes = b"",
) -> Question:
    """The question for the sizes of the blocks that pass through this rank.

    Bruck's algorithm moves blocks by the digits of their ways, a digit at a time. The
    sizes travel ahead on the ways of the blocks, with a question for each digit. Row l
    of `rows` has, by way, the sizes held before the blocks move by digit l.
    """
    from ...algorithms.alltoallv import digits

    p, rank = context.p, context.number
    levels = digits(p, named("alltoallv", algorithm).options["radix"])
    if not rows:
        rows = np.array(send.sizes, np.int64)[(rank + np.arange(p)) % p].tobytes()
    sizes = np.frombuffer(rows, np.int64).reshape(-1, p)[-1].copy()
    steps = levels[level]
    messages = [sizes[ways].tobytes() for _, ways in steps]
    starts = np.cumsum([0, *map(len, messages)]).tolist()
    sends = tuple(
        ((rank + distance) % p, starts[i], len(messages[i]))
        for i, (distance, _) in enumerate(steps)
    )
    receives = tuple(
        ((rank - distance) % p, len(messages[i]))
        for i, (distance, _) in enumerate(steps)
    )

    def read(answer: bytes) -> tuple[Any, ...] | Question:
        for i, (_, ways) in enumerate(steps):
            message = answer[starts[i] : starts[i + 1]]
            sizes[ways] = np.frombuffer(message, np.int64)
        next_rows = rows + sizes.tobytes()
        if level + 1 < len(levels):
            return _ask_passing(context, algorithm, send, level + 1, next_rows)
        return algorithm, next_rows

    return Question(b"".join(messages), read, sends=sends, receives=receives)
