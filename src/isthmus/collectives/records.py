"""All collectives by name, and the schedule of a collective for given sizes.

MPI has a single name, `Allgather`, for communicators of one group and of two. In
isthmus they are different problems with different algorithms, so each has a record:
"allgatherv" inside a group, where equal blocks are a special case, "inter_allgather"
between two, "multi_allgatherv" among several. Users give MPI's name and the groups; the
layers below take the name of the record.
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
#: the least values of sizes
_MIN_SIZES = {"p": 1, "q": 1, "m": 0, "k": 0, "ka": 0, "kb": 0}
#: the record of each operation, by the number of groups and the name in lower case
_RECORDS_BY_OPERATION: dict[tuple[int, str], Collective] = {}


def add(record: Collective) -> Collective:
    """Register a collective.

    Of two records of an operation the first counts, so that a program's own collective
    cannot replace one of MPI's.
    """
    COLLECTIVES[record.name] = record
    for operation in record.operations:
        _RECORDS_BY_OPERATION.setdefault((record.groups, operation.lower()), record)
    return record


def collective(name: str) -> Collective:
    """The record of a name; an unknown name raises an error with the known names."""
    record = COLLECTIVES.get(name)
    if record is None:
        raise ValueError(unknown("collective", name, sorted(COLLECTIVES)))
    return record


def operations(groups: int, *, on_mpi: bool = False) -> list[str]:
    """MPI's names of the operations of a number of groups; with `on_mpi` only of those
    that communicators run."""
    return [
        operation
        for record in COLLECTIVES.values()
        if record.groups == min(groups, SEVERAL)
        if record.is_on_mpi or not on_mpi
        for operation in record.operations
    ]


def operations_of_blocks(groups: int) -> list[str]:
    """MPI's names of the operations with a root and a block for each rank."""
    return [
        operation
        for record in COLLECTIVES.values()
        if record.groups == groups and record.is_rooted and record.gives != VECTOR
        for operation in record.operations
    ]


def trial_operations() -> dict[str, str]:
    """The collectives with a trial on communicators, each with the operation that the
    trial calls."""
    names = (r.tried_as for r in COLLECTIVES.values() if r.tried_as)
    return {name: COLLECTIVES[name].operations[0] for name in names}


def groups_of(operation: str) -> list[int]:
    """The numbers of groups for which an operation exists, by the name in MPI, in any
    case."""
    return sorted(n for n, name in _RECORDS_BY_OPERATION if name == operation.lower())


def record_of(operation: str, groups: int) -> Collective:
    """The record of an operation on a number of groups, by the name in MPI, in any
    case."""
    groups = min(groups, SEVERAL)
    record = _RECORDS_BY_OPERATION.get((groups, operation.lower()))
    if record is not None:
        return record
    names = sorted({name for _, name in _RECORDS_BY_OPERATION})
    if operation.lower() not in names:
        raise ValueError(unknown("collective", operation, names))
    known = sorted(name for n, name in _RECORDS_BY_OPERATION if n == groups)
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
    """The schedule of all ranks for a collective of given sizes.

    Wrong sizes or nodes are refused with a reason; `isthmus.schedule` documents the
    sizes of each collective.
    """
    record = COLLECTIVES.get(collective)
    if record is None:
        raise ValueError(unknown("collective", collective, sorted(COLLECTIVES)))
    if record.example.keys() != sizes.keys():
        expected, names = ", ".join(record.example), ", ".join(sizes) or "none"
        raise TypeError(f"{collective} takes {expected}; got {names}")
    for name, least in _MIN_SIZES.items():
        if sizes.get(name, least) < least:
            raise ValueError(f"{name} = {sizes[name]}: must be at least {least}")
    placement = Placement(tuple(nodes), hosts)
    all_ranks = record.schedule(algorithm, sizes, placement)
    entry, _ = resolve(collective, algorithm)
    if record.groups == INSIDE and not entry.needs(all_ranks.n):
        raise ValueError(f"{entry.name!r} does not work for a group of {all_ranks.n}")
    if len(nodes) not in (0, all_ranks.n):
        raise ValueError(f"nodes has {len(nodes)} entries for {all_ranks.n} ranks")
    return all_ranks


for _record in (
    *inside.INSIDE_RECORDS,
    *rooted.ROOTED_RECORDS,
    *between.BETWEEN_RECORDS,
    *several.SEVERAL_RECORDS,
):
    add(_record)
#: the collectives of MPI's operations; programs may add further ones
OF_MPI = frozenset(COLLECTIVES)
