"""The arguments of sums and exchanges inside one group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from ...choose import inside as choose, recipe_inside as recipes
from ...choose.between import check
from ...choose.choose import BUILT_IN, Choice
from ...choose.estimate import Machine
from ...choose.inside import Weighed
from ...choose.recipe import Recipe
from ...schedules.registry import Algorithm, fitting, named
from ..context.context_intra import IntraContext
from ..memory import buffers
from ..memory.buffers import Message
from ..memory.reducing import Operator, operator
from ..waiting.waiting import Messages
from .call import Call, check_disjoint, log_choice
from .negotiation import Asking, Negotiation, ask_each, counts_of

Counts = tuple[int, ...]
_HINT = "; for data that are where results go, send MPI.IN_PLACE"


def _chosen(
    c: IntraContext,
    op: str,
    name: str,
    choose: Callable[[], Weighed],
    commutative: bool = True,
) -> tuple[str, bool]:
    """The algorithm asked for, if it will do; for "auto", the one that is chosen, and
    whether the MPI library's own call is faster still."""
    if name != "auto":
        fitting(_collective(op), name, c.p)
        check(_collective(op), name, commutative)
        return name, False
    found, fallback = choose()
    log_choice(op, replace(found, name="library") if fallback else found)
    return found.name, fallback or c.device == "direct"


def _collective(op: str) -> str:
    return op.lower().removesuffix("_block")


def _startup(c: IntraContext, entry: Algorithm) -> float:
    """What a start-up is in bytes, measured only for who wants to know."""
    return c.machine.startup if "startup" in entry.options else 1.0


def _is_in_place(sendbuf: Any) -> bool:
    return sendbuf is None or sendbuf is MPI.IN_PLACE


def _summed(
    c: IntraContext, name: str, send: Message, by: Operator, **more: Any
) -> Call:
    """The call of a rank whose vector all combine."""
    n = sum(send.nbytes)
    sizes = dict.fromkeys(c.senders, n)
    more = {"nbytes": n, "sent": sizes, "expected": sizes, **more}
    return Call(c, name, send=(send,), operator=by, **more)


def _operands(sendbuf: Any, recv: Message) -> Message:
    """What is sent, of the type of what is received and apart from it."""
    send = buffers.block(sendbuf, writable=False)
    if send.datatype != recv.datatype:
        raise ValueError("message: the types of what is sent and received differ")
    check_disjoint(send, recv, _HINT)
    return send


def allreduce(
    c: IntraContext, name: str, sendbuf: Any, recvbuf: Any, op: MPI.Op
) -> Call:
    """Allreduce."""
    recv, in_place = buffers.block(recvbuf, writable=True), _is_in_place(sendbuf)
    send, by = recv if in_place else _operands(sendbuf, recv), operator(op, recv)
    if send.counts != recv.counts:
        raise ValueError(
            f"message: {send.counts[0]} elements are sent, {recv.counts[0]} received"
        )
    n, commutes = sum(send.nbytes), op.is_commutative
    found = partial(choose.allreduce, c.p, n, lambda: c.machine, commutes, c.small)
    name, fallback = _chosen(c, "Allreduce", name, found, commutes)

    def recipe() -> Recipe:
        how = by.unit, _startup(c, named("allreduce", name)), c.placement
        return recipes.allreduce(name, c.p, c.number, send.counts[0], *how)

    more = {"recipe": recipe, "fallback": fallback, "in_place": in_place}
    return _summed(c, name, send, by, recv=(recv,), **more)


