"""The arguments of collectives between groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ...choose import between as choose
from ...choose.choose import Choice, inter_allgatherv
from ...collectives.known import (
    CountTable,
    Equal,
    Group,
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
from ..plan.native import NativeCall, block_extent, elements_extent
from ..plan.question import Question, ask_each
from ..plan.steps import Await, Synchronize
from ..plan.task import Contributions, Task
from ..waiting.errors import MismatchError
from .between_rooted import READERS as ROOTED
from .choosing import chosen
from .readers import Readers

if TYPE_CHECKING:
    from ..context.inter import InterContext

Counts = tuple[int, ...]
#: what reads the arguments of all operations between two groups
READERS = Readers(ROOTED)


def _contributions(c: InterContext, here: int, there: int) -> Contributions:
    """Where every rank of the own group contributes so many bytes, and every rank of
    the other one so many."""
    a, b = _in_order(c, here, there)
    return [a] * c.p + [b] * c.q


def _in_order(c: InterContext, ours: Any, theirs: Any) -> tuple[Any, Any]:
    """What belongs to the own group and to the other one, that of group A first."""
    return (theirs, ours) if c.mine else (ours, theirs)


# -- a block of each to everyone of the other group


@READERS.reads("Allgather")
def allgather(
    c: InterContext, name: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    """Allgather."""
    if name != "auto":
        resolve("inter_allgather", name)
    send = read_block(sendbuf, writable=False)
    recv = read_block(recvbuf, writable=True, n=c.there)
    check_disjoint(send, recv)
    sent, expected = send.nbytes, recv.sizes
    groups = _in_order(c, Equal(c.here, sent), Equal(c.there, expected[0]))
    name, native = _gathering(c, name, form, groups)
    known: dict[str, Any] = {"send": (send,), "recv": (recv,), "sent": sent}
    known["expected"] = dict(zip(c.senders, expected, strict=True))
    if native:
        call = NativeCall("Allgather", block_extent(send), block_extent(recv))
        return Task(algorithm=name, native=call, **known)

    def schedule() -> Schedule:
        a, b = groups
        unit = unit_of(a.bits | b.bits)
        sizes = {"p": c.p, "q": c.q, "ka": a.each // unit, "kb": b.each // unit}
        return c.schedule("inter_allgather", name, sizes, unit)

    contributions = partial(_contributions, c, sent, expected[0])
    return Task(algorithm=name, schedule=schedule, contributions=contributions, **known)


@READERS.reads("Allgatherv")
def allgatherv(
    c: InterContext, name: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    """Allgatherv."""
    if name != "auto":
        resolve("inter_allgatherv", name)
    send = read_block(sendbuf, writable=False)
    recv = read_vector(recvbuf, c.there)
    check_disjoint(send, recv)
    return gathered(c, name, form, send, recv)


def known(name: str) -> None:
    """Refuse an unknown algorithm."""
    if name != "auto":
        resolve("inter_allgatherv", name)


def gathered(c: InterContext, name: str, form: str, send: Any, recv: Any) -> Task:
    """The task of an Allgatherv, of data that may lie in several places."""
    sent, expected = send.nbytes, recv.sizes
    known: dict[str, Any] = {"send": (send,), "recv": (recv,), "sent": sent}
    known["expected"] = dict(zip(c.senders, expected, strict=True))

    def schedule(own: Group | None = None) -> Schedule:
        a, b = groups = _in_order(c, own or alone(c, sent), listed(expected))
        algorithm, _ = _gathering(c, name, form, groups, is_irregular=True)
        unit = unit_of(a.bits | b.bits)
        sizes = {"a": a.blocks(unit), "b": b.blocks(unit)}
        return c.schedule("inter_allgatherv", algorithm, sizes, unit)

    def contributions(own: Group | None = None) -> Contributions:
        here = (own or alone(c, sent)).counts.tolist()  # type: ignore[union-attr]
        return [*expected, *here] if c.mine else [*here, *expected]

    question = None
    if name != "direct" and c.size > 2:  # two know all there is
        question = own_group(c, name, sent, expected)
    return Task(
        algorithm=name,
        schedule=schedule,
        question=question,
        contributions=contributions,
        **known,
    )


def _gathering(
    c: InterContext,
    name: str,
    form: str,
    groups: tuple[Group, Group],
    is_irregular: bool = False,
) -> tuple[str, bool]:
    """The algorithm of an Allgather(v), once the sizes are known, and whether it is the
    library's."""
    if name != "auto":
        return name, False
    a, b = groups
    largest = max(a.largest, b.largest)

    def flat() -> Choice:
        sizes = c.p, c.q, a.total, b.total, largest, is_irregular, c.machine
        return Choice(inter_allgatherv(*sizes), "without node memory")

    each = (a.total + b.total) // (c.p + c.q)
    return chosen(
        c, "inter_allgather", name, form, each, flat, may_be_native=not is_irregular
    )


