"""Schedules for users: verified, timed, drawn and explored by their own methods.

A schedule is plain data, which every part of the package reads, down to the runtime.
The verifier, the cost models, pictures and pages stand above the data and import it.
Methods that lead to all of these therefore belong to a file above them; methods of the
data class would close a circle of imports.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from .collectives import records
from .cost.timeline import Timeline
from .redistribution.schedule import Layouts, schedule as redistribution
from .schedules.hosts import Hosts
from .schedules.schedule import Model, Schedule
from .verify.verify import verify


class UserSchedule(Schedule):
    """A schedule with the methods that lead from the data to the rest of isthmus."""

    @classmethod
    def of(cls, schedule: Schedule) -> UserSchedule:
        """A user's schedule with the data of a plain schedule."""
        return cls(**{x.name: getattr(schedule, x.name) for x in fields(schedule)})

    def verify(self) -> None:
        """Run all ranks on marked data; raise the first error with rank and round."""
        verify(self.all_ranks(), self.contract, self.nodes)

    def explore(
        self,
        path: str | Path,
        *others: Schedule,
        machines: Mapping[str, Model] | None = None,
        recorded: Mapping[str, Timeline] | None = None,
    ) -> Path:
        """Write a page to step through the schedule in a browser, beside other
        schedules; with the times on machines and of recorded runs, by their names."""
        from .explore.page import write

        return write(path, (self, *others), machines, recorded)

    def _repr_svg_(self) -> str | None:
        """A picture for notebooks, where matplotlib is installed."""
        from .draw.svg import svg

        return svg(self)


def schedule(
    collective: str,
    algorithm: str,
    *,
    nodes: Sequence[Hashable] = (),
    hosts: Hosts | None = None,
    **sizes: Any,
) -> UserSchedule:
    """The schedule of all ranks for a collective.

    `p=, q=, ka=, kb=` (ranks, and elements each contributes) for "inter_allgather";
    `a=[…], b=[…]` (the counts of each group) for "inter_allgatherv"; `counts=[…]` for
    "allgatherv", in place inside a group; `p=, m=, root=` (ranks, elements, and the
    root's rank) for "bcast" and "reduce"; `counts=[…]` (each rank's block of the sum)
    for "reduce_scatter"; `p=, m=` for "allreduce"; `counts=[…], root=` for "gatherv"
    and "scatterv"; `p=, k=` (elements from each rank to each) for "alltoall";
    `table=[[…]]` (a row for each sender) for "alltoallv"; `p=` for "barrier".

    Between a root and the q ranks of the other group: `q=, m=` for "inter_bcast" and
    "inter_reduce", `q=, k=` (elements of each of the q) for "inter_gather" and
    "inter_scatter", `counts=[…]` for "inter_gatherv" and "inter_scatterv".

    Between groups also `p=, q=, m=` for "inter_allreduce"; `a=[…], b=[…]` or `p=, q=,
    ka=, kb=` (each rank's part of the remote group's sum) for "inter_reduce_scatter"
    and "inter_reduce_scatter_block"; `p=, q=, ka=, kb=` (elements from each rank to
    each remote rank) for "inter_alltoall"; `ab=[[…]], ba=[[…]]` (a row for each sender)
    for "inter_alltoallv"; `p=, q=` for "inter_barrier".

    Among several groups, where each leaves out its own: `groups=[[…], …]` (the counts
    of each) for "multi_allgatherv"; `sizes=[…], table=[[…]]` (the ranks of each group,
    and a row for each sender) for "multi_alltoallv".

    `nodes=[…]` has the node of each rank, in the order of ranks; without `nodes`, all
    are on one node. `hosts` has the costs of each rank's messages, for algorithms with
    that option. An intragroup stage may follow the algorithm's name: "segmented+ring".
    """
    plain = records.schedule(collective, algorithm, nodes=nodes, hosts=hosts, **sizes)
    return UserSchedule.of(plain)


def redistribution_schedule(
    source: Layouts,
    target: Layouts,
    *,
    inside: int | None = None,
    combine: bool = False,
    least: int = 1,
    nodes: Sequence[Hashable] = (),
) -> UserSchedule:
    """The schedule of all ranks for a redistribution between two groups, or inside one
    group of `inside` ranks.

    A layout by slices or indices is a list with the layout of each rank. With
    `combine`, all sources of an element are combined. Messages of up to `least`
    elements go whole; `Redistribution` sends those of up to 64 KiB whole. `nodes` has
    the node of every rank, the ranks of the source first, where several ranks may share
    a node.
    """
    plain = redistribution(source, target, inside, combine, least, nodes)
    return UserSchedule.of(plain)
