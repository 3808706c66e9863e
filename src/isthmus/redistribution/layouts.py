"""The layout of a global array on the ranks of a group.

A regular layout gives the elements of all ranks by arithmetic. A layout of slices or
indices has the elements of a single rank, since lists of all ranks may not fit memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from .axis import Split, ravel, unravel
from .runs import (
    Runs,
    common,
    flatten,
    interval,
    runs_in,
    sort_with_places,
    sorted_runs,
)

#: the runs of a rank on each axis, whose product is the rank's part of the array
Region = tuple[Runs, ...]


@dataclass(frozen=True)
class Shard:
    """A placement: the array's axis `axis` is cut along the axis of the mesh."""

    axis: int


@dataclass(frozen=True)
class Replicate:
    """A placement: all ranks along the axis of the mesh have equal elements."""


def _shape(shape: Any) -> tuple[int, ...]:
    """The extents of an array, from one integer or several, checked."""
    extents = (int(shape),) if np.ndim(shape) == 0 else tuple(int(n) for n in shape)
    if not extents or min(extents) < 0:
        raise ValueError(f"shape {shape}: must be one extent or more, none below 0")
    if prod(n or 1 for n in extents) >= 1 << 62:
        raise ValueError(f"shape {shape}: more elements than can be counted")
    return extents


def _extents(name: str, values: Any, n: int | None = None) -> tuple[int, ...]:
    """Positive integers, n of them where n is known, checked."""
    extents = tuple(int(x) for x in values)
    if n is not None and len(extents) != n:
        raise ValueError(f"{name} {values}: must have {n} entries, one for each axis")
    if not extents or min(extents) < 1:
        raise ValueError(f"{name} {values}: must be one number or more, none below 1")
    return extents


