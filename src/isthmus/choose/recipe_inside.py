"""One rank's rounds in sums and exchanges inside one group."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..algorithms.alltoallv import Passing
from ..schedules.layout import Blocks, Even, Rows, Uneven
from ..schedules.registry import Algorithm, named
from .recipe import UNPLACED, Placement, Recipe, recipe

Counts = tuple[int, ...]


def _entry(
    collective: str, name: str, placement: Placement, unit: int, startup: float
) -> Algorithm:
    """The algorithm, told a start-up in bytes for elements of `unit` bytes."""
    entry = placement.given(named(collective, name), unit, startup)
    return entry.default(startup=max(startup / unit, 1.0))


@lru_cache(maxsize=64)
def allreduce(
    name: str,
    p: int,
    number: int,
    count: int,
    unit: int,
    startup: float = 1.0,
    placement: Placement = UNPLACED,
) -> Recipe:
    """Elements of `unit` bytes, combined everywhere."""
    entry = _entry("allreduce", name, placement, unit, startup)
    return recipe(entry, unit, p, number, count)


@lru_cache(maxsize=64)
def reduce_scatter(
    name: str,
    counts: Counts,
    number: int,
    unit: int,
    startup: float = 1.0,
    placement: Placement = UNPLACED,
) -> Recipe:
    """Elements of `unit` bytes, combined and cut by counts."""
    entry = _entry("reduce_scatter", name, placement, unit, startup)
    return recipe(entry, unit, len(counts), number, Uneven(counts))


@lru_cache(maxsize=64)
def alltoall(
    name: str,
    p: int,
    number: int,
    each: int,
    startup: float = 1.0,
    placement: Placement = UNPLACED,
) -> Recipe:
    """Blocks of so many bytes to and from each."""
    entry = _entry("alltoall", name, placement, 1, startup)
    return recipe(entry, 1, p, number, Even(p, each, "send"), Even(p, each))


@lru_cache(maxsize=64)
def alltoallv(
    name: str, number: int, send: Counts, recv: Counts, held: bytes = b""
) -> Recipe:
    """Blocks of their own sizes to and from each; with the sizes of those that pass
    through this rank, if it must know them (see `Passing`)."""
    blocks: Blocks = Uneven(send, "send")
    if held:
        table = np.frombuffer(held, np.int64).reshape(-1, len(send))
        blocks = Passing(send, "send", table)
    entry = named("alltoallv", name)
    return recipe(entry, 1, len(send), number, blocks, Uneven(recv))


@lru_cache(maxsize=64)
def alltoallv_known(
    name: str, number: int, rows: bytes, startup: float, placement: Placement
) -> Recipe:
    """The same, where what every rank sends to each is known."""
    entry = _entry("alltoallv", name, placement, 1, startup)
    p = len(placement.nodes)
    table = np.frombuffer(rows, np.int64).reshape(p, p)
    sent, received = (
        np.pad(np.cumsum(x, 1), ((0, 0), (1, 0))) for x in (table, table.T)
    )
    blocks = Rows(sent, number, "send"), Rows(received, number)
    return recipe(entry, 1, p, number, *blocks)
