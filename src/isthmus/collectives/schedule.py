"""Schedules of all ranks: a collective, an algorithm and sizes, made one object."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..schedules.hosts import Hosts
from ..schedules.registry import collectives, resolve
from ..schedules.schedule import Schedule
from ..spelling import unknown
from . import between, inside, rooted, several
from .collective import Collective, Sizes

COLLECTIVES: dict[str, Collective] = {
    **inside.COLLECTIVES,
    **rooted.COLLECTIVES,
    **between.COLLECTIVES,
    **several.COLLECTIVES,
}
#: the least that a size may be
LEAST = {"p": 1, "q": 1, "m": 0, "k": 0, "ka": 0, "kb": 0}
#: sizes that say how many ranks a group has
_RANKS = ("p", "q", "a", "b", "ab", "ba", "counts", "table")


def groups(collective: str, sizes: Sizes) -> tuple[int, ...]:
    """The ranks of each group; of a root and the leaves of another, one and those."""
    if collective.startswith("multi_"):
        return tuple(sizes.get("sizes") or map(len, sizes["groups"]))
    found = (sizes[name] for name in _RANKS if name in sizes)
    ranks = tuple(n if isinstance(n, int) else len(n) for n in found)
    return (1, *ranks) if collective in rooted.COLLECTIVES else ranks


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
        raise ValueError(unknown("collective", collective, collectives()))
    if record.example.keys() != sizes.keys():
        takes, got = ", ".join(record.example), ", ".join(sizes) or "none"
        raise TypeError(f"{collective} takes {takes}; got {got}")
    for name, least in LEAST.items():
        if sizes.get(name, least) < least:
            raise ValueError(f"{name} = {sizes[name]}: must be at least {least}")
    entry, stage = resolve(collective, algorithm)
    made = record.make(entry.given(nodes=tuple(nodes), hosts=hosts), stage, **sizes)
    n = made.groups[-1].stop
    if not 0 <= sizes.get("root", 0) < n:
        raise ValueError(f"root = {sizes['root']}: must be a rank, 0 to {n - 1}")
    if len(made.groups) == 1 and not entry.needs(n):
        raise ValueError(f"{entry.name!r} does not work for a group of {n}")
    if len(nodes) not in (0, n):
        raise ValueError(f"nodes has {len(nodes)} entries for {n} ranks")
    where = tuple(nodes) or (0,) * n
    return Schedule(collective, algorithm, *made, where, entry.node_memory, sizes)
