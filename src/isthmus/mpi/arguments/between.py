"""The tasks of collectives between two groups.

Numbers and sizes in a schedule are of group A first, whether A is the local or the
remote group. Both groups must choose an equal algorithm, so a choice looks only at
sizes known to both: the sizes sent and the sizes expected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from mpi4py import MPI

from ...collectives.known import (
    CountTable,
    Equal,
    Group,
    Listed,
    OwnLines,
    Summed,
    listed,
    unit_of,
)
from ...schedules.registry import named, resolve
from ...schedules.schedule import Schedule
from ..buffers.operators import Operator, operator_for
from ..buffers.user_buffer import (
    UserBuffer,
    check_disjoint,
    integers,
    read_block,
    read_mixed,
    read_vector,
)
from ..plan.native import NativeCall, block_spec
from ..plan.question import Question, ask_each
from ..plan.steps import Await, StartBarrier
from ..plan.task import Contributions, Data, Task
from ..waiting.errors import MismatchError
from .between_rooted import ROOTED_READERS
from .choosing import resolve_algorithm
from .readers import Readers
from .tasks import (
    allgather_task,
    alltoall_task,
    check_equal_counts,
    check_scattered_counts,
    native_reduction,
    reduction_task,
)

if TYPE_CHECKING:
    from ..context.inter import InterContext

Counts = tuple[int, ...]
Value = TypeVar("Value")
#: the readers of all operations between two groups
BETWEEN_READERS = Readers(ROOTED_READERS)


def _contributions(
    context: InterContext, local_bytes: int, remote_bytes: int
) -> Contributions:
    """The contributions of all ranks, where ranks of a group contribute equally."""
    a, b = _in_order(context, local_bytes, remote_bytes)
    return [a] * context.p + [b] * context.q


def _in_order(
    context: InterContext, local: Value, remote: Value
) -> tuple[Value, Value]:
    """The values of groups A and B, from those of the local and the remote group."""
    return (remote, local) if context.group_number else (local, remote)


# -- a block of each rank to all of the remote group


@BETWEEN_READERS.reads("Allgather")
def allgather(
    context: InterContext, algorithm: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    if algorithm != "auto":
        resolve("inter_allgather", algorithm)
    send = read_block(sendbuf, writable=False)
    recv = read_block(recvbuf, writable=True, n=context.there)
    check_disjoint(send, recv)
    sent, expected = send.nbytes, recv.sizes
    local, remote = Equal(context.here, sent), Equal(context.there, expected[0])
    a, b = _in_order(context, local, remote)
    algorithm, is_native = _resolve_allgather(context, algorithm, form, (a, b))
    task = allgather_task(context, algorithm, send, recv)
    if is_native:
        native = NativeCall("Allgather", block_spec(send), block_spec(recv))
        return replace(task, native=native)

    def schedule() -> Schedule:
        unit = unit_of(a.bits | b.bits)
        ka, kb = a.each // unit, b.each // unit
        sizes = {"p": context.p, "q": context.q, "ka": ka, "kb": kb}
        return context.schedule("inter_allgather", algorithm, sizes, unit)

    contributions = partial(_contributions, context, sent, expected[0])
    return replace(task, schedule=schedule, contributions=contributions)


@BETWEEN_READERS.reads("Allgatherv")
def allgatherv(
    context: InterContext, algorithm: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    check_algorithm(algorithm)
    send = read_block(sendbuf, writable=False)
    recv = read_vector(recvbuf, context.there)
    check_disjoint(send, recv)
    return allgatherv_task(context, algorithm, form, send, recv)


def check_algorithm(algorithm: str) -> None:
    """Refuse an unknown algorithm of an Allgatherv."""
    if algorithm != "auto":
        resolve("inter_allgatherv", algorithm)


def allgatherv_task(
    context: InterContext, algorithm: str, form: str, send: Data, recv: Data
) -> Task:
    """The task of an Allgatherv, of data that may lie in several places.

    `recv` says the sizes of the remote group. The remote group knows the sizes of the
    local group, so a rank asks there, unless the algorithm sends blocks directly or
    each group is a single rank.
    """
    own_bytes, remote_sizes = send.nbytes, recv.sizes

    def algorithm_for(local: Group) -> str:
        groups = _in_order(context, local, listed(remote_sizes))
        resolved, _ = _resolve_allgather(
            context, algorithm, form, groups, is_irregular=True
        )
        return resolved

    def schedule(local: Group | None = None) -> Schedule:
        local = local or _without_peers(context, own_bytes)
        a, b = _in_order(context, local, listed(remote_sizes))
        resolved = algorithm_for(local)
        unit = unit_of(a.bits | b.bits)
        sizes = {"a": a.blocks(unit), "b": b.blocks(unit)}
        return context.schedule("inter_allgatherv", resolved, sizes, unit)

    def contributions(local: Group | None = None) -> Contributions:
        local = local or _without_peers(context, own_bytes)
        assert isinstance(local, Listed)  # of algorithms that use node memory
        local_sizes = local.counts.tolist()
        a, b = _in_order(context, local_sizes, [*remote_sizes])
        return [*a, *b]

    question = None
    if algorithm != "direct" and context.size > 2:  # two ranks know all sizes
        question = _ask_local_group(
            context, algorithm, own_bytes, remote_sizes, algorithm_for
        )
    return replace(
        allgather_task(context, algorithm, send, recv),
        schedule=schedule,
        question=question,
        contributions=contributions,
    )


def _resolve_allgather(
    context: InterContext,
    algorithm: str,
    form: str,
    groups: tuple[Group, Group],
    is_irregular: bool = False,
) -> tuple[str, bool]:
    """The algorithm of an Allgather(v) of groups A and B, and whether it is the
    library's own call."""
    if algorithm != "auto":
        return algorithm, False
    a, b = groups
    mean_bytes = (a.total + b.total) // (a.n + b.n)
    return resolve_algorithm(
        context,
        "inter_allgatherv" if is_irregular else "inter_allgather",
        algorithm,
        form,
        mean_bytes,
        {"a": a, "b": b},
        may_be_native=not is_irregular,
    )