def reduce_scatter_block(
    c: IntraContext, name: str, sendbuf: Any, recvbuf: Any, op: MPI.Op
) -> Call:
    """Reduce_scatter_block."""
    in_place = _is_in_place(sendbuf)
    if in_place:
        every = buffers.block(recvbuf, writable=True, n=c.p)
        total = replace(every, counts=(sum(every.counts),), displs=every.displs[:1])
        send, recv = total, every.block(0)
    else:
        recv = buffers.block(recvbuf, writable=True)
        send = _operands(sendbuf, recv)
    each = recv.counts[0]
    if send.counts[0] != each * c.p:
        raise ValueError(
            f"message: {send.counts[0]} elements are sent, and {each} received by each "
            f"of {c.p}"
        )
    ends, counts = (send, recv, op), (each,) * c.p
    return _scattered(c, "Reduce_scatter_block", name, *ends, counts, in_place)


def reduce_scatter(
    c: IntraContext,
    name: str,
    sendbuf: Any,
    recvbuf: Any,
    recvcounts: Sequence[int] | None,
    op: MPI.Op,
) -> Call:
    """Reduce_scatter; where nobody says what each receives, all tell each other."""
    recv = buffers.block(recvbuf, writable=True)
    counts = None
    if recvcounts is not None:
        counts = buffers.integers(recvcounts, c.p, "counts")
        if min(counts) < 0:
            raise ValueError(f"message: negative count {min(counts)}")
    in_place = _is_in_place(sendbuf)
    if in_place:
        if counts is None:
            raise TypeError("message: expecting counts with MPI.IN_PLACE")
        send, recv = recv, replace(recv, counts=(counts[c.index],))
    else:
        send = _operands(sendbuf, recv)
    own, total = recv.counts[0], send.counts[0]
    if counts is not None and (own != counts[c.index] or total != sum(counts)):
        raise ValueError(
            f"message: the counts are {list(counts)}, of which {own} are received "
            f"by rank {c.index} and {total} are sent by everyone"
        )
    return _scattered(c, "Reduce_scatter", name, send, recv, op, counts, in_place)


def _scattered(
    c: IntraContext,
    op: str,
    name: str,
    send: Message,
    recv: Message,
    by: MPI.Op,
    counts: Counts | None,
    in_place: bool,
) -> Call:
    """A sum that is cut by counts, which may have to be asked for."""
    combine, commutes = operator(by, recv), by.is_commutative
    few = "bruck" if commutes else "pairwise"
    found = partial(choose.fallback, few, "as not all ranks know the counts")
    if counts is not None:
        sizes = np.array(counts, np.int64) * recv.datatype.Get_size()
        how = sizes, lambda: c.machine, commutes, c.small
        found = partial(choose.reduce_scatter, *how)
    name, fallback = _chosen(c, op, name, found, commutes)

    def recipe(counts: Counts) -> Recipe:
        how = combine.unit, _startup(c, named("reduce_scatter", name)), c.placement
        return recipes.reduce_scatter(name, counts, c.number, *how)

    more: dict[str, Any] = {"recipe": recipe}
    if counts is None:
        more["negotiation"] = ask_each(c, recv.counts, counts_of)
    else:
        more["recipe"] = partial(recipe, counts)
    more |= {"fallback": fallback, "in_place": in_place}
    return _summed(c, name, send, combine, recv=(recv,), **more)


def _exchanged(
    c: IntraContext, name: str, send: Message, recv: Message, **more: Any
) -> Call:
    """The call of a rank that has a block for each."""
    sent, expected = (dict(zip(c.senders, x.nbytes, strict=True)) for x in (send, recv))
    more = {"sent": sent, "expected": expected, **more}
    return Call(c, name, send=(send,), recv=(recv,), **more)


def alltoall(c: IntraContext, name: str, sendbuf: Any, recvbuf: Any) -> Call:
    """Alltoall."""
    recv, in_place = buffers.block(recvbuf, True, n=c.p), _is_in_place(sendbuf)
    send = recv if in_place else buffers.block(sendbuf, writable=False, n=c.p)
    if not in_place:
        check_disjoint(send, recv, _HINT)
    each = send.nbytes[0]
    if each != recv.nbytes[0]:
        raise ValueError(
            f"message: {each} bytes are sent to each, {recv.nbytes[0]} received"
        )
    found = partial(choose.alltoall, c.p, each, lambda: c.machine, c.small)
    name, fallback = _chosen(c, "Alltoall", name, found)

    def recipe() -> Recipe:
        how = _startup(c, named("alltoall", name)), c.placement
        return recipes.alltoall(name, c.p, c.number, each, *how)

    more = {"recipe": recipe, "fallback": fallback, "in_place": in_place}
    more["nbytes"] = each * c.p
    return _exchanged(c, name, send, recv, **more)


