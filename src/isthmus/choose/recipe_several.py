"""One rank's rounds in collectives among several groups."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

import numpy as np

from ..algorithms.parts.stages import stage_by_size
from ..schedules.layout import Even, Side, Uneven
from ..schedules.registry import named, resolve
from . import several
from .estimate import Machine
from .recipe import Recipe, granularity, recipe

Counts = tuple[int, ...]


@lru_cache(maxsize=64)
def algorithm_for(name: str, groups: tuple[Counts, ...], machine: Machine) -> str:
    """The algorithm asked for; for "auto", the one that fits the sizes."""
    if name != "auto":
        return name
    counts = [np.array(k, np.int64) for k in groups]
    return several.allgatherv(counts, machine).name


@lru_cache(maxsize=32)
def allgatherv(
    name: str, groups: tuple[Counts, ...], i: int, x: int, machine: Machine
) -> Recipe:
    """Blocks of so many bytes from each rank to all other groups; of rank x of group
    i."""
    every = np.array([k for counts in groups for k in counts], np.int64)
    unit = granularity(int(np.bitwise_or.reduce(every)))
    entry, stage = resolve("multi_allgatherv", algorithm_for(name, groups, machine))
    stage = stage or stage_by_size(unit, machine.ring)
    bases = accumulate((len(k) for k in groups[:-1]), initial=0)
    blocks = (Uneven(np.array(k, np.int64) // unit) for k in groups)
    sides = tuple(Side(*side) for side in zip(bases, blocks, strict=True))
    entry = entry.in_units(unit).default(startup=max(machine.startup / unit, 1.0))
    return recipe(entry, unit, i, x, sides, stage)


@lru_cache(maxsize=64)
def alltoallv(
    name: str, sizes: Counts, i: int, x: int, send: Counts, recv: Counts
) -> Recipe:
    """Blocks of so many bytes to and from each rank of the other groups."""
    entry = named("multi_alltoallv", name)
    bases = accumulate(sizes[:-1], initial=0)
    sides = tuple(Side(base, Even(n, 0)) for base, n in zip(bases, sizes, strict=True))
    return recipe(entry, 1, i, x, sides, Uneven(send, "send"), Uneven(recv))
