"""All collectives by name, and the schedule of one for given sizes.

MPI has one name, `Allgather`, whether the communicator has one group or two. Here these
are different problems with different algorithms, so there is a record for each:
"allgatherv" inside one group, where blocks of one size are a case of any sizes,
"inter_allgather" between two, "multi_allgatherv" among several. People say MPI's name
and the groups; everything below takes the name of the record.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..schedules.hosts import Hosts
from ..schedules.names import WHERE
from ..schedules.registry import resolve
from ..schedules.schedule import Schedule
from ..spelling import unknown
from . import between, inside, rooted, several
from .collective import INSIDE, SEVERAL, VECTOR, Collective
from .placement import Placement

COLLECTIVES: dict[str, Collective] = {}
#: the least that a size may be
_LEAST = {"p": 1, "q": 1, "m": 0, "k": 0, "ka": 0, "kb": 0}
#: by the number of groups and the name of an operation in lower case
_MADE_BY: dict[tuple[int, str], Collective] = {}


def add(record: Collective) -> Collective:
    """Make a collective known; of two that make an operation, the first is taken."""
    COLLECTIVES[record.name] = record
    for operation in record.operations:
        _MADE_BY.setdefault((record.groups, operation.lower()), record)
    return record


def collective(name: str) -> Collective:
    """The record of that name, or an error that lists those there are."""
    record = COLLECTIVES.get(name)
    if record is None:
        raise ValueError(unknown("collective", name, sorted(COLLECTIVES)))
    return record


def operations(groups: int, *, on_mpi: bool = False) -> list[str]:
    """MPI's names of the operations of so many groups; only those that communicators
    make themselves, where that is asked."""
    records = (x for x in COLLECTIVES.values() if x.groups == min(groups, SEVERAL))
    return [
        operation
        for record in records
        if record.is_on_mpi or not on_mpi
        for operation in record.operations
    ]


def operations_of_blocks(groups: int) -> list[str]:
    """MPI's names of the operations with a root that has a block of each rank."""
    return [
        operation
        for record in COLLECTIVES.values()
        if record.groups == groups and record.is_rooted and record.gives != VECTOR
        for operation in record.operations
    ]


def tried() -> dict[str, str]:
    """The collectives whose candidates are tried on a communicator, each with the
    operation that is called for that."""
    names = (x.tried_as for x in COLLECTIVES.values() if x.tried_as)
    return {name: COLLECTIVES[name].operations[0] for name in names}


def groups_of(operation: str) -> list[int]:
    """The numbers of groups for which there is an operation, by its name in MPI, in
    capitals or not."""
    return sorted(n for n, name in _MADE_BY if name == operation.lower())


def made_by(operation: str, groups: int) -> Collective:
    """The record that makes an operation of so many groups, by its name in MPI, in
    capitals or not."""
    groups = min(groups, SEVERAL)
    record = _MADE_BY.get((groups, operation.lower()))
    if record is not None:
        return record
    every = sorted({name for _, name in _MADE_BY})
    if operation.lower() not in every:
        raise ValueError(unknown("collective", operation, every))
    known = sorted(name for n, name in _MADE_BY if n == groups)
    raise ValueError(
        f"there is no {operation} {WHERE[groups]}; known: {', '.join(known)}"
    )


def schedule(
    collective: str,
    algorithm: str,
    *,
    nodes: Sequence[Hashable] = (),
    hosts: Hosts | None = None,
    **sizes: Any,
) -> Schedule:
    """The schedule of all ranks for a collective.

    `p=, q=, ka=, kb=` (ranks, and elements each contributes) for "inter_allgather";
    `a=[…], b=[…]` (the counts of each group) for "inter_allgatherv"; `counts=[…]` for
    "allgatherv", which is in place inside one group; `p=, m=, root=` (ranks, elements,
    and who has or gets them all) for "bcast" and "reduce"; `counts=[…]` (the block of
    the sum that each gets) for "reduce_scatter"; `p=, m=` for "allreduce"; `counts=[…],
    root=` for "gatherv" and "scatterv"; `p=, k=` (what one sends to each) for
    "alltoall"; `table=[[…]]` (a row for each sender) for "alltoallv"; `p=` for
    "barrier".

    Between a root and the q ranks of the other group: `q=, m=` for "inter_bcast" and
    "inter_reduce", `q=, k=` (elements of each of them) for "inter_gather" and
    "inter_scatter", `counts=[…]` for "inter_gatherv" and "inter_scatterv".

    Between groups also `p=, q=, m=` for "inter_allreduce"; `a=[…], b=[…]` or `p=, q=,
    ka=, kb=` (what each gets of the other group's sum) for "inter_reduce_scatter" and
    "inter_reduce_scatter_block"; `p=, q=, ka=, kb=` (what one sends to each of the
    others) for "inter_alltoall"; `ab=[[…]], ba=[[…]]` (a row for each sender) for
    "inter_alltoallv"; `p=, q=` for "inter_barrier".

    Among several groups, where each leaves out its own: `groups=[[…], …]` (the counts
    of each) for "multi_allgatherv"; `sizes=[…], table=[[…]]` (the ranks of each group,
    and a row for each sender) for "multi_alltoallv".

    `nodes=[…]` says on which node each rank is, in the order of their numbers; without
    it, all are on one. `hosts` is what messages of each rank cost, for the algorithms
    that ask for it. An intragroup stage may follow the algorithm's name:
    "segmented+ring".
    """
    record = COLLECTIVES.get(collective)
    if record is None:
        raise ValueError(unknown("collective", collective, sorted(COLLECTIVES)))
    if record.example.keys() != sizes.keys():
        takes, got = ", ".join(record.example), ", ".join(sizes) or "none"
        raise TypeError(f"{collective} takes {takes}; got {got}")
    for name, least in _LEAST.items():
        if sizes.get(name, least) < least:
            raise ValueError(f"{name} = {sizes[name]}: must be at least {least}")
    made = record.schedule(algorithm, sizes, Placement(tuple(nodes), hosts))
    entry, _ = resolve(collective, algorithm)
    if record.groups == INSIDE and not entry.needs(made.n):
        raise ValueError(f"{entry.name!r} does not work for a group of {made.n}")
    if len(nodes) not in (0, made.n):
        raise ValueError(f"nodes has {len(nodes)} entries for {made.n} ranks")
    return made


for _record in (
    *inside.RECORDS,
    *rooted.RECORDS,
    *between.RECORDS,
    *several.RECORDS,
):
    add(_record)
#: those that make MPI's operations; others are added by programs
OF_MPI = frozenset(COLLECTIVES)