# -- what a rank must know of its own group


def alone(c: InterContext, own: int) -> Group:
    """The own group as it looks to a rank for which the others do not matter, or that
    has none."""
    if c.here == 1:
        return listed([own])
    return Summed(c.here, c.index, 0, own, own, own, own)


def own_group(
    c: InterContext, name: str, own: int, expected: Sequence[int]
) -> Question:
    """What a call must know of the own group."""
    needs_all = c.shares_nodes
    if name != "auto":
        needs_all = resolve("inter_allgatherv", name)[0].own_counts
    if needs_all:
        return ask_each(c.group, [own], lambda rows: (listed(rows[:, 0]),))
    return _told_by_one(c, own, expected)


def _told_by_one(c: InterContext, own: int, expected: Sequence[int]) -> Question:
    """Tell every so-manieth rank of the other group, and be told by one: the place of
    the own block, all bytes, the largest block, all counts or-ed together, and what
    that rank expects of this one."""
    counts = np.array(expected, np.int64)
    ends = np.cumsum(counts)
    rows = np.empty((len(counts), 5), np.int64)
    rows[:, 0] = ends - counts
    rows[:, 1:4] = ends[-1], counts.max(), np.bitwise_or.reduce(counts)
    rows[:, 4] = counts
    listeners = range(c.index, c.there, c.here)
    teller, size = c.there_base + c.index % c.there, rows[0].nbytes

    def read(answer: bytes) -> tuple[Any, ...]:
        start, total, largest, bits, wanted = np.frombuffer(answer, np.int64).tolist()
        if wanted != own:
            raise MismatchError(
                f"isthmus Allgatherv: {c.who(c.number)} sends {own} bytes, "
                f"{c.who(teller)} expects {wanted} of it",
                is_agreed=False,
            )
        return (Summed(c.here, c.index, start, own, total, largest, bits),)

    said = rows[list(listeners)].tobytes()
    sends = tuple((c.there_base + i, k * size, size) for k, i in enumerate(listeners))
    return Question(said, read, sends=sends, receives=((teller, size),))


# -- sums


def _operands(
    sendbuf: Any, recvbuf: Any, *, blocks: int = 1
) -> tuple[UserBuffer, UserBuffer]:
    """What is sent and received; a count of what is sent is that of one block."""
    send = read_block(sendbuf, writable=False, n=blocks)
    counts, displacements = (sum(send.counts),), send.displacements[:1]
    send = replace(send, counts=counts, displacements=displacements)
    recv = read_block(recvbuf, writable=True)
    if send.datatype != recv.datatype:
        raise ValueError("message: the types of what is sent and received differ")
    check_disjoint(send, recv)
    return send, recv


def _combining(
    c: InterContext,
    collective: str,
    name: str,
    form: str,
    n: int,
    by: Operator,
    *,
    may_be_native: bool = True,
) -> tuple[str, bool]:
    """The algorithm for n bytes a rank, and whether it is the library's."""
    commutes = by.op.is_commutative
    sizes = c.here, c.there, n
    by_size = partial(choose.reduction, collective, *sizes, c.machine, commutes)
    return chosen(
        c,
        collective,
        name,
        form,
        n,
        by_size,
        commutes,
        may_be_native=may_be_native,
    )


def _summed(
    c: InterContext, name: str, send: UserBuffer, recv: UserBuffer, **more: Any
) -> Task:
    """The task of a rank whose vector all of the other group combine."""
    n = send.nbytes
    sizes = dict.fromkeys(c.senders, n)

    def contributions(*_: Any) -> Contributions:
        return [n] * c.size

    return Task(
        algorithm=name,
        send=(send,),
        recv=(recv,),
        sent=sizes,
        expected=sizes,
        contributions=contributions,
        **more,
    )


def _native_sum(op: str, send: UserBuffer, recv: UserBuffer) -> NativeCall:
    """The library's own sum, of elements of the user's type."""
    return NativeCall(op, elements_extent(send), elements_extent(recv), is_bytes=False)


