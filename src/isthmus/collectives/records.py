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
    """The schedule of all ranks for a collective of these sizes, refused with a reason
    where sizes or nodes do not fit; `isthmus.schedule` says which sizes each takes."""
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
