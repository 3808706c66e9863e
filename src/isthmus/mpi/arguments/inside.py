"""The arguments of collectives inside one group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ...choose import choose, inside as choose_inside
from ...choose.between import check
from ...choose.choose import BUILT_IN, Choice
from ...choose.inside import Comparison
from ...collectives.collective import INSIDE
from ...collectives.known import CountTable, Equal, Group, OwnLines, listed, unit_of
from ...collectives.records import record_of
from ...schedules.registry import fitting, named
from ...schedules.schedule import Schedule
from ..buffers.operators import Operator, operator_for
from ..buffers.user_buffer import (
    UserBuffer,
    check_disjoint,
    integers,
    read_block,
    read_vector,
)
from ..plan.native import (
    NativeCall,
    block_extent,
    elements_extent,
    vector_extent,
)
from ..plan.question import Question, ask_each, first_column
from ..plan.task import Contributions, Data, Task
from .choosing import log_choice
from .readers import NONBLOCKING, OURS, PERSISTENT, Readers

if TYPE_CHECKING:
    from ..context.intra import IntraContext

Counts = tuple[int, ...]
#: what reads the arguments of operations inside one group that have no root
READERS = Readers()
#: the name of the MPI library's own call
LIBRARY = "library"
HINT_OWN = "; for data that are in their place already, send MPI.IN_PLACE"
HINT = "; for data that are where results go, send MPI.IN_PLACE"


def omits_own(buffer: Any) -> bool:
    """Whether MPI.IN_PLACE says that the rank's own data lie at the other end."""
    return buffer is None or buffer is MPI.IN_PLACE


def leaves_to_library(
    c: IntraContext, form: str, nbytes: int | None, is_faster: bool
) -> bool:
    """Whether a call that may choose is left to the MPI library, where that is faster.

    A nonblocking call of few bytes is: there nothing beats the library's own request.
    Without threads so is every one: then MPI alone brings it forward. A persistent one
    is not, as our own need no more than the library's.
    """
    if form in (PERSISTENT, OURS):
        return False
    if form == NONBLOCKING and c.p > 1:
        is_short = nbytes is not None and nbytes < c.small
        return is_faster or is_short or not c.threads
    return is_faster


# -- Allgather(v)