# -- the sizes of the local group


def _without_peers(context: InterContext, own_bytes: int) -> Group:
    """The local group as if only the own block had a size.

    The rounds of a rank are then equal whatever the local peers contribute.
    """
    if context.here == 1:
        return listed([own_bytes])
    return Summed(
        n=context.here,
        index=context.index,
        start=0,
        own=own_bytes,
        total=own_bytes,
        largest=own_bytes,
        bits=own_bytes,
    )


def _ask_local_group(
    context: InterContext,
    algorithm: str,
    own_bytes: int,
    remote_sizes: Sequence[int],
    algorithm_for: Callable[[Group], str],
) -> Question:
    """The question for all sizes of the local group, or first for a summary.

    With "auto" and shared nodes all sizes are asked for, since the choice may fall on
    an algorithm with node memory. Elsewhere most algorithms need no more than a
    summary, which is a single message; `algorithm_for` says by the summary whether the
    algorithm is one that needs all sizes.
    """
    needs_all = context.shares_nodes
    if algorithm != "auto":
        needs_all = resolve("inter_allgatherv", algorithm)[0].own_counts
    if needs_all:
        return _ask_sizes(context, own_bytes)
    return _ask_summary(context, own_bytes, remote_sizes, algorithm_for)


def _ask_sizes(context: InterContext, own_bytes: int) -> Question:
    """The question for the sizes of all ranks of the local group."""
    return ask_each(context.group, [own_bytes], lambda rows: (listed(rows[:, 0]),))


