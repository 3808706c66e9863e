"""The arguments of collectives between a root and the other group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ...choose import between as choose
from ...choose.choose import Choice
from ...collectives.collective import BETWEEN
from ...collectives.known import unit_of
from ...collectives.records import operations_of_blocks
from ...schedules.hosts import Hosts
from ...schedules.layout import GroupBlocks, OwnBlock, Uneven
from ...schedules.registry import named
from ...schedules.schedule import Schedule
from ..buffers.operators import operator_for
from ..buffers.user_buffer import read_block, read_vector
from ..plan.native import (
    Extent,
    NativeCall,
    block_extent,
    elements_extent,
    vector_extent,
)
from ..plan.question import NOTHING_TO_ASK, ask_each, first_column
from ..plan.task import Contributions, Data, Task
from .choosing import chosen
from .readers import Readers

if TYPE_CHECKING:
    from ..context.inter import InterContext

#: what reads the arguments of operations with a root
READERS = Readers()


@dataclass(frozen=True, slots=True)
class RootedGroup:
    """A root, vertex 0, and the q ranks of the other group, vertices 1 to q.

    `root` and `base` are the numbers of the root and of the other group's first rank;
    `v` is the own vertex.
    """

    q: int
    v: int
    root: int
    base: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of all vertices."""
        return self.root, *range(self.base, self.base + self.q)


def rooted_group(c: InterContext, root: int) -> RootedGroup | None:
    """The root and the other group; none for those who have no part in the call."""
    if root == MPI.PROC_NULL:
        return None
    if root == MPI.ROOT:
        return RootedGroup(c.there, 0, c.number, c.there_base)
    if not 0 <= root < c.there:
        raise ValueError(
            f"root {root}: the other group has ranks 0 to {c.there - 1}; in the root's "
            "own group, the root gives MPI.ROOT and the others MPI.PROC_NULL"
        )
    return RootedGroup(c.here, 1 + c.index, c.there_base + root, c.here_base)


def _unequal_hosts(c: InterContext, at: RootedGroup) -> Hosts | None:
    """The hosts of all vertices, if they are known to be unequal."""
    hosts = c.placement.unequal_hosts
    return hosts and hosts.only(at.numbers)


def without_part(c: InterContext, name: str, collective: str) -> Task:
    """The task of a rank that has no part in a call."""
    if name != "auto":
        named(collective, name)  # it is an error on this rank too if there is none
    return Task(algorithm=name, participants=())


def _task(
    name: str,
    is_native: bool,
    schedule: Callable[..., Schedule],
    at: RootedGroup,
    data: tuple[Data, ...],
    sizes: tuple[int, ...],
    *,
    goes_down: bool,
    native: NativeCall,
    **more: Any,
) -> Task:
    """The task of a rank whose data go down from the root or up to it."""
    if at.v:
        peers = {at.root: sizes[0]}
    else:
        each = sizes if len(sizes) == at.q else sizes * at.q
        peers = dict(zip(range(at.base, at.base + at.q), each, strict=True))
    known: dict[str, Any] = {"participants": at.numbers, "root": at.root, **more}
    known |= (
        {"native": native} if is_native else {"schedule": schedule, "ranks": at.numbers}
    )
    if goes_down == (at.v == 0):
        return Task(algorithm=name, send=data, sent=peers, **known)
    return Task(algorithm=name, recv=data, expected=peers, **known)


def _equal_contributions(c: InterContext, n: int) -> Callable[..., Contributions]:
    return lambda *_: [n] * c.size


@READERS.reads("Bcast")
def bcast(c: InterContext, name: str, form: str, buf: Any, root: int) -> Task:
    """Bcast."""
    at = rooted_group(c, root)
    if at is None:
        return without_part(c, name, "inter_bcast")
    data = read_block(buf, writable=at.v > 0)
    ends = _ends(at, block_extent(data))
    return broadcast(c, name, form, at, data, NativeCall("Bcast", *ends))


def _ends(at: RootedGroup, extent: Extent) -> tuple[Extent | None, Extent | None]:
    """The extents of what the root, or a rank of the other group, sends and receives,
    where data go down."""
    return (extent, None) if at.v == 0 else (None, extent)


