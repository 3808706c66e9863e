"""Random layouts of all kinds, and what a right redistribution gives."""

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
    """A global shape of 1 to 4 axes, seldom with an empty one."""
    d = rng.randint(1, 4)
    least = 0 if rng.random() < 0.1 else 1
    return tuple(rng.randint(least, EXTENTS[d]) for _ in range(d))


def _mesh(rng: Random, ranks: int, axes: int) -> list[int]:
    while True:
        mesh = [rng.randint(1, 4) for _ in range(axes)]
        if prod(mesh) <= ranks:
            return mesh


def regular(rng: Random, shape: tuple[int, ...], ranks: int, kind: str) -> Layout:
    """A layout that is the same on every rank; some ranks may have nothing."""
    d = len(shape)
    mesh = _mesh(rng, ranks, rng.randint(1, 3) if kind == "sharded" else d)
    if kind == "blocks":
        return Layout.blocks(shape, mesh)
    if kind == "cyclic":
        return Layout.cyclic(shape, mesh, [rng.randint(1, 3) for _ in mesh])
    choices = [Replicate(), *map(Shard, range(d))]
    return Layout.sharded(shape, mesh, [rng.choice(choices) for _ in mesh])


def _held(rng: Random, shape: tuple[int, ...], ranks: int, kind: str) -> list[Layout]:
    """All elements, some of them on several ranks; each knows its own."""
    if kind == "indices":
        every: list[list[int]] = [[] for _ in range(ranks)]
        for i in range(prod(shape)):
            for r in rng.sample(range(ranks), rng.randint(1, min(2, ranks))):
                every[r].append(i)
        for x in every:
            rng.shuffle(x)
        return [Layout.indices(shape, x) for x in every]
    edges = [cut(shape[0], ranks, i) for i in range(ranks + 1)]
    halo = rng.randint(0, 1)
    found = []
    for low, high in pairwise(edges):
        low = max(low - halo, 0)
        middle = rng.randint(low, max(low, high))
        whole, two = np.s_[low:high], [np.s_[middle:high], np.s_[low:middle]]
        found.append(Layout.slices(shape, two if rng.random() < 0.3 else whole))
    return found


def _wanted(rng: Random, shape: tuple[int, ...], ranks: int, kind: str) -> list[Layout]:
    """Some elements, some of them on several ranks, or twice on one."""
    found = []
    for _ in range(ranks):
        if kind == "indices":
            n = rng.randint(0, 20) if prod(shape) else 0
            some = [rng.randrange(prod(shape)) for _ in range(n)]
            found.append(Layout.indices(shape, some))
        else:
            ends = [sorted((rng.randint(0, n), rng.randint(0, n))) for n in shape]
            step = rng.randint(1, 2)
            found.append(Layout.slices(shape, tuple(slice(*x, step) for x in ends)))
    return found


def layouts(
    rng: Random, shape: tuple[int, ...], ranks: int, target: bool
) -> list[Layout]:
    """A layout of any kind, as each rank gives it."""
    kind = rng.choice(KINDS)
    if kind in ("slices", "indices"):
        return (_wanted if target else _held)(rng, shape, ranks, kind)
    return [regular(rng, shape, ranks, kind)] * ranks


def part(layout: Layout, rank: int, array: np.ndarray) -> np.ndarray:
    """What a rank has of the global array, in its local array."""
    return array[layout.local(rank if layout.is_regular else None)]


def sources(layouts: list[Layout]) -> np.ndarray:
    """How many ranks have each element."""
    found = np.zeros(layouts[0].shape, int)
    for r, layout in enumerate(layouts):
        np.add.at(found, layout.local(r if layout.is_regular else None), 1)
    return found


def field(rng: Random, data: np.ndarray) -> np.ndarray:
    """The data in an array of some order and some strides."""
    kind = rng.randrange(5)
    if kind == 0:
        return np.asfortranarray(data)
    if kind == 1:
        return data.copy()
    inside = tuple(slice(1, -1) for _ in data.shape)
    found = np.zeros([n + 2 for n in data.shape], data.dtype)[inside]
    if kind == 2:
        found = found[::-1]
    if kind == 3:
        room = np.zeros((*data.shape[:-1], 2 * data.shape[-1]), data.dtype)
        found = room[..., ::2]
    found[...] = data
    return found


def moved(move: Any, form: str, *args: Any) -> None:
    """Move in one of the three forms, twice."""
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
    """A redistribution from a group of p to one of q, or inside one of p."""

    shape: tuple[int, ...]
    sources: list[Layout]
    targets: list[Layout]


def case(rng: Random, p: int, q: int) -> Case:
    """Any layouts of any global array."""
    found = shape(rng)
    held = layouts(rng, found, p, target=False)
    return Case(found, held, layouts(rng, found, q, target=True))