@dataclass(frozen=True, eq=False, repr=False)
class Layout:
    """The layout of a global array on a group.

    `blocks`, `cyclic` and `sharded` create regular layouts, which are equal on all
    ranks; `slices` and `indices` create a layout with the elements of this rank alone.
    """

    shape: tuple[int, ...]
    #: the ranks as a grid, row by row; empty for slices and indices
    mesh: tuple[int, ...] = ()
    #: the parts of each axis, and the axes of the mesh that cut it
    splits: tuple[Split, ...] = ()
    cut_by: tuple[tuple[int, ...], ...] = ()
    #: the elements of this rank: products of runs in sequence, or flat indices
    regions: tuple[Region, ...] = ()
    points: np.ndarray | None = field(default=None, repr=False)

    # -- making a layout

    @classmethod
    def blocks(cls, shape: Any, grid: Sequence[int]) -> Layout:
        """Near-equal blocks, longer blocks first, on a grid of ranks, row by row."""
        shape = _shape(shape)
        grid = _extents("grid", grid, len(shape))
        splits = tuple(Split(n, (k,)) for n, k in zip(shape, grid, strict=True))
        return cls(shape, grid, splits, tuple((a,) for a in range(len(shape))))

    @classmethod
    def cyclic(cls, shape: Any, grid: Sequence[int], block: Sequence[int]) -> Layout:
        """Blocks dealt out in turn to a grid of ranks, as in ScaLAPACK."""
        shape = _shape(shape)
        grid = _extents("grid", grid, len(shape))
        block = _extents("block", block, len(shape))
        axes = zip(shape, grid, block, strict=True)
        splits = tuple(Split(n, (k,), b) for n, k, b in axes)
        return cls(shape, grid, splits, tuple((a,) for a in range(len(shape))))

    @classmethod
    def sharded(
        cls, shape: Any, mesh: Sequence[int], placements: Iterable[Shard | Replicate]
    ) -> Layout:
        """A mesh of ranks with a placement for each axis, as PyTorch's DTensor.

        Several shards of an axis of the array cut the axis in sequence.
        """
        shape, mesh, placed = _shape(shape), _extents("mesh", mesh), tuple(placements)
        if len(placed) != len(mesh):
            raise ValueError(
                f"{len(placed)} placements for a mesh of {len(mesh)} axes: must be one "
                "for each"
            )
        cut_by: list[list[int]] = [[] for _ in shape]
        for k, x in enumerate(placed):
            if isinstance(x, Shard):
                if not -len(shape) <= x.axis < len(shape):
                    raise ValueError(f"{x}: the array has {len(shape)} axes")
                cut_by[x.axis].append(k)
            elif not isinstance(x, Replicate):
                raise TypeError(f"{x!r} is no placement: Shard(axis) or Replicate()")
        splits = tuple(
            Split(n, tuple(mesh[k] for k in ks) or (1,), chunks=True)
            for n, ks in zip(shape, cut_by, strict=True)
        )
        return cls(shape, mesh, splits, tuple(map(tuple, cut_by)))

    @classmethod
    def slices(cls, shape: Any, slices: Any) -> Layout:
        """The elements of this rank as slices: an index of `np.s_`, or a list of them.

        The local array of a list is flat, since regions of different shapes form no
        array of several axes.
        """
        shape = _shape(shape)
        indices = slices if isinstance(slices, list) else [slices]
        regions = tuple(_region(shape, x) for x in indices)
        for k, x in enumerate(regions):
            for y in regions[:k]:
                if all(len(common(a, b)) for a, b in zip(x, y, strict=True)):
                    raise ValueError("slices of one rank overlap: they must not")
        return cls(shape, regions=regions)

    @classmethod
    def indices(cls, shape: Any, indices: Any) -> Layout:
        """The elements of this rank as global indices, in the order of the local array.

        Indices are flat if the array has several axes.
        """
        shape = _shape(shape)
        points = np.array(indices)
        if points.size == 0:
            points = points.astype(np.int64)
        if points.ndim != 1 or points.dtype.kind not in "iu":
            raise ValueError("indices must be integers, in an array of one axis")
        points = points.astype(np.int64)
        wrong = np.flatnonzero((points < 0) | (points >= prod(shape)))
        if len(wrong):
            raise ValueError(
                f"index {points[wrong[0]]} is outside an array of {prod(shape)}"
            )
        points.setflags(write=False)
        return cls(shape, points=points)

    # -- the elements of a rank

    @property
    def is_regular(self) -> bool:
        """Whether each rank can compute the elements of all ranks."""
        return bool(self.mesh)

    @property
    def ranks(self) -> int:
        """The number of ranks with elements; further ranks have none."""
        return prod(self.mesh)

    @property
    def key(self) -> tuple[Any, ...]:
        """The values on which the ranks of a group must agree."""
        return self.shape, self.mesh, self.splits, self.cut_by

    @cached_property
    def replicated(self) -> tuple[int, ...]:
        """The axes of the mesh along which all ranks have equal elements."""
        used = {k for ks in self.cut_by for k in ks}
        return tuple(k for k in range(len(self.mesh)) if k not in used)

    @property
    def replicas(self) -> int:
        """The number of ranks with equal elements."""
        return prod(self.mesh[k] for k in self.replicated)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout) or not (self.is_regular and other.is_regular):
            return self is other
        return self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Layout.{self._words()}"

    def _words(self) -> str:
        """The call that creates the layout, in words."""
        if self.points is not None:
            return f"indices({self.shape}, <{len(self.points)} of them>)"
        if not self.is_regular:
            return f"slices({self.shape}, <{len(self.regions)} of them>)"
        if self.splits[0].block:
            block = tuple(x.block for x in self.splits)
            return f"cyclic({self.shape}, grid={self.mesh}, block={block})"
        if not self.splits[0].chunks:
            return f"blocks({self.shape}, grid={self.mesh})"
        placed: dict[int, object] = {
            k: Shard(axis) for axis, ks in enumerate(self.cut_by) for k in ks
        }
        placements = [placed.get(k, Replicate()) for k in range(len(self.mesh))]
        return f"sharded({self.shape}, mesh={self.mesh}, placements={placements})"

    def place(self, rank: int) -> tuple[tuple[int, ...], int]:
        """The rank's part of each axis, and the rank's number among the replicas."""
        digits = unravel(rank, self.mesh)
        parts = tuple(
            ravel([digits[k] for k in ks], [self.mesh[k] for k in ks])
            for ks in self.cut_by
        )
        ks = self.replicated
        return parts, ravel([digits[k] for k in ks], [self.mesh[k] for k in ks])

    def rank(self, parts: Sequence[int], replica: int = 0) -> int:
        """The rank with a part of each axis and a number among the replicas."""
        digits = [0] * len(self.mesh)
        places = [*zip(self.cut_by, parts, strict=True), (self.replicated, replica)]
        for ks, i in places:
            for k, digit in zip(
                ks, unravel(i, [self.mesh[k] for k in ks]), strict=True
            ):
                digits[k] = digit
        return ravel(digits, self.mesh)

    def region(self, rank: int) -> Region:
        """The runs of a rank on each axis of a regular layout."""
        if not 0 <= rank < self.ranks:
            return tuple(interval(0, 0) for _ in self.shape)
        parts, _ = self.place(rank)
        return tuple(x.runs(i) for x, i in zip(self.splits, parts, strict=True))

    def _own(self, rank: int | None) -> tuple[Region, ...]:
        """The regions of a rank, or of this rank in a layout of slices."""
        if self.is_regular:
            if rank is None or rank < 0:
                raise ValueError("which rank? every rank has another part")
            return (self.region(rank),)
        if rank is not None:
            raise ValueError(
                "a layout by slices or indices knows what its own rank has: ask it "
                "without a rank"
            )
        return self.regions

    def local_shape(self, rank: int | None = None) -> tuple[int, ...]:
        """The shape of a rank's local array, perhaps without elements."""
        regions = self._own(rank)
        if self.points is not None:
            return (len(self.points),)
        if len(regions) == 1:
            return tuple(x.total for x in regions[0])
        return (sum(prod(x.total for x in region) for region in regions),)

    def local(self, rank: int | None = None) -> tuple[Any, ...]:
        """The index of a rank's elements in the global array, in local order.

        The index has slices where possible, since numpy copies nothing then, and
        otherwise arrays of `np.ix_`.
        """
        regions = self._own(rank)
        if self.points is not None:
            return tuple(np.unravel_index(self.points, self.shape))
        if len(regions) == 1:
            return _index(regions[0])
        flat = [self._flat(x) for x in regions]
        return tuple(np.unravel_index(np.concatenate([*flat, _NO_INDICES]), self.shape))

    def _flat(self, region: Region) -> np.ndarray:
        """The flat global indices of a region."""
        size, (start,) = flatten_region(region, self.shape)
        return Runs(start, size).indices

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct indices of this rank, ascending, and the first place of each."""
        assert self.points is not None
        values, places = sort_with_places(self.points)
        if (values[1:] > values[:-1]).all():
            return values, places
        new = np.diff(values, prepend=-1) > 0
        return values[new], places[new]

    @property
    def repeats(self) -> tuple[np.ndarray, np.ndarray]:
        """The first place and the repeated place of elements listed more than once.

        Places are in the flat local array. A repeated element is received once and
        copied, to avoid a second transfer.
        """
        if self.points is None:
            return _NO_INDICES, _NO_INDICES
        values, first = self._distinct
        if len(values) == len(self.points):
            return _NO_INDICES, _NO_INDICES
        first_places = first[np.searchsorted(values, self.points)]
        repeats = np.flatnonzero(first_places != np.arange(len(first_places)))
        return first_places[repeats], repeats

    def owner(self, index: Any) -> int:
        """The rank that has an element, the first of several replicas."""
        position = (index,) if np.ndim(index) == 0 else tuple(index)
        if len(position) != len(self.shape) or not all(
            0 <= i < n for i, n in zip(position, self.shape, strict=True)
        ):
            raise IndexError(f"{index} is outside an array of shape {self.shape}")
        if not self.is_regular:
            raise ValueError("a layout by slices or indices does not know the others")
        return self.rank(
            [x.find(int(i)) for x, i in zip(self.splits, position, strict=True)]
        )

    def flat_runs(self, rank: int) -> tuple[Runs, np.ndarray]:
        """The elements of a rank as ascending runs of flat global indices, with places.

        A place is the offset of a run in the flat local array. For repeated indices the
        first place counts, because `repeats` copies from there.
        """
        if self.points is not None:
            values, first = self._distinct
            k = runs_in(values, first)
            size = np.diff(np.append(k, len(values)))
            return Runs(values[k], size), first[k]
        regions = self._own(rank if self.is_regular else None)
        sizes, starts, places = [], [], []
        offset = 0
        for region in regions:
            size, (start,) = flatten_region(region, self.shape)
            sizes.append(size)
            starts.append(start)
            places.append(offset + np.cumsum(size) - size)
            offset += int(size.sum())
        size, start, place = (
            np.concatenate([*x, _NO_INDICES]) for x in (sizes, starts, places)
        )
        order = np.argsort(start, kind="stable")
        return Runs(start[order], size[order]), place[order]


_NO_INDICES = np.empty(0, np.int64)


def flatten_region(
    region: Region, shape: Sequence[int]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The sizes and starts of a region's runs in the flattened global array."""
    return flatten([x.size for x in region], [[x.start for x in region]], [shape])