def broadcast(
    c: InterContext,
    name: str,
    form: str,
    at: RootedGroup,
    data: Data,
    native: NativeCall,
) -> Task:
    """The task of a Bcast, of data that may lie in several places."""
    n, hosts = data.nbytes, _unequal_hosts(c, at)
    by_size = partial(
        choose.rooted_vector, "inter_bcast", at.q, n, c.machine, hosts=hosts
    )
    name, is_native = chosen(c, "inter_bcast", name, form, n, by_size)
    unit = unit_of(n)
    sizes = {"q": at.q, "m": n // unit}
    schedule = partial(c.schedule, "inter_bcast", name, sizes, unit, at.numbers)
    ends = at, (data,), (n,)
    more: dict[str, Any] = {"contributions": _equal_contributions(c, n)}
    more |= {"goes_down": True, "native": native}
    return _task(name, is_native, schedule, *ends, **more)


@READERS.reads("Reduce")
def reduce(
    c: InterContext,
    name: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op,
    root: int,
) -> Task:
    """Reduce."""
    at = rooted_group(c, root)
    if at is None:
        return without_part(c, name, "inter_reduce")
    data = read_block(sendbuf if at.v else recvbuf, writable=at.v == 0)
    by = operator_for(op, data)
    n, count, commutes = data.nbytes, data.counts[0], op.is_commutative
    known = c.machine, commutes, _unequal_hosts(c, at)
    by_size = partial(choose.rooted_vector, "inter_reduce", at.q, n, *known)
    name, is_native = chosen(c, "inter_reduce", name, form, n, by_size, commutes)
    sizes = {"q": at.q, "m": count}
    schedule = partial(c.schedule, "inter_reduce", name, sizes, by.extent, at.numbers)
    extent = elements_extent(data)
    ends = (extent, None) if at.v else (None, extent)
    more: dict[str, Any] = {
        "operator": by,
        "contributions": _equal_contributions(c, n),
        "goes_down": False,
        "native": NativeCall("Reduce", ends[0], ends[1], is_bytes=False),
    }
    return _task(name, is_native, schedule, at, (data,), (n,), **more)


def blocks(
    c: InterContext,
    name: str,
    form: str,
    collective: str,
    at: RootedGroup,
    data: tuple[Data, ...],
    sizes: tuple[int, ...],
    native: NativeCall,
) -> Task:
    """A gather or scatter of blocks of those sizes in bytes: at the root, of everyone's
    if they differ; elsewhere of the own one."""
    is_irregular = collective.endswith("v")
    by_size = partial(_by_size, c, collective, at, sizes[0])
    n = 0 if is_irregular else sizes[0]
    how: dict[str, Any] = {"may_be_native": not is_irregular}
    name, is_native = chosen(c, collective, name, form, n, by_size, **how)
    schedule = partial(_of_counts, c, collective, name, at)
    more: dict[str, Any] = {"native": native, "goes_down": "scatter" in collective}
    asks = not is_native and is_irregular and named(collective, name).own_counts
    if asks and at.v:
        more["question"] = ask_each(c.group, sizes[:1], first_column)
        more["contributions"] = partial(_of_blocks, c, at)
    elif is_irregular:
        schedule = partial(schedule, sizes)
        if asks:  # the root knows all, and counts what others do to ask each other
            more["question"] = NOTHING_TO_ASK
        if len(sizes) == at.q:
            more["contributions"] = lambda: _of_blocks(c, at, sizes)
    else:
        each = {"q": at.q, "k": n}
        schedule = partial(c.schedule, collective, name, each, 1, at.numbers)
        more["contributions"] = _equal_contributions(c, n)
    return _task(name, is_native, schedule, at, data, sizes, **more)


def _of_counts(
    c: InterContext,
    collective: str,
    name: str,
    at: RootedGroup,
    counts: tuple[int, ...],
) -> Schedule:
    """The schedule of blocks of so many bytes; of one count where only the own block is
    known."""
    group: GroupBlocks = Uneven(counts)
    if len(counts) < at.q:
        (own,) = counts
        group = OwnBlock(at.q, at.v - 1, 0, own, own)
    return c.schedule(collective, name, {"counts": group}, 1, at.numbers)


def _of_blocks(
    c: InterContext, at: RootedGroup, counts: tuple[int, ...]
) -> Contributions:
    """What each contributes where blocks differ: its block; the root, all of them."""
    sizes = [-1] * c.size
    sizes[at.base : at.base + at.q] = counts
    sizes[at.root] = sum(counts)
    return sizes


def _by_size(c: InterContext, collective: str, at: RootedGroup, k: int) -> Choice:
    if collective.endswith("v"):
        return Choice("linear", "as only the root knows all sizes")
    return choose.rooted_blocks(collective, at.q, k, c.machine, _unequal_hosts(c, at))


def _pieces(
    c: InterContext,
    name: str,
    form: str,
    op: str,
    whole: Any,
    piece: Any,
    root: int,
) -> Task:
    """The task of a rank that has all blocks, as the root, or one of them."""
    at, collective = rooted_group(c, root), f"inter_{op.lower()}"
    if at is None:
        return without_part(c, name, collective)
    goes_down = "Scatter" in op
    writable = (at.v > 0) == goes_down
    if at.v:
        data = read_block(piece, writable=writable)
        extent = block_extent(data)
    elif op.endswith("v"):
        data = read_vector(whole, at.q, writable=writable)
        extent = vector_extent(data)
    else:
        data = read_block(whole, writable=writable, n=at.q)
        extent = block_extent(data)
    sends = goes_down == (at.v == 0)
    native = NativeCall(op, *((extent, None) if sends else (None, extent)))
    return blocks(c, name, form, collective, at, (data,), data.sizes, native)


def _gather(
    op: str,
    c: InterContext,
    name: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    root: int,
) -> Task:
    return _pieces(c, name, form, op, recvbuf, sendbuf, root)


def _scatter(
    op: str,
    c: InterContext,
    name: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    root: int,
) -> Task:
    return _pieces(c, name, form, op, sendbuf, recvbuf, root)


for _op in operations_of_blocks(BETWEEN):
    READERS[_op] = partial(_scatter if "Scatter" in _op else _gather, _op)