def _ask_summary(
    context: InterContext,
    own_bytes: int,
    remote_sizes: Sequence[int],
    algorithm_for: Callable[[Group], str],
) -> Question:
    """The question answered by a remote rank with a summary of the local group.

    A summary has the offset of the receiver's block, the total, the largest block, all
    counts or-ed together, and the size expected of the receiver, so that a mismatch is
    noticed. Rank i of n sends summaries to the remote ranks i, i + n, i + 2n, …: then
    each rank gets a single summary, whichever group is larger.
    """
    counts = np.array(remote_sizes, np.int64)
    ends = np.cumsum(counts)
    summaries = np.empty((len(counts), 5), np.int64)
    summaries[:, 0] = ends - counts
    summaries[:, 1:4] = ends[-1], counts.max(), np.bitwise_or.reduce(counts)
    summaries[:, 4] = counts
    receivers = range(context.index, context.there, context.here)
    sender = context.there_base + context.index % context.there
    nbytes = summaries[0].nbytes

    def read(answer: bytes) -> tuple[Any, ...] | Question:
        start, total, largest, bits, wanted = np.frombuffer(answer, np.int64).tolist()
        if wanted != own_bytes:
            raise MismatchError(
                f"isthmus Allgatherv: {context.who(context.number)} sends {own_bytes} "
                f"bytes, {context.who(sender)} expects {wanted} of it",
                is_agreed=False,
            )
        here, index = context.here, context.index
        summary = Summed(here, index, start, own_bytes, total, largest, bits)
        if resolve("inter_allgatherv", algorithm_for(summary))[0].own_counts:
            return _ask_sizes(context, own_bytes)
        return (summary,)

    said = summaries[list(receivers)].tobytes()
    sends = tuple(
        (context.there_base + receiver, i * nbytes, nbytes)
        for i, receiver in enumerate(receivers)
    )
    return Question(said, read, sends=sends, receives=((sender, nbytes),))


# -- reductions


def _read_operands(
    sendbuf: Any, recvbuf: Any, *, blocks: int = 1
) -> tuple[UserBuffer, UserBuffer]:
    """The vector to combine, and the buffer of the result.

    A count in `sendbuf` is the count of a block, as in mpi4py; the vector is all
    blocks together.
    """
    send = read_block(sendbuf, writable=False, n=blocks)
    counts, displacements = (sum(send.counts),), send.displacements[:1]
    send = replace(send, counts=counts, displacements=displacements)
    recv = read_block(recvbuf, writable=True)
    if send.datatype != recv.datatype:
        raise ValueError("message: the types of what is sent and received differ")
    check_disjoint(send, recv)
    return send, recv


def _resolve_reduction(
    context: InterContext,
    collective: str,
    algorithm: str,
    form: str,
    nbytes: int,
    operator: Operator,
    *,
    may_be_native: bool = True,
) -> tuple[str, bool]:
    """The algorithm for vectors of `nbytes`, and whether it is the library's own
    call."""
    return resolve_algorithm(
        context,
        collective,
        algorithm,
        form,
        nbytes,
        {"p": context.p, "q": context.q, "m": nbytes},
        operator.op.is_commutative,
        may_be_native=may_be_native,
    )


@BETWEEN_READERS.reads("Allreduce")
def allreduce(
    context: InterContext,
    algorithm: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op,
) -> Task:
    send, recv = _read_operands(sendbuf, recvbuf)
    operator = operator_for(op, recv)
    check_equal_counts(send, recv)
    collective = "inter_allreduce"
    algorithm, is_native = _resolve_reduction(
        context, collective, algorithm, form, send.nbytes, operator
    )
    task = reduction_task(context, algorithm, send, recv, operator)
    if is_native:
        return replace(task, native=native_reduction("Allreduce", send, recv))
    sizes = {"p": context.p, "q": context.q, "m": send.counts[0]}
    schedule = partial(context.schedule, collective, algorithm, sizes, operator.extent)
    return replace(task, schedule=schedule)


