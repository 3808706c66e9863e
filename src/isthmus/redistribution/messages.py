"""The messages of a rank between two regular layouts.

Each rank computes its partners axis by axis, in time that grows with their number. Of
replicas, each is responsible for a share: a replica of a source sends its share, a
replica of a target receives its share, and an allgather among the target's replicas
follows. So every element crosses once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from ..schedules.layout import Shares
from .layouts import Layout, Region
from .runs import Runs, common, flatten, joined


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """Elements from or to a peer, in runs of the flat local array."""

    peer: int
    start: np.ndarray
    size: np.ndarray

    @property
    def total(self) -> int:
        """The number of elements."""
        return int(self.size.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Runs of elements by their places in the source's array and in the target's."""

    size: np.ndarray
    source: np.ndarray
    target: np.ndarray

    def within(self, start: np.ndarray, low: int, high: int) -> Pairs:
        """The parts of the runs in a range of one of the arrays, where the runs start
        at `start`."""
        first = np.maximum(start, low)
        size = np.minimum(start + self.size, high) - first
        shift, keep = first - start, size > 0
        return Pairs(
            size[keep], (self.source + shift)[keep], (self.target + shift)[keep]
        )

    def from_share(self, low: int, high: int) -> Pairs:
        """The parts of the runs in a range of the source's array."""
        return self.within(self.source, low, high)

    def to_share(self, low: int, high: int) -> Pairs:
        """The parts of the runs in a range of the target's array."""
        return self.within(self.target, low, high)

    def __len__(self) -> int:
        return len(self.size)


def share(layout: Layout, size: int, replica: int) -> tuple[int, int]:
    """The range of the flat local array for which a replica is responsible."""
    shares = Shares(layout.replicas, size)
    return shares.offset(replica), shares.offset(replica + 1)


def wanted_runs(layout: Layout, rank: int) -> tuple[Runs, np.ndarray]:
    """The runs of global indices that a rank is to receive, and their places in its
    local array; of what has replicas, the share of the rank."""
    runs, places = layout.flat_runs(rank)
    if not layout.is_regular or layout.replicas == 1 or rank >= layout.ranks:
        return runs, places
    own_share = share(layout, runs.total, layout.place(rank)[1])
    pairs = Pairs(runs.size, runs.start, places).to_share(*own_share)
    return Runs(pairs.source, pairs.size), pairs.target


def _replicas(
    layout: Layout, elements: int, start: np.ndarray, size: np.ndarray
) -> range:
    """The replicas whose shares may overlap some runs of the local array."""
    if not len(start):
        return range(0)
    shares = Shares(layout.replicas, elements)
    low, high = int(start.min()), int((start + size).max()) - 1
    return range(int(shares.find(low)), int(shares.find(high)) + 1)


@dataclass(frozen=True, slots=True, eq=False)
class _AxisOverlap:
    """The common indices of a rank's runs and of a part of the other layout."""

    part: int
    runs: Runs
    #: the positions of the common runs in the rank's part, and in the other one
    local: np.ndarray
    remote: np.ndarray
    #: the number of indices of the other part
    extent: int


def _overlapping_parts(
    region: Region, other: Layout
) -> Iterator[tuple[_AxisOverlap, ...]]:
    """For each part of the other layout with a common element, its overlap on each
    axis."""
    axes = []
    for runs, split in zip(region, other.splits, strict=True):
        overlaps = []
        for i in split.meeting(runs):
            part = split.runs(i)
            shared = common(runs, part)
            if len(shared):
                places = runs.position(shared.start), part.position(shared.start)
                overlaps.append(_AxisOverlap(i, shared, *places, part.total))
        axes.append(overlaps)
    return product(*axes)


def _flat_overlap(
    region: Region, overlap: tuple[_AxisOverlap, ...]
) -> list[np.ndarray]:
    """The sizes of common runs, and their places in the local and in the other
    array."""
    size, starts = flatten(
        [axis.runs.size for axis in overlap],
        [[axis.local for axis in overlap], [axis.remote for axis in overlap]],
        [[axis.total for axis in region], [axis.extent for axis in overlap]],
    )
    return joined(size, starts)


def outgoing(
    source: Layout,
    target: Layout,
    s: int,
    one_group: bool = False,
    combine: bool = False,
) -> list[Message]:
    """The messages of rank s of the source.

    In one group (`one_group`), a rank that has an element itself gets it from no other
    rank. With `combine` all sources of an element count, so all replicas send all.
    """
    if s >= source.ranks:
        return []
    parts, replica = source.place(s)
    region = source.region(s)
    own_share = share(source, prod(x.total for x in region), replica)
    messages = []
    for overlap in _overlapping_parts(region, target):
        whole = Pairs(*_flat_overlap(region, overlap))
        own = whole if combine else whole.from_share(*own_share)
        wanted = tuple(x.part for x in overlap)
        size = prod(x.extent for x in overlap)
        replicas = set(_replicas(target, size, own.target, own.size))
        if one_group and s < target.ranks and target.place(s)[0] == wanted:
            replicas.add(target.place(s)[1])
        for j in sorted(replicas):
            t = target.rank(wanted, j)
            has_part = one_group and not combine and _has(source, t, parts)
            if has_part and t != s:
                continue
            pairs = (whole if has_part else own).to_share(*share(target, size, j))
            if len(pairs):
                messages.append(Message(t, pairs.source, pairs.size))
    return messages


def _has(layout: Layout, rank: int, parts: tuple[int, ...]) -> bool:
    """Whether a rank has the part of each axis that `parts` names."""
    return rank < layout.ranks and layout.place(rank)[0] == parts


def incoming(
    source: Layout,
    target: Layout,
    t: int,
    one_group: bool = False,
    combine: bool = False,
) -> list[Message]:
    """The messages for rank t of the target, with the same rules as `outgoing`."""
    if t >= target.ranks:
        return []
    _, replica = target.place(t)
    region = target.region(t)
    own_share = share(target, prod(x.total for x in region), replica)
    messages = []
    for overlap in _overlapping_parts(region, source):
        size, local, remote = _flat_overlap(region, overlap)
        wanted = Pairs(size, remote, local).to_share(*own_share)
        parts = tuple(x.part for x in overlap)
        elements = prod(x.extent for x in overlap)
        if combine:
            replicas: range | list[int] = range(source.replicas)
        elif one_group and _has(source, t, parts):
            replicas = [source.place(t)[1]]
        else:
            replicas = _replicas(source, elements, wanted.source, wanted.size)
        for i in replicas:
            s = source.rank(parts, i)
            sends_all = combine or (one_group and s == t)
            pairs = wanted
            if not sends_all:
                pairs = wanted.from_share(*share(source, elements, i))
            if len(pairs):
                messages.append(Message(s, pairs.target, pairs.size))
    return messages


def spread_to(
    target: Layout, t: int, base: int
) -> tuple[list[int], int, Shares] | None:
    """The replicas that share the part of rank t, by their numbers in a group that
    begins at `base`; the place of rank t among them; and the shares that they gather
    from each other. None where the part has no replicas."""
    if not target.is_regular or t >= target.ranks or target.replicas == 1:
        return None
    parts, replica = target.place(t)
    ranks = [base + target.rank(parts, j) for j in range(target.replicas)]
    return ranks, replica, Shares(target.replicas, prod(target.local_shape(t)))
