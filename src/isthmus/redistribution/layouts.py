"""How a global array lies on the ranks of a group."""

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

#: what a rank holds of each axis; of the array it holds their product
Region = tuple[Runs, ...]


@dataclass(frozen=True)
class Shard:
    """Along this axis of the mesh, an axis of the array is cut into chunks."""

    axis: int


@dataclass(frozen=True)
class Replicate:
    """Along this axis of the mesh, all have the same."""


def _shape(shape: Any) -> tuple[int, ...]:
    found = (int(shape),) if np.ndim(shape) == 0 else tuple(int(n) for n in shape)
    if not found or min(found) < 0:
        raise ValueError(f"shape {shape}: must be one extent or more, none below 0")
    if prod(n or 1 for n in found) >= 1 << 62:
        raise ValueError(f"shape {shape}: more elements than can be counted")
    return found


def _extents(name: str, values: Any, n: int | None = None) -> tuple[int, ...]:
    found = tuple(int(x) for x in values)
    if n is not None and len(found) != n:
        raise ValueError(f"{name} {values}: must have {n} entries, one for each axis")
    if not found or min(found) < 1:
        raise ValueError(f"{name} {values}: must be one number or more, none below 1")
    return found


@dataclass(frozen=True, eq=False, repr=False)
class Layout:
    """How a global array lies on a group: made by `blocks`, `cyclic`, `sharded`, which
    are the same on every rank, or by `slices`, `indices`, of what this rank has."""

    shape: tuple[int, ...]
    #: the ranks as a grid, row by row; of what only this rank knows, nothing
    mesh: tuple[int, ...] = ()
    #: how each axis is cut, and by which axes of the mesh
    splits: tuple[Split, ...] = ()
    cut_by: tuple[tuple[int, ...], ...] = ()
    #: what this rank has: products of runs, one after the other, or flat indices
    regions: tuple[Region, ...] = ()
    points: np.ndarray | None = field(default=None, repr=False)

    # -- making one

    @classmethod
    def blocks(cls, shape: Any, grid: Sequence[int]) -> Layout:
        """Near-equal blocks, the longer ones first, on a grid of ranks, row by row."""
        shape = _shape(shape)
        grid = _extents("grid", grid, len(shape))
        splits = tuple(Split(n, (k,)) for n, k in zip(shape, grid, strict=True))
        return cls(shape, grid, splits, tuple((a,) for a in range(len(shape))))

    @classmethod
    def cyclic(cls, shape: Any, grid: Sequence[int], block: Sequence[int]) -> Layout:
        """Blocks dealt out to a grid of ranks one after the other, as in ScaLAPACK."""
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
        """As PyTorch's DTensor: what each axis of a mesh of ranks does. Several shards
        of one axis cut it one after the other."""
        shape, mesh, placed = _shape(shape), _extents("mesh", mesh), tuple(placements)
        if len(placed) != len(mesh):
            raise ValueError(
                f"{len(placed)} placements for a mesh of {len(mesh)} axes: must be one "
                "for each"
            )
        by: list[list[int]] = [[] for _ in shape]
        for k, x in enumerate(placed):
            if isinstance(x, Shard):
                if not -len(shape) <= x.axis < len(shape):
                    raise ValueError(f"{x}: the array has {len(shape)} axes")
                by[x.axis].append(k)
            elif not isinstance(x, Replicate):
                raise TypeError(f"{x!r} is no placement: Shard(axis) or Replicate()")
        splits = tuple(
            Split(n, tuple(mesh[k] for k in ks) or (1,), chunks=True)
            for n, ks in zip(shape, by, strict=True)
        )
        return cls(shape, mesh, splits, tuple(map(tuple, by)))

    @classmethod
    def slices(cls, shape: Any, slices: Any) -> Layout:
        """What this rank has: an index of slices as `np.s_` gives it, or a list of
        them; the local array of a list is flat, one after the other."""
        shape = _shape(shape)
        every = slices if isinstance(slices, list) else [slices]
        regions = tuple(_region(shape, x) for x in every)
        for k, x in enumerate(regions):
            for y in regions[:k]:
                if all(len(common(a, b)) for a, b in zip(x, y, strict=True)):
                    raise ValueError("slices of one rank overlap: they must not")
        return cls(shape, regions=regions)

    @classmethod
    def indices(cls, shape: Any, indices: Any) -> Layout:
        """What this rank has: global indices, of an array with several axes the flat
        ones, in the order of the local array."""
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

    # -- what a rank has

    @property
    def is_regular(self) -> bool:
        """Whether every rank can tell what every other has."""
        return bool(self.mesh)

    @property
    def ranks(self) -> int:
        """The number of ranks that have something; others have nothing."""
        return prod(self.mesh)

    @property
    def key(self) -> tuple[Any, ...]:
        """What ranks of a group must agree on."""
        return self.shape, self.mesh, self.splits, self.cut_by

    @cached_property
    def replicated(self) -> tuple[int, ...]:
        """The axes of the mesh along which all have the same."""
        used = {k for ks in self.cut_by for k in ks}
        return tuple(k for k in range(len(self.mesh)) if k not in used)

    @property
    def replicas(self) -> int:
        """How many ranks have the same."""
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
        """How it was made."""
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
        every = [placed.get(k, Replicate()) for k in range(len(self.mesh))]
        return f"sharded({self.shape}, mesh={self.mesh}, placements={every})"

    def place(self, rank: int) -> tuple[tuple[int, ...], int]:
        """The part of each axis that a rank has, and which of the replicas it is."""
        digits = unravel(rank, self.mesh)
        parts = tuple(
            ravel([digits[k] for k in ks], [self.mesh[k] for k in ks])
            for ks in self.cut_by
        )
        ks = self.replicated
        return parts, ravel([digits[k] for k in ks], [self.mesh[k] for k in ks])

    def rank(self, parts: Sequence[int], replica: int = 0) -> int:
        """The rank that has a part of each axis, as one of the replicas."""
        digits = [0] * len(self.mesh)
        places = [*zip(self.cut_by, parts, strict=True), (self.replicated, replica)]
        for ks, i in places:
            for k, digit in zip(
                ks, unravel(i, [self.mesh[k] for k in ks]), strict=True
            ):
                digits[k] = digit
        return ravel(digits, self.mesh)

    def region(self, rank: int) -> Region:
        """What a rank has of each axis, in a layout that is the same on every rank."""
        if not 0 <= rank < self.ranks:
            return tuple(interval(0, 0) for _ in self.shape)
        parts, _ = self.place(rank)
        return tuple(x.runs(i) for x, i in zip(self.splits, parts, strict=True))

    def _own(self, rank: int | None) -> tuple[Region, ...]:
        """The regions of a rank; of this one where only that is known."""
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
        """The shape of the local array of a rank, which may have nothing."""
        regions = self._own(rank)
        if self.points is not None:
            return (len(self.points),)
        if len(regions) == 1:
            return tuple(x.total for x in regions[0])
        return (sum(prod(x.total for x in region) for region in regions),)

    def local(self, rank: int | None = None) -> tuple[Any, ...]:
        """An index: what of the global array a rank has, as it lies in its local array;
        slices where these do, else arrays as `np.ix_` gives them."""
        regions = self._own(rank)
        if self.points is not None:
            return tuple(np.unravel_index(self.points, self.shape))
        if len(regions) == 1:
            return _index(regions[0])
        flat = [self._flat(x) for x in regions]
        return tuple(np.unravel_index(np.concatenate([*flat, _NONE]), self.shape))

    def _flat(self, region: Region) -> np.ndarray:
        size, (start,) = flatten_region(region, self.shape)
        return Runs(start, size).indices

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The indices that this rank has, ascending, and where each is first."""
        assert self.points is not None
        values, places = sort_with_places(self.points)
        if (values[1:] > values[:-1]).all():
            return values, places
        new = np.diff(values, prepend=-1) > 0
        return values[new], places[new]

    @property
    def repeats(self) -> tuple[np.ndarray, np.ndarray]:
        """Of elements that this rank has more than once, where in its flat local array
        the first is, and where another."""
        if self.points is None:
            return _NONE, _NONE
        values, first = self._distinct
        if len(values) == len(self.points):
            return _NONE, _NONE
        which = np.searchsorted(values, self.points)
        again = np.flatnonzero(first[which] != np.arange(len(which)))
        return first[which][again], again

    def owner(self, index: Any) -> int:
        """The rank that has an element, the first of them if there are replicas."""
        where = (index,) if np.ndim(index) == 0 else tuple(index)
        if len(where) != len(self.shape) or not all(
            0 <= i < n for i, n in zip(where, self.shape, strict=True)
        ):
            raise IndexError(f"{index} is outside an array of shape {self.shape}")
        if not self.is_regular:
            raise ValueError("a layout by slices or indices does not know the others")
        return self.rank(
            [x.find(int(i)) for x, i in zip(self.splits, where, strict=True)]
        )

    def flat_runs(self, rank: int) -> tuple[Runs, np.ndarray]:
        """What a rank has, or this rank where only that is known, as ascending runs of
        flat global indices, and where each run lies in the flat local array.

        Of an index that it has twice, the first counts.
        """
        if self.points is not None:
            values, first = self._distinct
            k = runs_in(values, first)
            size = np.diff(np.append(k, len(values)))
            return Runs(values[k], size), first[k]
        regions = self._own(rank if self.is_regular else None)
        sizes, starts, places = [], [], []
        done = 0
        for region in regions:
            size, (start,) = flatten_region(region, self.shape)
            sizes.append(size)
            starts.append(start)
            places.append(done + np.cumsum(size) - size)
            done += int(size.sum())
        size, start, place = (
            np.concatenate([*x, _NONE]) for x in (sizes, starts, places)
        )
        order = np.argsort(start, kind="stable")
        return Runs(start[order], size[order]), place[order]


_NONE = np.empty(0, np.int64)


def flatten_region(
    region: Region, shape: Sequence[int]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The sizes and starts of a region's runs in the flattened global array."""
    return flatten([x.size for x in region], [[x.start for x in region]], [shape])


