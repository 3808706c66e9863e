"""The messages of a rank between two regular layouts.

A rank computes the peers axis by axis, in time that grows with the number of peers and
not with the number of ranks.

Each replica is responsible for a share, so that no element crosses twice: a replica of
a source sends its share, a replica of a target receives its share, and an allgather
among the target's replicas follows.
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
    """The elements from or to a peer, in runs of the flat local array."""

    peer: int
    start: np.ndarray
    size: np.ndarray

    @property
    def total(self) -> int:
        """The number of elements in the message."""
        return int(self.size.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Runs of elements, by the places in the arrays of source and target."""

    size: np.ndarray
    source: np.ndarray
    target: np.ndarray

    def within(self, start: np.ndarray, low: int, high: int) -> Pairs:
        """The parts of the runs in a range of an array, with the runs at `start`."""
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
    """The runs of global indices that a rank is to receive, and the local places.

    With replicas, only the share of the rank, since the replicas gather the rest.
    """
    runs, places = layout.flat_runs(rank)
    if not layout.is_regular or layout.replicas == 1 or rank >= layout.ranks:
        return runs, places
    own_share = share(layout, runs.total, layout.place(rank)[1])
    pairs = Pairs(runs.size, runs.start, places).to_share(*own_share)
    return Runs(pairs.source, pairs.size), pairs.target


def _replicas(
    layout: Layout, elements: int, start: np.ndarray, size: np.ndarray
) -> range:
    """The replicas whose shares may overlap runs of the local array."""
    if not len(start):
        return range(0)
    shares = Shares(layout.replicas, elements)
    low, high = int(start.min()), int((start + size).max()) - 1
    return range(int(shares.find(low)), int(shares.find(high)) + 1)


@dataclass(frozen=True, slots=True, eq=False)
class _AxisOverlap:
    """The common indices of a rank's runs and of a part of the remote layout."""

    part: int
    runs: Runs
    #: the positions of the common runs in the rank's part, and in the remote part
    local: np.ndarray
    remote: np.ndarray
    #: the number of indices of the remote part
    extent: int


def _overlapping_parts(
    region: Region, remote: Layout
) -> Iterator[tuple[_AxisOverlap, ...]]:
    """The overlap on each axis, for each part of the remote layout in common."""
    axes = []
    for runs, split in zip(region, remote.splits, strict=True):
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
    """The sizes of common runs, and the places in the local and the remote array."""
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

    In a single group (`one_group`), no rank is sent an element that the rank has. With
    `combine` all replicas send all elements, because all sources of an element count.
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
    """Whether a rank has the parts of all axes."""
    return rank < layout.ranks and layout.place(rank)[0] == parts


def incoming(
    source: Layout,
    target: Layout,
    t: int,
    one_group: bool = False,
    combine: bool = False,
) -> list[Message]:
    """The messages for rank t of the target, by the rules of `outgoing`."""
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
    """The replicas of rank t, the place of rank t among the replicas, and the shares.

    Replicas are numbered in a group that begins at `base`. None without replicas.
    """
    if not target.is_regular or t >= target.ranks or target.replicas == 1:
        return None
    parts, replica = target.place(t)
    ranks = [base + target.rank(parts, j) for j in range(target.replicas)]
    return ranks, replica, Shares(target.replicas, prod(target.local_shape(t)))