@BETWEEN_READERS.reads("Reduce_scatter_block")
def reduce_scatter_block(
    context: InterContext,
    algorithm: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op,
) -> Task:
    send, recv = _read_operands(sendbuf, recvbuf, blocks=context.here)
    operator = operator_for(op, recv)
    total, own = send.counts[0], recv.counts[0]
    if total != own * context.here or total % context.there:
        raise ValueError(
            f"message: {total} elements are sent, and {own} received by each of "
            f"{context.here}; the other group has {context.there}"
        )
    collective = "inter_reduce_scatter_block"
    algorithm, is_native = _resolve_reduction(
        context,
        collective,
        algorithm,
        form,
        send.nbytes,
        operator,
        # mpi4py compares the bytes sent with the size of the wrong group
        may_be_native=context.p == context.q,
    )
    task = reduction_task(context, algorithm, send, recv, operator)
    if is_native:
        block = replace(send, counts=recv.counts)  # mpi4py takes the count of a block
        native = native_reduction("Reduce_scatter_block", block, recv)
        return replace(task, native=native)
    ka, kb = _in_order(context, own, total // context.there)
    sizes = {"p": context.p, "q": context.q, "ka": ka, "kb": kb}
    schedule = partial(context.schedule, collective, algorithm, sizes, operator.extent)
    return replace(task, schedule=schedule)


@BETWEEN_READERS.reads("Reduce_scatter")
def reduce_scatter(
    context: InterContext,
    algorithm: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    recvcounts: Sequence[int] | None,
    op: MPI.Op,
) -> Task:
    """The task of a Reduce_scatter, in which all ranks ask for the counts of both
    groups."""
    send, recv = _read_operands(sendbuf, recvbuf)
    operator = operator_for(op, recv)
    own, total = recv.counts[0], send.counts[0]
    if recvcounts is not None:
        counts = integers(recvcounts, context.here, "counts")
        if min(counts) < 0:
            raise ValueError(f"message: negative count {min(counts)}")
        check_scattered_counts(counts, context.index, own=own, total=total)
    collective = "inter_reduce_scatter"
    algorithm, is_native = _resolve_reduction(
        context,
        collective,
        algorithm,
        form,
        send.nbytes,
        operator,
        # the library's own call needs the counts
        may_be_native=recvcounts is not None,
    )
    task = reduction_task(context, algorithm, send, recv, operator)
    if is_native:
        return replace(task, native=native_reduction("Reduce_scatter", send, recv))

    def schedule(a: Counts, b: Counts) -> Schedule:
        sizes = {"a": a, "b": b}
        return context.schedule(collective, algorithm, sizes, operator.extent)

    ranks = range(context.size)
    question = ask_each(ranks, (own, total), partial(_counts, context), is_local=False)
    return replace(task, schedule=schedule, question=question)


def _counts(context: InterContext, rows: np.ndarray) -> tuple[Counts, Counts]:
    """The counts of the ranks of groups A and B, from a row of each rank.

    A row has the elements received and the elements sent by the rank. All ranks must
    send as many elements as each group receives in all.
    """
    p = context.p
    sums = {"A": int(rows[:p, 0].sum()), "B": int(rows[p:, 0].sum())}
    for number, sent in enumerate(rows[:, 1].tolist()):
        for group, received in sums.items():
            if sent != received:
                raise MismatchError(
                    f"isthmus Reduce_scatter: {context.who(number)} sends {sent} "
                    f"elements, and group {group} receives {received} in all"
                )
    return tuple(rows[:p, 0].tolist()), tuple(rows[p:, 0].tolist())


# -- a block to each rank of the remote group


@BETWEEN_READERS.reads("Alltoall")
def alltoall(
    context: InterContext, algorithm: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    there = context.there
    send = read_block(sendbuf, writable=False, n=there)
    recv = read_block(recvbuf, writable=True, n=there)
    check_disjoint(send, recv)
    sent, expected = send.sizes, recv.sizes
    largest = max(sent[0], expected[0])
    sizes = {"p": context.p, "q": context.q, "ka": largest, "kb": largest}
    algorithm, is_native = resolve_algorithm(
        context, "inter_alltoall", algorithm, form, largest, sizes
    )
    task = alltoall_task(context, algorithm, (send,), (recv,), sent, expected)
    if is_native:
        native = NativeCall("Alltoall", block_spec(send), block_spec(recv))
        return replace(task, native=native)

    def schedule() -> Schedule:
        unit = unit_of(sent[0] | expected[0])
        ka, kb = _in_order(context, sent[0] // unit, expected[0] // unit)
        sizes = {"p": context.p, "q": context.q, "ka": ka, "kb": kb}
        return context.schedule("inter_alltoall", algorithm, sizes, unit)

    contributions = partial(_contributions, context, sent[0], expected[0])
    return replace(task, schedule=schedule, contributions=contributions)


@BETWEEN_READERS.reads("Alltoallv")
def alltoallv(
    context: InterContext, algorithm: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    send = read_vector(sendbuf, context.there, writable=False)
    recv = read_vector(recvbuf, context.there)
    check_disjoint(send, recv)
    return alltoallv_task(
        context, algorithm, form, (send,), (recv,), send.sizes, recv.sizes
    )


@BETWEEN_READERS.reads("Alltoallw")
def alltoallw(
    context: InterContext, algorithm: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    send = read_mixed(sendbuf, context.there, writable=False)
    recv = read_mixed(recvbuf, context.there, writable=True)
    sent = tuple(block.nbytes for block in send)
    expected = tuple(block.nbytes for block in recv)
    return alltoallv_task(context, algorithm, form, send, recv, sent, expected)


def alltoallv_task(
    context: InterContext,
    algorithm: str,
    form: str,
    send: tuple[Data, ...],
    recv: tuple[Data, ...],
    sent: Counts,
    expected: Counts,
) -> Task:
    """The task of an Alltoallv, of buffers that may lie in several places.

    `sent` and `expected` are the bytes of the blocks to and from each remote rank.
    """
    collective = "inter_alltoallv"
    algorithm, _ = resolve_algorithm(
        context, collective, algorithm, form, 0, {}, may_be_native=False
    )
    task = alltoall_task(context, algorithm, send, recv, sent, expected)
    schedule = partial(_alltoallv_schedule, context, algorithm)
    here, there = context.here, context.there
    if not named(collective, algorithm).own_counts:
        to_remote = OwnLines((here, there), row=sent)
        from_remote = OwnLines((there, here), column=expected)
        return replace(task, schedule=partial(schedule, to_remote, from_remote))

    def contributions(to_remote: CountTable, from_remote: CountTable) -> Contributions:
        local = to_remote.rows.sum(1).tolist()
        remote = from_remote.rows.sum(1).tolist()
        a, b = _in_order(context, local, remote)
        return [*a, *b]

    def read_tables(rows: np.ndarray) -> tuple[CountTable, CountTable]:
        counts = rows.reshape(here, 2, there)
        return CountTable(counts[:, 0]), CountTable(counts[:, 1].T)

    question = ask_each(context.group, [*sent, *expected], read_tables)
    return replace(
        task, schedule=schedule, question=question, contributions=contributions
    )


def _alltoallv_schedule(
    context: InterContext,
    algorithm: str,
    to_remote: CountTable | OwnLines,
    from_remote: CountTable | OwnLines,
) -> Schedule:
    """The schedule of an Alltoallv, from the count tables of both directions."""
    ab, ba = _in_order(context, to_remote, from_remote)
    return context.schedule("inter_alltoallv", algorithm, {"ab": ab, "ba": ba})


@BETWEEN_READERS.reads("Barrier")
def barrier(context: InterContext, algorithm: str, form: str) -> Task:
    """The task of a Barrier; without node memory, the MPI library's own barrier of both
    groups as one."""
    if algorithm in ("auto", "library"):
        algorithm, is_native = resolve_algorithm(
            context, "inter_barrier", "auto", form, 0, {}
        )
        if is_native:
            return Task(algorithm=algorithm, native=NativeCall("Barrier", is_raw=True))
        if algorithm == "library":
            return Task(algorithm=algorithm, steps=(StartBarrier(0), Await((0,), 1)))
    named("inter_barrier", algorithm)
    sizes = {"p": context.p, "q": context.q}
    schedule = partial(context.schedule, "inter_barrier", algorithm, sizes)
    return Task(algorithm=algorithm, schedule=schedule)
