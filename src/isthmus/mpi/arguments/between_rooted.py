"""The tasks of collectives between a root and the remote group of the root.

The peers of the root in its own group have no part in the call, and cannot know
whether the call went ahead: their tasks have neither schedule nor participants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

from mpi4py import MPI

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
    NativeCall,
    block_spec,
    elements_spec,
    vector_spec,
)
from ..plan.question import NOTHING_TO_ASK, ask_each, first_column
from ..plan.task import Contributions, Data, Task
from .choosing import resolve_algorithm
from .readers import Readers

if TYPE_CHECKING:
    from ..context.inter import InterContext

Counts = tuple[int, ...]
#: the readers of operations between two groups that have a root
ROOTED_READERS = Readers()


@dataclass(frozen=True, slots=True)
class RootedGroup:
    """A root, vertex 0, and the q ranks of its remote group, vertices 1 to q.

    `root` and `base` are the numbers of the root and of the remote group's first rank;
    `vertex` is the own vertex.
    """

    q: int
    vertex: int
    root: int
    base: int

    @property
    def is_root(self) -> bool:
        """Whether this rank is the root."""
        return self.vertex == 0

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of all vertices."""
        return self.root, *range(self.base, self.base + self.q)


def rooted_group(context: InterContext, root: SupportsIndex) -> RootedGroup | None:
    """The root and its remote group; None on a rank without a part in the call."""
    root = index(root)
    if root == MPI.PROC_NULL:
        return None
    here, there = context.here, context.there
    if root == MPI.ROOT:
        return RootedGroup(there, 0, context.number, context.there_base)
    if not 0 <= root < there:
        raise ValueError(
            f"root {root}: the other group has ranks 0 to {there - 1}; in the root's "
            "own group, the root gives MPI.ROOT and the others MPI.PROC_NULL"
        )
    number = context.there_base + root
    return RootedGroup(here, 1 + context.index, number, context.here_base)


def _unequal_hosts(context: InterContext, group: RootedGroup) -> Hosts | None:
    """The hosts of all vertices, if known to be unequal."""
    hosts = context.placement.unequal_hosts
    return hosts and hosts.only(group.numbers)


def _task_without_part(algorithm: str, collective: str) -> Task:
    """The task of a rank without a part in a call.

    The name of the algorithm is checked, so that all ranks refuse an unknown name.
    """
    if algorithm != "auto":
        named(collective, algorithm)
    return Task(algorithm=algorithm, participants=())


def _rooted_task(
    algorithm: str,
    group: RootedGroup,
    data: tuple[Data, ...],
    sizes: Counts,
    *,
    is_from_root: bool,
) -> Task:
    """The task of a rank whose data travel from the root or to the root.

    `sizes` has the bytes of each block of `data`, or of all equal blocks.
    """
    if group.is_root:
        block_sizes = sizes if len(sizes) == group.q else sizes * group.q
        numbers = range(group.base, group.base + group.q)
        peers = dict(zip(numbers, block_sizes, strict=True))
    else:
        peers = {group.root: sizes[0]}
    task = Task(algorithm=algorithm, participants=group.numbers, root=group.root)
    if is_from_root == group.is_root:
        return replace(task, send=data, sent=peers)
    return replace(task, recv=data, expected=peers)


def _equal_contributions(
    context: InterContext, nbytes: int
) -> Callable[..., Contributions]:
    return lambda *_: [nbytes] * context.size


@ROOTED_READERS.reads("Bcast")
def bcast(
    context: InterContext, algorithm: str, form: str, buf: Any, root: int
) -> Task:
    group = rooted_group(context, root)
    if group is None:
        return _task_without_part(algorithm, "inter_bcast")
    data = read_block(buf, writable=not group.is_root)
    spec = block_spec(data)
    native = NativeCall(
        "Bcast",
        send=spec if group.is_root else None,
        recv=None if group.is_root else spec,
    )
    return bcast_task(context, algorithm, form, group, data, native)