def _index(region: Region) -> tuple[Any, ...]:
    """Slices of each axis, or where some of them are more than one run, arrays."""
    if all(len(x) <= 1 for x in region):
        ends = ((int(x.start[0]), int(x.stop[0])) if len(x) else (0, 0) for x in region)
        return tuple(slice(*pair) for pair in ends)
    return np.ix_(*(x.indices for x in region))


def _region(shape: tuple[int, ...], index: Any) -> Region:
    """The runs of an index of slices, or of whole numbers, which keep their axis."""
    given = index if isinstance(index, tuple) else (index,)
    if Ellipsis in [x for x in given if not isinstance(x, slice)]:
        k = given.index(Ellipsis)
        rest = len(shape) - len(given) + 1
        given = (*given[:k], *[slice(None)] * rest, *given[k + 1 :])
    if len(given) > len(shape):
        raise IndexError(f"{index} has more entries than the array has axes")
    given = (*given, *[slice(None)] * (len(shape) - len(given)))
    return tuple(_axis(x, n) for x, n in zip(given, shape, strict=True))


def _axis(x: Any, n: int) -> Runs:
    if isinstance(x, slice):
        low, high, step = x.indices(n)
        if step < 1:
            raise ValueError(f"{x}: a step must be 1 or more")
        return sorted_runs(np.arange(low, high, step))
    i = int(x)
    if not -n <= i < n:
        raise IndexError(f"index {i} is outside an axis of {n}")
    return interval(i % n, i % n + 1)