@READERS.reads("Allreduce")
def allreduce(
    c: InterContext, name: str, form: str, sendbuf: Any, recvbuf: Any, op: MPI.Op
) -> Task:
    """Allreduce."""
    send, recv = _operands(sendbuf, recvbuf)
    by = operator_for(op, recv)
    if send.counts != recv.counts:
        raise ValueError(
            f"message: {send.counts[0]} elements are sent, {recv.counts[0]} received"
        )
    name, is_native = _combining(c, "inter_allreduce", name, form, send.nbytes, by)
    if is_native:
        native = _native_sum("Allreduce", send, recv)
        return _summed(c, name, send, recv, operator=by, native=native)
    sizes = {"p": c.p, "q": c.q, "m": send.counts[0]}
    schedule = partial(c.schedule, "inter_allreduce", name, sizes, by.extent)
    return _summed(c, name, send, recv, operator=by, schedule=schedule)


@READERS.reads("Reduce_scatter_block")
def reduce_scatter_block(
    c: InterContext, name: str, form: str, sendbuf: Any, recvbuf: Any, op: MPI.Op
) -> Task:
    """Reduce_scatter_block."""
    send, recv = _operands(sendbuf, recvbuf, blocks=c.here)
    by = operator_for(op, recv)
    total, each = send.counts[0], recv.counts[0]
    if total != each * c.here or total % c.there:
        raise ValueError(
            f"message: {total} elements are sent, and {each} received by each of "
            f"{c.here}; the other group has {c.there}"
        )
    # mpi4py compares what is sent with the size of the wrong group
    how: dict[str, Any] = {"may_be_native": c.p == c.q}
    name, is_native = _combining(
        c, "inter_reduce_scatter_block", name, form, send.nbytes, by, **how
    )
    if is_native:
        one = replace(send, counts=recv.counts)  # mpi4py takes the count of a block
        native = _native_sum("Reduce_scatter_block", one, recv)
        return _summed(c, name, send, recv, operator=by, native=native)
    ka, kb = _in_order(c, each, total // c.there)
    sizes = {"p": c.p, "q": c.q, "ka": ka, "kb": kb}
    collective = "inter_reduce_scatter_block"
    schedule = partial(c.schedule, collective, name, sizes, by.extent)
    return _summed(c, name, send, recv, operator=by, schedule=schedule)


@READERS.reads("Reduce_scatter")
def reduce_scatter(
    c: InterContext,
    name: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    recvcounts: Sequence[int] | None,
    op: MPI.Op,
) -> Task:
    """Reduce_scatter; what the other group receives, it tells."""
    send, recv = _operands(sendbuf, recvbuf)
    by = operator_for(op, recv)
    own, total = recv.counts[0], send.counts[0]
    if recvcounts is not None:
        counts = integers(recvcounts, c.here, "counts")
        if min(counts) < 0:
            raise ValueError(f"message: negative count {min(counts)}")
        if own != counts[c.index] or total != sum(counts):
            raise ValueError(
                f"message: the counts are {list(counts)}, of which {own} are received "
                f"by rank {c.index} and {total} are sent by everyone"
            )
    # where nobody says the counts, the library cannot be told them
    how: dict[str, Any] = {"may_be_native": recvcounts is not None}
    name, is_native = _combining(
        c, "inter_reduce_scatter", name, form, send.nbytes, by, **how
    )
    if is_native:
        native = _native_sum("Reduce_scatter", send, recv)
        return _summed(c, name, send, recv, operator=by, native=native)

    def schedule(a: Counts, b: Counts) -> Schedule:
        sizes = {"a": a, "b": b}
        return c.schedule("inter_reduce_scatter", name, sizes, by.extent)

    everyone = range(c.size)
    question = ask_each(everyone, (own, total), partial(_counts, c), is_local=False)
    asked: dict[str, Any] = {"schedule": schedule, "question": question}
    return _summed(c, name, send, recv, operator=by, **asked)


def _counts(c: InterContext, rows: np.ndarray) -> tuple[Counts, Counts]:
    """What everyone of groups A and B receives; everyone sends as much as each group
    receives in all."""
    sums = {"A": int(rows[: c.p, 0].sum()), "B": int(rows[c.p :, 0].sum())}
    for number, sent in enumerate(rows[:, 1].tolist()):
        for group, received in sums.items():
            if sent != received:
                raise MismatchError(
                    f"isthmus Reduce_scatter: {c.who(number)} sends {sent} elements, "
                    f"and group {group} receives {received} in all"
                )
    return tuple(rows[: c.p, 0].tolist()), tuple(rows[c.p :, 0].tolist())


# -- a block to each of the other group


@READERS.reads("Alltoall")
def alltoall(c: InterContext, name: str, form: str, sendbuf: Any, recvbuf: Any) -> Task:
    """Alltoall."""
    send = read_block(sendbuf, writable=False, n=c.there)
    recv = read_block(recvbuf, writable=True, n=c.there)
    check_disjoint(send, recv)
    sent, expected = send.sizes, recv.sizes
    n = max(sent[0], expected[0])
    flat = partial(choose.alltoall, c.here, c.there, n, c.machine)
    name, is_native = chosen(c, "inter_alltoall", name, form, n, flat)
    known = _exchanged(c, name, (send,), (recv,), sent, expected)
    if is_native:
        native = NativeCall("Alltoall", block_extent(send), block_extent(recv))
        return Task(native=native, **known)

    def schedule() -> Schedule:
        unit = unit_of(sent[0] | expected[0])
        ka, kb = (k // unit for k in _in_order(c, sent[0], expected[0]))
        sizes = {"p": c.p, "q": c.q, "ka": ka, "kb": kb}
        return c.schedule("inter_alltoall", name, sizes, unit)

    contributions = partial(_contributions, c, sent[0], expected[0])
    return Task(schedule=schedule, contributions=contributions, **known)


@READERS.reads("Alltoallv")
def alltoallv(
    c: InterContext, name: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    """Alltoallv."""
    send = read_vector(sendbuf, c.there, writable=False)
    recv = read_vector(recvbuf, c.there)
    check_disjoint(send, recv)
    return exchange(c, name, form, (send,), (recv,), send.sizes, recv.sizes)


@READERS.reads("Alltoallw")
def alltoallw(
    c: InterContext, name: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    """Alltoallw."""
    send = read_mixed(sendbuf, c.there, writable=False)
    recv = read_mixed(recvbuf, c.there, writable=True)
    sent = tuple(x.nbytes for x in send)
    expected = tuple(x.nbytes for x in recv)
    return exchange(c, name, form, send, recv, sent, expected)


def exchange(
    c: InterContext,
    name: str,
    form: str,
    send: Any,
    recv: Any,
    sent: Counts,
    expected: Counts,
) -> Task:
    """The task of an Alltoallv: blocks of so many bytes to each of the other group, and
    from each, in buffers that may lie in several places."""
    flat = partial(Choice, "largest_first", "as blocks may differ")
    how: dict[str, Any] = {"may_be_native": False}
    name, _ = chosen(c, "inter_alltoallv", name, form, 0, flat, **how)
    known = _exchanged(c, name, send, recv, sent, expected)
    schedule = partial(_exchanging, c, name)
    if not named("inter_alltoallv", name).own_counts:
        out = OwnLines((c.here, c.there), row=sent)
        back = OwnLines((c.there, c.here), column=expected)
        return Task(schedule=partial(schedule, out, back), **known)

    def contributions(out: CountTable, back: CountTable) -> Contributions:
        here, there = out.rows.sum(1).tolist(), back.rows.sum(1).tolist()
        return [*there, *here] if c.mine else [*here, *there]

    def tables(rows: np.ndarray) -> tuple[CountTable, CountTable]:
        each = rows.reshape(c.here, 2, c.there)
        return CountTable(each[:, 0]), CountTable(each[:, 1].T)

    question = ask_each(c.group, [*sent, *expected], tables)
    asked: dict[str, Any] = {"question": question, "contributions": contributions}
    return Task(schedule=schedule, **asked, **known)


def _exchanging(
    c: InterContext, name: str, out: CountTable | OwnLines, back: CountTable | OwnLines
) -> Schedule:
    """The schedule of what the own group sends to the other one, and gets of it."""
    ab, ba = _in_order(c, out, back)
    return c.schedule("inter_alltoallv", name, {"ab": ab, "ba": ba})


def _exchanged(
    c: InterContext, name: str, send: Any, recv: Any, sent: Counts, expected: Counts
) -> dict[str, Any]:
    to, frm = (dict(zip(c.senders, x, strict=True)) for x in (sent, expected))
    known = {"send": send, "recv": recv, "sent": to, "expected": frm}
    return {"algorithm": name, **known}


@READERS.reads("Barrier")
def barrier(c: InterContext, name: str, form: str) -> Task:
    """Barrier; without the memory of nodes that of the MPI library, of both groups as
    one."""
    flat = partial(Choice, "library", "which is one call")
    if name in ("auto", "library"):
        name, is_native = chosen(c, "inter_barrier", "auto", form, 0, flat)
        if is_native:
            return Task(algorithm=name, native=NativeCall("Barrier", is_raw=True))
        if name == "library":
            return Task(algorithm=name, steps=(Synchronize(0), Await((0,), 1)))
    named("inter_barrier", name)
    schedule = partial(c.schedule, "inter_barrier", name, {"p": c.p, "q": c.q})
    return Task(algorithm=name, schedule=schedule)