def _index(region: Region) -> tuple[Any, ...]:
    """The index of a region: slices, or arrays if an axis has several runs."""
    if all(len(x) <= 1 for x in region):
        ends = ((int(x.start[0]), int(x.stop[0])) if len(x) else (0, 0) for x in region)
        return tuple(slice(*pair) for pair in ends)
    return np.ix_(*(x.indices for x in region))


def _region(shape: tuple[int, ...], index: Any) -> Region:
    """The runs of an index; an integer keeps the axis, unlike in numpy."""
    entries = index if isinstance(index, tuple) else (index,)
    if Ellipsis in [x for x in entries if not isinstance(x, slice)]:
        k = entries.index(Ellipsis)
        rest = len(shape) - len(entries) + 1
        entries = (*entries[:k], *[slice(None)] * rest, *entries[k + 1 :])
    if len(entries) > len(shape):
        raise IndexError(f"{index} has more entries than the array has axes")
    entries = (*entries, *[slice(None)] * (len(shape) - len(entries)))
    return tuple(_axis(x, n) for x, n in zip(entries, shape, strict=True))


def _axis(entry: Any, n: int) -> Runs:
    """The runs of an entry of an index, on an axis of n."""
    if isinstance(entry, slice):
        low, high, step = entry.indices(n)
        if step < 1:
            raise ValueError(f"{entry}: a step must be 1 or more")
        return sorted_runs(np.arange(low, high, step))
    i = int(entry)
    if not -n <= i < n:
        raise IndexError(f"index {i} is outside an axis of {n}")
    return interval(i % n, i % n + 1)
