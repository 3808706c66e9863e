"""What a rank sends to whom, and receives from whom, between two regular layouts.

Each rank finds its partners axis by axis, in time that grows with their number. Where
replicas have the same, each is responsible for a share of it: of a source, each sends
its share; of a target, each receives its share, and an allgather among them follows.
So every element crosses once.
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
    """Elements that go from or to a peer, in runs of the flat local array."""

    peer: int
    start: np.ndarray
    size: np.ndarray

    @property
    def total(self) -> int:
        """The number of elements."""
        return int(self.size.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Runs of elements, where they lie in the source's array and in the target's."""

    size: np.ndarray
    source: np.ndarray
    target: np.ndarray

    def within(self, start: np.ndarray, low: int, high: int) -> Pairs:
        """Those in a range of one of the arrays, where the runs start at `start`."""
        first = np.maximum(start, low)
        size = np.minimum(start + self.size, high) - first
        shift, keep = first - start, size > 0
        return Pairs(
            size[keep], (self.source + shift)[keep], (self.target + shift)[keep]
        )

    def from_share(self, low: int, high: int) -> Pairs:
        """Those in a range of the source's array."""
        return self.within(self.source, low, high)

    def to_share(self, low: int, high: int) -> Pairs:
        """Those in a range of the target's array."""
        return self.within(self.target, low, high)

    def __len__(self) -> int:
        return len(self.size)


def share(layout: Layout, size: int, replica: int) -> tuple[int, int]:
    """The range of its flat local array for which a replica is responsible."""
    every = Shares(layout.replicas, size)
    return every.offset(replica), every.offset(replica + 1)


def wanted_runs(layout: Layout, rank: int) -> tuple[Runs, np.ndarray]:
    """What a rank is to receive, in runs of global indices, and where they lie: of what
    has replicas, its share."""
    runs, places = layout.flat_runs(rank)
    if not layout.is_regular or layout.replicas == 1 or rank >= layout.ranks:
        return runs, places
    mine = share(layout, runs.total, layout.place(rank)[1])
    some = Pairs(runs.size, runs.start, places).to_share(*mine)
    return Runs(some.source, some.size), some.target


def _replicas(layout: Layout, size: int, start: np.ndarray, run: np.ndarray) -> range:
    """The replicas whose shares may have some of those runs."""
    if not len(start):
        return range(0)
    every = Shares(layout.replicas, size)
    low, high = int(start.min()), int((start + run).max()) - 1
    return range(int(every.find(low)), int(every.find(high)) + 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Met:
    """A part of one axis of the other side, and what it has in common with ours."""

    part: int
    runs: Runs
    here: np.ndarray
    there: np.ndarray
    extent: int


def _meeting(region: Region, other: Layout) -> Iterator[tuple[_Met, ...]]:
    """For each part of the other side with a common element, that, axis by axis."""
    axes = []
    for runs, split in zip(region, other.splits, strict=True):
        found = []
        for i in split.meeting(runs):
            theirs = split.runs(i)
            both = common(runs, theirs)
            if len(both):
                places = runs.position(both.start), theirs.position(both.start)
                found.append(_Met(i, both, *places, theirs.total))
        axes.append(found)
    return product(*axes)


def _flat(region: Region, met: tuple[_Met, ...]) -> list[np.ndarray]:
    """The sizes of common runs, where they lie here, and where there."""
    size, starts = flatten(
        [x.runs.size for x in met],
        [[x.here for x in met], [x.there for x in met]],
        [[x.total for x in region], [x.extent for x in met]],
    )
    return joined(size, starts)


def outgoing(
    source: Layout, target: Layout, s: int, same: bool = False, every: bool = False
) -> list[Message]:
    """What rank s of the source sends. In one group (`same`), who has an element itself
    gets it from nobody else. If every source counts, all replicas send all."""
    if s >= source.ranks:
        return []
    parts, replica = source.place(s)
    region = source.region(s)
    mine = share(source, prod(x.total for x in region), replica)
    found = []
    for met in _meeting(region, target):
        whole = Pairs(*_flat(region, met))
        own = whole if every else whole.from_share(*mine)
        wanted = tuple(x.part for x in met)
        size = prod(x.extent for x in met)
        some = set(_replicas(target, size, own.target, own.size))
        if same and s < target.ranks and target.place(s)[0] == wanted:
            some.add(target.place(s)[1])
        for j in sorted(some):
            t = target.rank(wanted, j)
            has = same and not every and _has(source, t, parts)
            if has and t != s:
                continue
            x = (whole if has else own).to_share(*share(target, size, j))
            if len(x):
                found.append(Message(t, x.source, x.size))
    return found


def _has(layout: Layout, rank: int, parts: tuple[int, ...]) -> bool:
    return rank < layout.ranks and layout.place(rank)[0] == parts


def incoming(
    source: Layout, target: Layout, t: int, same: bool = False, every: bool = False
) -> list[Message]:
    """What rank t of the target receives, as `outgoing` says."""
    if t >= target.ranks:
        return []
    _, replica = target.place(t)
    region = target.region(t)
    mine = share(target, prod(x.total for x in region), replica)
    found = []
    for met in _meeting(region, source):
        size, here, there = _flat(region, met)
        wanted = Pairs(size, there, here).to_share(*mine)
        parts = tuple(x.part for x in met)
        held = prod(x.extent for x in met)
        if every:
            some: range | list[int] = range(source.replicas)
        elif same and _has(source, t, parts):
            some = [source.place(t)[1]]
        else:
            some = _replicas(source, held, wanted.source, wanted.size)
        for i in some:
            s = source.rank(parts, i)
            alone = every or (same and s == t)
            x = wanted if alone else wanted.from_share(*share(source, held, i))
            if len(x):
                found.append(Message(s, x.target, x.size))
    return found


def spread_to(
    target: Layout, t: int, base: int
) -> tuple[list[int], int, Shares] | None:
    """The replicas of what rank t gets, by their numbers in a group that begins at
    `base`, its place among them, and the shares that they gather from each other; none
    where it has no replicas."""
    if not target.is_regular or t >= target.ranks or target.replicas == 1:
        return None
    parts, replica = target.place(t)
    ranks = [base + target.rank(parts, j) for j in range(target.replicas)]
    return ranks, replica, Shares(target.replicas, prod(target.local_shape(t)))