@READERS.reads("Allgather")
def allgather(
    c: IntraContext, name: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    """Allgather."""
    recv = read_block(recvbuf, writable=True, n=c.p)
    native = NativeCall("Allgather", recv=block_extent(recv))
    return _gather(c, name, form, sendbuf, recv, native)


@READERS.reads("Allgatherv")
def allgatherv(
    c: IntraContext, name: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    """Allgatherv."""
    recv = read_vector(recvbuf, c.p)
    native = NativeCall("Allgatherv", recv=vector_extent(recv))
    return _gather(c, name, form, sendbuf, recv, native)


def _gather(
    c: IntraContext,
    name: str,
    form: str,
    sendbuf: Any,
    recv: UserBuffer,
    native: NativeCall,
) -> Task:
    known(c, name)
    if omits_own(sendbuf):
        return gathered(c, name, form, None, recv, native)
    send = read_block(sendbuf, writable=False)
    check_disjoint(send, recv, HINT_OWN)
    expected, sent = recv.sizes[c.index], send.nbytes
    if sent != expected:
        raise ValueError(
            f"message: this rank sends {sent} bytes, and has room for {expected} "
            "of its own"
        )
    native = replace(native, send=block_extent(send))
    return gathered(c, name, form, send, recv, native)


def known(c: IntraContext, name: str) -> None:
    """Refuse an algorithm that is unknown, or not made for so many ranks."""
    check_fits(c, "allgatherv", name)


def gathered(
    c: IntraContext,
    name: str,
    form: str,
    send: Data | None,
    recv: Data,
    native: NativeCall | None,
) -> Task:
    """The task of an Allgatherv, of data that may lie in several places."""
    sizes, total = recv.sizes, sum(recv.sizes)
    is_free = name == "auto"
    if is_free:
        counts = np.array(sizes, np.int64)
        is_irregular = native is None or native.name == "Allgatherv"
        where = c.small, c.nodes
        choice = choose.allgatherv(counts, lambda: c.machine, is_irregular, *where)
        log_choice("Allgather" + "v" * is_irregular, choice)
        name = choice.name
        if native is not None and leaves_to_library(c, form, total, name == LIBRARY):
            name = LIBRARY
    must_be_ours = native is None or form == OURS or (form == PERSISTENT and is_free)
    if name == LIBRARY and must_be_ours:
        from ...algorithms.parts.stages import stage_for

        name = stage_for(c.p, total)
    data: dict[str, Any] = {
        "algorithm": name,
        "send": () if send is None else (send,),
        "recv": (recv,),
        "sent": sizes[c.index],
        "expected": dict(zip(c.senders, sizes, strict=True)),
        "own_block": c.index,
    }
    if name == LIBRARY and native is not None:
        return Task(native=native, **data)
    return Task(
        schedule=partial(_gathering, c, name, _group(sizes)),
        contributions=lambda: sizes,
        **data,
    )


def _gathering(c: IntraContext, name: str, group: Group) -> Schedule:
    unit = unit_of(group.bits)
    return c.schedule("allgatherv", name, {"counts": group.blocks(unit)}, unit)


def _group(sizes: Counts) -> Group:
    """What everyone contributes, in bytes."""
    if min(sizes) == max(sizes):
        return Equal(len(sizes), sizes[0])
    return listed(sizes)


def check_fits(c: IntraContext, collective: str, name: str) -> None:
    """Refuse an algorithm that is unknown, or not made for so many ranks."""
    if name not in ("auto", LIBRARY):
        fitting(collective, name, c.p)


# -- sums


def chosen(
    c: IntraContext,
    op: str,
    name: str,
    form: str,
    nbytes: int | None,
    choose: Callable[[], Comparison],
    commutative: bool = True,
) -> tuple[str, bool]:
    """The algorithm asked for, if it will do; for "auto", the one that is chosen, and
    whether the MPI library's own call is taken in its place."""
    if name != "auto":
        collective = record_of(op, INSIDE).name
        fitting(collective, name, c.p)
        check(collective, name, commutative)
        return name, False
    choice, is_faster = choose()
    log_choice(op, replace(choice, name=LIBRARY) if is_faster else choice)
    is_faster |= c.device == "direct"
    return choice.name, leaves_to_library(c, form, nbytes, is_faster)


def _summed(
    c: IntraContext, name: str, send: UserBuffer, by: Operator, **more: Any
) -> Task:
    """The task of a rank whose vector all combine."""
    n = send.nbytes
    sizes = dict.fromkeys(c.senders, n)
    more = {"sent": sizes, "expected": sizes, **more}

    def contributions(*_: Any) -> Contributions:
        return [n] * c.p

    return Task(
        algorithm=name,
        send=(send,),
        operator=by,
        contributions=contributions,
        **more,
    )


def operands(sendbuf: Any, recv: UserBuffer, *, blocks: int = 1) -> UserBuffer:
    """What is sent, of the type of what is received and apart from it; a count is that
    of one of the blocks."""
    send = read_block(sendbuf, writable=False, n=blocks)
    counts, displacements = (sum(send.counts),), send.displacements[:1]
    send = replace(send, counts=counts, displacements=displacements)
    if send.datatype != recv.datatype:
        raise ValueError("message: the types of what is sent and received differ")
    check_disjoint(send, recv, HINT)
    return send


def native_sum(
    op: str, send: UserBuffer, recv: UserBuffer, is_in_place: bool
) -> NativeCall:
    """The library's own sum, of elements of the user's type."""
    first = None if is_in_place else elements_extent(send)
    return NativeCall(op, first, elements_extent(recv), is_bytes=False)


@READERS.reads("Allreduce")
def allreduce(
    c: IntraContext, name: str, form: str, sendbuf: Any, recvbuf: Any, op: MPI.Op
) -> Task:
    """Allreduce."""
    recv, is_in_place = read_block(recvbuf, writable=True), omits_own(sendbuf)
    send = recv if is_in_place else operands(sendbuf, recv)
    by = operator_for(op, recv)
    if send.counts != recv.counts:
        raise ValueError(
            f"message: {send.counts[0]} elements are sent, {recv.counts[0]} received"
        )
    n, commutes = send.nbytes, op.is_commutative
    by_size = partial(
        choose_inside.allreduce, c.p, n, lambda: c.machine, commutes, c.small
    )
    name, is_left = chosen(c, "Allreduce", name, form, n, by_size, commutes)
    more: dict[str, Any] = {"recv": (recv,), "is_in_place": is_in_place}
    if is_left:
        native = native_sum("Allreduce", send, recv, is_in_place)
        return _summed(c, name, send, by, native=native, **more)
    sizes = {"p": c.p, "m": send.counts[0]}
    schedule = partial(c.schedule, "allreduce", name, sizes, by.extent)
    return _summed(c, name, send, by, schedule=schedule, **more)


@READERS.reads("Reduce_scatter_block")
def reduce_scatter_block(
    c: IntraContext, name: str, form: str, sendbuf: Any, recvbuf: Any, op: MPI.Op
) -> Task:
    """Reduce_scatter_block."""
    is_in_place = omits_own(sendbuf)
    if is_in_place:
        blocks = read_block(recvbuf, writable=True, n=c.p)
        first, total = blocks.displacements[:1], (sum(blocks.counts),)
        send = replace(blocks, displacements=first, counts=total)
        recv = blocks.block(0)
    else:
        recv = read_block(recvbuf, writable=True)
        send = operands(sendbuf, recv, blocks=c.p)
    each = recv.counts[0]
    if send.counts[0] != each * c.p:
        raise ValueError(
            f"message: {send.counts[0]} elements are sent, and {each} received by each "
            f"of {c.p}"
        )
    ends, counts = (send, recv, op), (each,) * c.p
    return _scattered(c, "Reduce_scatter_block", name, form, *ends, counts, is_in_place)


@READERS.reads("Reduce_scatter")
def reduce_scatter(
    c: IntraContext,
    name: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    recvcounts: Sequence[int] | None,
    op: MPI.Op,
) -> Task:
    """Reduce_scatter; where nobody says what each receives, all tell each other."""
    recv = read_block(recvbuf, writable=True)
    counts = None
    if recvcounts is not None:
        counts = integers(recvcounts, c.p, "counts")
        if min(counts) < 0:
            raise ValueError(f"message: negative count {min(counts)}")
    is_in_place = omits_own(sendbuf)
    if is_in_place:
        if counts is None:
            raise TypeError("message: expecting counts with MPI.IN_PLACE")
        send, recv = recv, replace(recv, counts=(counts[c.index],))
    else:
        send = operands(sendbuf, recv)
    own, total = recv.counts[0], send.counts[0]
    if counts is not None and (own != counts[c.index] or total != sum(counts)):
        raise ValueError(
            f"message: the counts are {list(counts)}, of which {own} are received "
            f"by rank {c.index} and {total} are sent by everyone"
        )
    ends = send, recv, op
    return _scattered(c, "Reduce_scatter", name, form, *ends, counts, is_in_place)


def _scattered(
    c: IntraContext,
    op: str,
    name: str,
    form: str,
    send: UserBuffer,
    recv: UserBuffer,
    by: MPI.Op,
    counts: Counts | None,
    is_in_place: bool,
) -> Task:
    """A sum that is cut by counts, which may have to be asked for."""
    combine, commutes = operator_for(by, recv), by.is_commutative
    few = "bruck" if commutes else "pairwise"
    found = partial(_unweighed, few)
    if counts is not None:
        sizes = np.array(counts, np.int64) * recv.datatype.Get_size()
        how = sizes, lambda: c.machine, commutes, c.small
        found = partial(choose_inside.reduce_scatter, *how)
    n = None if counts is None else send.nbytes
    name, is_left = chosen(c, op, name, form, n, found, commutes)
    more: dict[str, Any] = {"recv": (recv,), "is_in_place": is_in_place}
    if is_left and counts is not None:
        # of MPI.IN_PLACE mpi4py takes all, and of blocks of one size the count of one
        is_block = op == "Reduce_scatter_block"
        whole = send if is_in_place and not is_block else recv
        first = recv if is_block else send
        native = native_sum(op, replace(send, counts=first.counts), whole, is_in_place)
        return _summed(c, name, send, combine, native=native, **more)

    def schedule(counts: Counts) -> Schedule:
        sizes = {"counts": counts}
        return c.schedule("reduce_scatter", name, sizes, combine.extent)

    if counts is None:
        c.measure_for("reduce_scatter", name)
        more["question"] = ask_each(c.group, recv.counts, first_column)
        more["schedule"] = schedule
    else:
        more["schedule"] = partial(schedule, counts)
    return _summed(c, name, send, combine, **more)


def _unweighed(name: str) -> Comparison:
    return Choice(name, "as not all ranks know the counts"), False


# -- a block to each


def _exchanged(
    c: IntraContext, name: str, send: UserBuffer, recv: UserBuffer, **more: Any
) -> Task:
    """The task of a rank that has a block for each."""
    sent, expected = (dict(zip(c.senders, x.sizes, strict=True)) for x in (send, recv))
    return Task(
        algorithm=name,
        send=(send,),
        recv=(recv,),
        sent=sent,
        expected=expected,
        **more,
    )


@READERS.reads("Alltoall")
def alltoall(c: IntraContext, name: str, form: str, sendbuf: Any, recvbuf: Any) -> Task:
    """Alltoall."""
    recv = read_block(recvbuf, writable=True, n=c.p)
    is_in_place = omits_own(sendbuf)
    send = recv if is_in_place else read_block(sendbuf, writable=False, n=c.p)
    if not is_in_place:
        check_disjoint(send, recv, HINT)
    each = send.sizes[0]
    if each != recv.sizes[0]:
        raise ValueError(
            f"message: {each} bytes are sent to each, {recv.sizes[0]} received"
        )
    by_size = partial(choose_inside.alltoall, c.p, each, lambda: c.machine, c.small)
    name, is_left = chosen(c, "Alltoall", name, form, each * c.p, by_size)
    more: dict[str, Any] = {"is_in_place": is_in_place}
    if is_left:
        first = None if is_in_place else block_extent(send)
        more["native"] = NativeCall("Alltoall", first, block_extent(recv))
        return _exchanged(c, name, send, recv, **more)
    unit = unit_of(each)
    sizes = {"p": c.p, "k": each // unit}
    more["schedule"] = partial(c.schedule, "alltoall", name, sizes, unit)
    more["contributions"] = lambda: [each] * c.p
    return _exchanged(c, name, send, recv, **more)


@READERS.reads("Alltoallv")
def alltoallv(
    c: IntraContext, name: str, form: str, sendbuf: Any, recvbuf: Any
) -> Task:
    """Alltoallv. Nobody knows the sizes of all: where it may pay, all ask."""
    recv, is_in_place = read_vector(recvbuf, c.p), omits_own(sendbuf)
    send = recv if is_in_place else read_vector(sendbuf, c.p, writable=False)
    if not is_in_place:
        check_disjoint(send, recv, HINT)
    more: dict[str, Any] = {"is_in_place": is_in_place}
    if name == "auto":
        asks = c.device != "direct" and choose_inside.asks(c.p, c.tuned or BUILT_IN)
        if not asks:
            name = "rotated"
            if leaves_to_library(c, form, None, is_faster=True):
                log_choice("Alltoallv", Choice(LIBRARY, f"on {c.p} processes"))
                first = None if is_in_place else vector_extent(send)
                more["native"] = NativeCall("Alltoallv", first, vector_extent(recv))
                return _exchanged(c, name, send, recv, **more)
        else:
            more["question"] = _ask_largest(c, send)
    else:
        entry = fitting("alltoallv", name, c.p)
        c.measure_for("alltoallv", name)
        if entry.node_memory:
            more["question"] = ask_each(
                c.group, send.sizes, lambda rows: (name, CountTable(rows))
            )
            more["contributions"] = _row_sums
        elif entry.own_counts and c.p > 1:
            more["question"] = _ask_passing(c, name, send)

    def schedule(algorithm: str = name, known: CountTable | bytes = b"") -> Schedule:
        table = (
            known if isinstance(known, CountTable) else _own_lines(c, send, recv, known)
        )
        return c.schedule("alltoallv", algorithm, {"table": table})

    return _exchanged(c, name, send, recv, schedule=schedule, **more)


def _own_lines(
    c: IntraContext, send: UserBuffer, recv: UserBuffer, passing: bytes
) -> OwnLines:
    """What this rank sends to each and receives from each, and what passes through it,
    if it was told; of one rank alone, its own block does."""
    lines = send.sizes, recv.sizes
    rows = np.frombuffer(passing, np.int64) if passing else np.array(send.sizes)
    told = rows.reshape(-1, c.p) if passing or c.p == 1 else None
    return OwnLines((c.p, c.p), *lines, passing=told)


def _row_sums(name: str, table: CountTable) -> Contributions:
    sums: list[int] = table.rows.sum(1).tolist()
    return sums


def _ask_largest(c: IntraContext, send: UserBuffer) -> Question:
    """Ask for the largest block of all ranks, which says the algorithm; that may have
    to ask for more."""
    machine = c.machine

    def read(answer: bytes) -> tuple[Any, ...] | Question:
        largest = int(np.frombuffer(answer, np.int64).max())
        choice = choose_inside.alltoallv(c.p, largest, machine)
        log_choice("Alltoallv", choice)
        if named("alltoallv", choice.name).own_counts:
            return _ask_passing(c, choice.name, send)
        return (choice.name,)

    said = np.array([max(send.sizes)], np.int64).tobytes()
    return Question(said, read, c.group, is_local=True)


def _ask_passing(
    c: IntraContext, name: str, send: UserBuffer, level: int = 0, rows: bytes = b""
) -> Question:
    """Ask for the sizes of the blocks that pass through this rank, which go the way of
    these before them, a question for each digit; row l has those that it holds before
    digit l."""
    from ...algorithms.alltoallv import digits

    p, r, radix = c.p, c.number, named("alltoallv", name).options["radix"]
    levels = digits(p, radix)
    if not rows:
        rows = np.array(send.sizes, np.int64)[(r + np.arange(p)) % p].tobytes()
    now = np.frombuffer(rows, np.int64).reshape(-1, p)[-1].copy()
    steps = levels[level]
    said = [now[ways].tobytes() for _, ways in steps]
    starts = np.cumsum([0, *map(len, said)]).tolist()
    sends = tuple(
        ((r + step) % p, starts[i], len(said[i])) for i, (step, _) in enumerate(steps)
    )
    receives = tuple(
        ((r - step) % p, len(said[i])) for i, (step, _) in enumerate(steps)
    )

    def read(answer: bytes) -> tuple[Any, ...] | Question:
        for i, (_, ways) in enumerate(steps):
            block = answer[starts[i] : starts[i + 1]]
            now[ways] = np.frombuffer(block, np.int64)
        known = rows + now.tobytes()
        if level + 1 < len(levels):
            return _ask_passing(c, name, send, level + 1, known)
        return name, known

    return Question(b"".join(said), read, sends=sends, receives=receives)