def bcast_task(
    context: InterContext,
    algorithm: str,
    form: str,
    group: RootedGroup,
    data: Data,
    native: NativeCall,
) -> Task:
    """The task of a Bcast, of data that may lie in several places."""
    nbytes, q = data.nbytes, group.q
    algorithm, is_native = resolve_algorithm(
        context,
        "inter_bcast",
        algorithm,
        form,
        nbytes,
        {"q": q, "m": nbytes},
        hosts=_unequal_hosts(context, group),
    )
    task = _rooted_task(algorithm, group, (data,), (nbytes,), is_from_root=True)
    task = replace(task, contributions=_equal_contributions(context, nbytes))
    if is_native:
        return replace(task, native=native)
    unit = unit_of(nbytes)
    sizes = {"q": q, "m": nbytes // unit}
    schedule = partial(
        context.schedule, "inter_bcast", algorithm, sizes, unit, group.numbers
    )
    return replace(task, schedule=schedule, ranks=group.numbers)


@ROOTED_READERS.reads("Reduce")
def reduce(
    context: InterContext,
    algorithm: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    op: MPI.Op,
    root: int,
) -> Task:
    group = rooted_group(context, root)
    if group is None:
        return _task_without_part(algorithm, "inter_reduce")
    data = read_block(recvbuf if group.is_root else sendbuf, writable=group.is_root)
    operator, commutes = operator_for(op, data), op.is_commutative
    nbytes, q = data.nbytes, group.q
    algorithm, is_native = resolve_algorithm(
        context,
        "inter_reduce",
        algorithm,
        form,
        nbytes,
        {"q": q, "m": nbytes},
        commutes,
        hosts=_unequal_hosts(context, group),
    )
    task = replace(
        _rooted_task(algorithm, group, (data,), (nbytes,), is_from_root=False),
        operator=operator,
        contributions=_equal_contributions(context, nbytes),
    )
    if is_native:
        spec = elements_spec(data)
        native = NativeCall(
            "Reduce",
            send=None if group.is_root else spec,
            recv=spec if group.is_root else None,
            is_bytes=False,
        )
        return replace(task, native=native)
    sizes = {"q": q, "m": data.counts[0]}
    schedule = partial(
        context.schedule,
        "inter_reduce",
        algorithm,
        sizes,
        operator.extent,
        group.numbers,
    )
    return replace(task, schedule=schedule, ranks=group.numbers)


def blocks_task(
    context: InterContext,
    algorithm: str,
    form: str,
    collective: str,
    group: RootedGroup,
    data: tuple[Data, ...],
    sizes: Counts,
    native: NativeCall,
) -> Task:
    """The task of a gather or scatter of blocks, each of data in several places.

    `sizes` has the bytes of the blocks: at the root of an irregular collective, of all
    blocks; elsewhere of a single block.
    """
    is_irregular = collective.endswith("v")
    nbytes = 0 if is_irregular else sizes[0]
    algorithm, is_native = resolve_algorithm(
        context,
        collective,
        algorithm,
        form,
        nbytes,
        {"q": group.q, "k": nbytes},
        may_be_native=not is_irregular,
        hosts=_unequal_hosts(context, group),
    )
    is_from_root = "scatter" in collective
    task = _rooted_task(algorithm, group, data, sizes, is_from_root=is_from_root)
    if is_native:
        return replace(task, native=native)
    task = replace(task, ranks=group.numbers)
    if not is_irregular:
        schedule_sizes = {"q": group.q, "k": nbytes}
        return replace(
            task,
            schedule=partial(
                context.schedule,
                collective,
                algorithm,
                schedule_sizes,
                1,
                group.numbers,
            ),
            contributions=_equal_contributions(context, nbytes),
        )
    schedule = partial(_schedule_of_counts, context, collective, algorithm, group)
    needs_all = named(collective, algorithm).own_counts
    if needs_all and not group.is_root:
        return replace(
            task,
            schedule=schedule,
            question=ask_each(context.group, sizes[:1], first_column),
            contributions=partial(_contributions_of_counts, context, group),
        )
    task = replace(task, schedule=partial(schedule, sizes))
    if needs_all:
        # the root knows all sizes; its plan has a question all the same, so that its
        # call is numbered like those of the ranks that ask each other
        task = replace(task, question=NOTHING_TO_ASK)
    if len(sizes) == group.q:
        contributions = partial(_contributions_of_counts, context, group, sizes)
        task = replace(task, contributions=contributions)
    return task


def _schedule_of_counts(
    context: InterContext,
    collective: str,
    algorithm: str,
    group: RootedGroup,
    counts: Counts,
) -> Schedule:
    """The schedule of blocks of `counts` bytes; `counts` may be the own count alone."""
    blocks: GroupBlocks = Uneven(counts)
    if len(counts) < group.q:
        (own,) = counts
        blocks = OwnBlock(group.q, group.vertex - 1, 0, own, own)
    sizes = {"counts": blocks}
    return context.schedule(collective, algorithm, sizes, 1, group.numbers)


def _contributions_of_counts(
    context: InterContext, group: RootedGroup, counts: Counts
) -> Contributions:
    """The contributions where blocks differ: of a rank its block, of the root all."""
    contributions = [-1] * context.size
    contributions[group.base : group.base + group.q] = counts
    contributions[group.root] = sum(counts)
    return contributions


def _read_blocks(
    context: InterContext,
    algorithm: str,
    form: str,
    operation: str,
    whole: Any,
    block: Any,
    root: int,
) -> Task:
    """The task of the root, with all blocks, or of a rank with a single block."""
    group, collective = rooted_group(context, root), f"inter_{operation.lower()}"
    if group is None:
        return _task_without_part(algorithm, collective)
    is_sender = group.is_root == ("Scatter" in operation)
    if not group.is_root:
        data = read_block(block, writable=not is_sender)
        spec = block_spec(data)
    elif operation.endswith("v"):
        data = read_vector(whole, group.q, writable=not is_sender)
        spec = vector_spec(data)
    else:
        data = read_block(whole, writable=not is_sender, n=group.q)
        spec = block_spec(data)
    native = NativeCall(
        operation,
        send=spec if is_sender else None,
        recv=None if is_sender else spec,
    )
    return blocks_task(
        context, algorithm, form, collective, group, (data,), data.sizes, native
    )


def _gather(
    operation: str,
    context: InterContext,
    algorithm: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    root: int,
) -> Task:
    return _read_blocks(context, algorithm, form, operation, recvbuf, sendbuf, root)


def _scatter(
    operation: str,
    context: InterContext,
    algorithm: str,
    form: str,
    sendbuf: Any,
    recvbuf: Any,
    root: int,
) -> Task:
    return _read_blocks(context, algorithm, form, operation, sendbuf, recvbuf, root)


for _operation in operations_of_blocks(BETWEEN):
    _reader = _scatter if "Scatter" in _operation else _gather
    ROOTED_READERS[_operation] = partial(_reader, _operation)
