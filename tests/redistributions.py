"""Random layouts of all kinds, and the right results of redistributions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod
from random import Random
from typing import Any

import numpy as np

from isthmus import Layout, Replicate, Shard
from isthmus.schedules.layout import cut

KINDS = ("blocks", "cyclic", "sharded", "slices", "indices")
#: the largest extent of an axis, by the number of axes
EXTENTS = {1: 40, 2: 12, 3: 7, 4: 5}


def shape(rng: Random) -> tuple[int, ...]:
    """A global shape of 1 to 4 axes, seldom with an empty axis."""
    d = rng.randint(1, 4)
    least = 0 if rng.random() < 0.1 else 1
    return tuple(rng.randint(least, EXTENTS[d]) for _ in range(d))


def _mesh(rng: Random, ranks: int, axes: int) -> list[int]:
    while True:
        mesh = [rng.randint(1, 4) for _ in range(axes)]
        if prod(mesh) <= ranks:
            return mesh


def regular(rng: Random, shape: tuple[int, ...], ranks: int, kind: str) -> Layout:
    """A layout that all ranks know; a rank may have no elements."""
    d = len(shape)
    mesh = _mesh(rng, ranks, rng.randint(1, 3) if kind == "sharded" else d)
    if kind == "blocks":
        return Layout.blocks(shape, mesh)
    if kind == "cyclic":
        return Layout.cyclic(shape, mesh, [rng.randint(1, 3) for _ in mesh])
    choices = [Replicate(), *map(Shard, range(d))]
    return Layout.sharded(shape, mesh, [rng.choice(choices) for _ in mesh])


def _held(rng: Random, shape: tuple[int, ...], ranks: int, kind: str) -> list[Layout]:
    """Layouts of all elements, a few on several ranks; a rank knows its own layout."""
    if kind == "indices":
        indices_of_rank: list[list[int]] = [[] for _ in range(ranks)]
        for i in range(prod(shape)):
            for r in rng.sample(range(ranks), rng.randint(1, min(2, ranks))):
                indices_of_rank[r].append(i)
        for x in indices_of_rank:
            rng.shuffle(x)
        return [Layout.indices(shape, x) for x in indices_of_rank]
    edges = [cut(shape[0], ranks, i) for i in range(ranks + 1)]
    halo = rng.randint(0, 1)
    layouts_of_ranks = []
    for low, high in pairwise(edges):
        low = max(low - halo, 0)
        middle = rng.randint(low, max(low, high))
        whole, two = np.s_[low:high], [np.s_[middle:high], np.s_[low:middle]]
        layouts_of_ranks.append(
            Layout.slices(shape, two if rng.random() < 0.3 else whole)
        )
    return layouts_of_ranks


def _wanted(rng: Random, shape: tuple[int, ...], ranks: int, kind: str) -> list[Layout]:
    """Layouts of random elements, perhaps on several ranks, or twice on a rank."""
    layouts_of_ranks = []
    for _ in range(ranks):
        if kind == "indices":
            n = rng.randint(0, 20) if prod(shape) else 0
            elements = [rng.randrange(prod(shape)) for _ in range(n)]
            layouts_of_ranks.append(Layout.indices(shape, elements))
        else:
            ends = [sorted((rng.randint(0, n), rng.randint(0, n))) for n in shape]
            step = rng.randint(1, 2)
            layouts_of_ranks.append(
                Layout.slices(shape, tuple(slice(*x, step) for x in ends))
            )
    return layouts_of_ranks


def layouts(
    rng: Random, shape: tuple[int, ...], ranks: int, target: bool
) -> list[Layout]:
    """The layouts of all ranks, of a random kind."""
    kind = rng.choice(KINDS)
    if kind in ("slices", "indices"):
        return (_wanted if target else _held)(rng, shape, ranks, kind)
    return [regular(rng, shape, ranks, kind)] * ranks


def part(layout: Layout, rank: int, array: np.ndarray) -> np.ndarray:
    """A rank's part of the global array, as a local array."""
    return array[layout.local(rank if layout.is_regular else None)]


def sources(layouts: list[Layout]) -> np.ndarray:
    """The number of ranks that have each element."""
    counts = np.zeros(layouts[0].shape, int)
    for r, layout in enumerate(layouts):
        np.add.at(counts, layout.local(r if layout.is_regular else None), 1)
    return counts


def field(rng: Random, data: np.ndarray) -> np.ndarray:
    """The data in an array with a random order of axes and random strides."""
    kind = rng.randrange(5)
    if kind == 0:
        return np.asfortranarray(data)
    if kind == 1:
        return data.copy()
    inside = tuple(slice(1, -1) for _ in data.shape)
    array = np.zeros([n + 2 for n in data.shape], data.dtype)[inside]
    if kind == 2:
        array = array[::-1]
    if kind == 3:
        room = np.zeros((*data.shape[:-1], 2 * data.shape[-1]), data.dtype)
        array = room[..., ::2]
    array[...] = data
    return array


def moved(move: Any, form: str, *args: Any) -> None:
    """Call a redistribution in a form, twice."""
    if form == "persistent":
        request = move.init(*args)
        for _ in range(2):
            request.Start()
            request.Wait()
        request.Free()
    for _ in range(2 * (form != "persistent")):
        move(*args) if form == "blocking" else move.start(*args).Wait()


@dataclass(frozen=True)
class Case:
    """A redistribution between groups of p and q ranks, or inside a group of p."""

    shape: tuple[int, ...]
    sources: list[Layout]
    targets: list[Layout]


def case(rng: Random, p: int, q: int) -> Case:
    """A redistribution of a random array between random layouts."""
    extents = shape(rng)
    held = layouts(rng, extents, p, target=False)
    return Case(extents, held, layouts(rng, extents, q, target=True))