def alltoallv(c: IntraContext, name: str, sendbuf: Any, recvbuf: Any) -> Call:
    """Alltoallv. Nobody knows the sizes of all: where it may pay, all ask."""
    recv, in_place = buffers.vector(recvbuf, c.p), _is_in_place(sendbuf)
    send = recv if in_place else buffers.vector(sendbuf, c.p, writable=False)
    if not in_place:
        check_disjoint(send, recv, _HINT)
    fallback, negotiation = False, None
    if name == "auto":
        fallback = c.device == "direct" or not choose.asks(c.p, c.tuned or BUILT_IN)
        if fallback:
            name = "rotated"
            log_choice("Alltoallv", Choice("library", f"on {c.p} processes"))
        else:
            negotiation = Negotiation(partial(_largest, c, c.machine, send), tuple)
    else:
        entry = fitting("alltoallv", name, c.p)
        if entry.node_memory:
            negotiation = ask_each(c, send.nbytes, lambda x: (name, x.tobytes()))
        elif entry.own_counts:
            negotiation = Negotiation(partial(_passing, c, name, send), tuple)

    def recipe(found: str = name, held: bytes = b"") -> Recipe:
        if (entry := named("alltoallv", found)).node_memory:
            how = _startup(c, entry), c.placement
            return recipes.alltoallv_known(found, c.number, held, *how)
        return recipes.alltoallv(found, c.number, send.nbytes, recv.nbytes, held)

    more = {"recipe": recipe, "fallback": fallback, "in_place": in_place}
    return _exchanged(c, name, send, recv, negotiation=negotiation, **more)


def _largest(c: IntraContext, machine: Machine, send: Message, tag: int) -> Asking:
    """The algorithm for the largest block of all ranks, and what it must know."""
    most = np.array(max(send.nbytes))
    yield Messages([c.comm.Iallreduce(MPI.IN_PLACE, most, MPI.MAX)])
    found = choose.alltoallv(c.p, int(most), machine)
    log_choice("Alltoallv", found)
    if named("alltoallv", found.name).own_counts:
        return (yield from _passing(c, found.name, send, tag))
    return (found.name,)


def _passing(c: IntraContext, name: str, send: Message, tag: int) -> Asking:
    """The sizes of the blocks that pass through this rank, which go the way of these
    before them: row l has those that it holds before digit l."""
    from ...algorithms.alltoallv import digits

    p, r, radix = c.p, c.number, named("alltoallv", name).options["radix"]
    now = np.array(send.nbytes, np.int64)[(r + np.arange(p)) % p]
    rows = [now.copy()]
    for level in digits(p, radix):
        requests, came = [], []
        peers: list[int] = []
        for step, ways in level:
            came.append((ways, buffer := np.empty(len(ways), np.int64)))
            peers += (r - step) % p, (r + step) % p
            requests.append(c.comm.Irecv(buffer, (r - step) % p, tag))
            requests.append(c.comm.Isend(now[ways], (r + step) % p, tag))
        yield Messages(requests, peers)
        for ways, buffer in came:
            now[ways] = buffer
        rows.append(now.copy())
    return name, np.array(rows).tobytes()


#: what reads the arguments of each operation
OPERATIONS = {
    "Allreduce": allreduce,
    "Reduce_scatter": reduce_scatter,
    "Reduce_scatter_block": reduce_scatter_block,
    "Alltoall": alltoall,
    "Alltoallv": alltoallv,
}
