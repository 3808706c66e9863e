"""The arguments of collectives from or to one rank of a group."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ...choose import inside as choose
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
    block_extent,
    elements_extent,
    vector_extent,
)
from ..plan.question import ask_each, first_column
from ..plan.task import Task
from .inside import (
    HINT_OWN,
    LIBRARY,
    READERS as UNROOTED,
    Counts,
    chosen,
    native_sum,
    omits_own,
    operands,
)
from .readers import Readers

if TYPE_CHECKING:
    from ..context.intra import IntraContext

#: what reads the arguments of all operations inside one group
READERS = Readers(UNROOTED)
_HINT_KEPT = "; for a block that stays where it is, receive into MPI.IN_PLACE"


def _check_root(c: IntraContext, root: int) -> None:
    if not 0 <= root < c.p:
        raise ValueError(f"root {root}: there are ranks 0 to {c.p - 1}")


@READERS.reads("Bcast")
def bcast(c: IntraContext, name: str, form: str, buf: Any, root: int) -> Task:
    """Bcast."""
    _check_root(c, root)
    is_root = c.number == root
    data = read_block(buf, writable=not is_root)
    n, hosts = data.nbytes, c.placement.unequal_hosts
    by_size = partial(choose.bcast, c.p, n, lambda: c.machine, c.small, root, hosts)
    is_left = name == LIBRARY
    if not is_left:
        name, is_left = chosen(c, "Bcast", name, form, n, by_size)
    more: dict[str, Any] = {
        "algorithm": name,
        "send": (data,) if is_root else (),
        "recv": () if is_root else (data,),
        "root": root,
        "sent": n,
        "expected": {root: n},
    }
    if is_left:
        extent = block_extent(data)
        ends = (extent, None) if is_root else (None, extent)
        more["algorithm"] = LIBRARY
        return Task(native=NativeCall("Bcast", *ends), **more)
    unit = unit_of(n)
    sizes = {"p": c.p, "m": n // unit, "root": root}
    schedule = partial(c.schedule, "bcast", name, sizes, unit)
    return Task(schedule=schedule, contributions=lambda: [n] * c.p, **more)


@READERS.reads("Reduce")
def reduce(
    c: IntraContext,
    name: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op,
    root: int,
) -> Task:
    """Reduce."""
    _check_root(c, root)
    is_root = c.number == root
    is_in_place = is_root and omits_own(sendbuf)
    recv = read_block(recvbuf, writable=True) if is_root else None
    if recv is None:
        send = read_block(sendbuf, writable=False)
    else:
        send = recv if is_in_place else operands(sendbuf, recv)
        if send.counts != recv.counts:
            raise ValueError(
                f"message: {send.counts[0]} elements are sent, {recv.counts[0]} "
                "received"
            )
    by = operator_for(op, send)
    n, commutes = send.nbytes, op.is_commutative
    known = c.p, n, lambda: c.machine, commutes, root, c.placement.unequal_hosts
    by_size = partial(choose.reduce, *known)
    name, is_left = chosen(c, "Reduce", name, form, n, by_size, commutes)
    more: dict[str, Any] = {
        "algorithm": name,
        "send": (send,),
        "recv": () if recv is None else (recv,),
        "operator": by,
        "is_in_place": is_in_place,
        "root": root,
        "sent": n,
        "expected": dict.fromkeys(c.senders, n) if is_root else {},
    }
    if is_left:
        more["algorithm"] = LIBRARY
        if recv is None:
            ends = elements_extent(send), NO_BUFFER
            return Task(native=NativeCall("Reduce", *ends, is_bytes=False), **more)
        return Task(native=native_sum("Reduce", send, recv, is_in_place), **more)
    sizes = {"p": c.p, "m": send.counts[0], "root": root}
    schedule = partial(c.schedule, "reduce", name, sizes, by.extent)
    return Task(schedule=schedule, contributions=lambda: [n] * c.p, **more)


# -- blocks from all to the root, or from the root to all


def _pieces(
    op: str,
    c: IntraContext,
    name: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    root: int,
) -> Task:
    """The task of a rank that has one block, and, as the root, those of all.

    As the root it may leave its own block where it is, among all of them.
    """
    _check_root(c, root)
    goes_down, is_vector = "Scatter" in op, op.endswith("v")
    one, all_ = (recvbuf, sendbuf) if goes_down else (sendbuf, recvbuf)
    is_root = c.number == root
    own = whole = None
    if not (is_root and omits_own(one)):
        own = read_block(one, writable=goes_down)
    if is_root and is_vector:
        whole = read_vector(all_, c.p, writable=not goes_down)
    elif is_root:
        whole = read_block(all_, writable=not goes_down, n=c.p)
    if whole is not None and own is not None:
        _check_own(whole, own, root, goes_down=goes_down)
    mine = 0
    if own is not None:
        mine = own.nbytes
    elif whole is not None:
        mine = whole.sizes[root]
    sizes = None if whole is None else whole.sizes
    name, is_left = _algorithm(c, op, name, form, mine, root)
    send, recv = (whole, own) if goes_down else (own, whole)
    sent: dict[int, int] = {root: mine}
    expected = dict(zip(c.senders, sizes, strict=True)) if sizes else {}
    if goes_down:
        sent, expected = expected, sent
    more: dict[str, Any] = {
        "algorithm": name,
        "send": () if send is None else (send,),
        "recv": () if recv is None else (recv,),
        "own_block": root if is_root and own is None else None,
        "root": root,
        "sent": sent,
        "expected": expected,
    }
    if is_left:
        of_all = vector_extent if is_vector else block_extent
        ends = (
            None if own is None else block_extent(own),
            NO_BUFFER if whole is None else of_all(whole),
        )
        more["algorithm"] = LIBRARY
        return Task(native=NativeCall(op, *(ends[::-1] if goes_down else ends)), **more)
    collective = "scatterv" if goes_down else "gatherv"
    schedule = partial(_of_blocks, c, collective, name, root)
    if not is_vector:
        group = Equal(c.p, mine).blocks(1)
        more["contributions"] = lambda: [mine] * c.p
        return Task(schedule=partial(schedule, group), **more)
    if named(collective, name).own_counts and c.p > 1:
        c.measure_for(collective, name)
        more["question"] = ask_each(c.group, (mine,), first_column)
        more["contributions"] = _asked
        return Task(schedule=partial(_of_counts, schedule), **more)
    if sizes is None:
        own_block = OwnBlock(c.p, c.index, 0, mine, mine)
        return Task(schedule=partial(schedule, own_block), **more)
    return Task(schedule=partial(_of_counts, schedule, sizes), **more)


def _check_own(
    whole: UserBuffer, own: UserBuffer, root: int, *, goes_down: bool
) -> None:
    """Refuse a block of the root's that does not fit to, or lies in, those of all."""
    if goes_down:
        check_disjoint(whole, own, _HINT_KEPT)
    else:
        check_disjoint(own, whole, HINT_OWN)
    sent, room = own.nbytes, whole.sizes[root]
    if goes_down:
        sent, room = room, sent
    if sent != room:
        raise ValueError(
            f"message: this rank sends {sent} bytes, and has room for {room} of its own"
        )


def _algorithm(
    c: IntraContext, op: str, name: str, form: str, nbytes: int, root: int
) -> tuple[str, bool]:
    """The algorithm, and whether the library's own call is taken; of blocks that
    differ only the root knows all sizes."""
    if op.endswith("v"):
        by_size = partial(choose.fallback, "linear", "as only the root knows all sizes")
        return chosen(c, op, name, form, None, by_size)
    known = c.p, nbytes, lambda: c.machine, root, c.placement.unequal_hosts
    by_size = partial(choose.rooted_blocks, f"{op.lower()}v", *known)
    return chosen(c, op, name, form, nbytes, by_size)


def _of_blocks(
    c: IntraContext, collective: str, name: str, root: int, blocks: GroupBlocks
) -> Schedule:
    return c.schedule(collective, name, {"counts": blocks, "root": root}, 1)


def _of_counts(schedule: partial[Schedule], counts: Counts) -> Schedule:
    return schedule(listed(counts).blocks(1))


def _asked(counts: Counts) -> Counts:
    """What each contributes, as all have said."""
    return counts


for _op in operations_of_blocks(INSIDE):
    READERS[_op] = partial(_pieces, _op)
