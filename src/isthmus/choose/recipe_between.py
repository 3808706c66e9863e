"""One rank's rounds in the other collectives between two groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..algorithms.parts.turns import MAX_STARTUP_BYTES
from ..schedules.hosts import Hosts
from ..schedules.layout import (
    Blocks,
    Even,
    GroupBlocks,
    Leaves,
    OwnBlock,
    Rows,
    Side,
    Uneven,
)
from ..schedules.program import renumber, trim
from ..schedules.registry import Algorithm, named
from .recipe import BUFFERS, UNPLACED, Placement, Recipe, granularity, recipe


@dataclass(frozen=True, slots=True)
class RootedGroup:
    """A root, vertex 0, and the q ranks of the other group, vertices 1 to q.

    `root` and `base` are the numbers of the root and of the other group's first rank;
    `v` is the own vertex.
    """

    q: int
    v: int
    root: int
    base: int
    placement: Placement = UNPLACED

    @property
    def numbers(self) -> list[int]:
        """The numbers of all vertices."""
        return [self.number(v) for v in range(self.q + 1)]

    @property
    def hosts(self) -> Hosts | None:
        """What messages of each vertex cost, if hosts are known to be unequal."""
        found = self.placement.unequal
        return found and found.only(self.numbers)

    def number(self, v: int) -> int:
        """The number of a vertex."""
        return self.root if v == 0 else self.base + v - 1


def _rooted(
    collective: str,
    name: str,
    rooted: RootedGroup,
    data: int | Blocks,
    units: dict[str, int],
    **options: float,
) -> Recipe:
    entry = named(collective, name)
    if entry.node_memory or "hosts" in entry.options:
        unit = units["recv"]
        startup = options.pop("startup", 1.0) * unit
        entry = rooted.placement.only(rooted.numbers).given(entry, unit, startup)
    entry = entry.default(**options)
    program = entry.program(rooted.q + 1, rooted.v, data)
    rounds = trim(renumber(program, rooted.number))
    units["node"] = units["recv"]
    return Recipe(entry, tuple(rounds), units, in_place=collective == "inter_bcast")


@lru_cache(maxsize=64)
def bcast(name: str, rooted: RootedGroup, nbytes: int, startup: float) -> Recipe:
    """Bytes from the root to all of the other group; `startup` is in bytes too."""
    unit = granularity(nbytes)
    startup = max(startup / unit, 1.0)
    units = {"recv": unit}
    return _rooted("inter_bcast", name, rooted, nbytes // unit, units, startup=startup)


@lru_cache(maxsize=64)
def reduce(
    name: str, rooted: RootedGroup, count: int, unit: int, startup: float
) -> Recipe:
    """Elements of `unit` bytes from all of the other group, combined at the root."""
    units = {"send": unit, "recv": unit, "tmp": unit}
    startup = max(startup / unit, 1.0)
    return _rooted("inter_reduce", name, rooted, count, units, startup=startup)


@lru_cache(maxsize=64)
def blocks(
    collective: str, name: str, rooted: RootedGroup, counts: tuple[int, ...]
) -> Recipe:
    """A gather or scatter of blocks of so many bytes; of one count where only the own
    block is known."""
    group: GroupBlocks = Uneven(counts)
    if len(counts) < rooted.q:
        (own,) = counts
        group = OwnBlock(rooted.q, rooted.v - 1, 0, own, own)
    units = dict.fromkeys(BUFFERS, 1)
    return _rooted(collective, name, rooted, Leaves(group), units)


@dataclass(frozen=True, slots=True)
class Pair:
    """The own group and the other one: their sizes, and the own number and place."""

    here: int
    there: int
    mine: int
    index: int
    placement: Placement = UNPLACED

    def sides(self, here: GroupBlocks, there: GroupBlocks) -> tuple[Side, Side]:
        """The two groups with the blocks of each, the own one first."""
        p = self.there if self.mine else self.here
        bases = (p, 0) if self.mine else (0, p)
        return Side(bases[0], here), Side(bases[1], there)

    def plain(self) -> tuple[Side, Side]:
        """The two groups where their blocks do not matter."""
        return self.sides(Even(self.here, 0), Even(self.there, 0))


@lru_cache(maxsize=64)
def allreduce(
    name: str, pair: Pair, count: int, unit: int, startup: float = 1.0
) -> Recipe:
    """Elements of `unit` bytes, those of the other group combined everywhere."""
    entry = pair.placement.given(named("inter_allreduce", name), unit, startup)
    return recipe(entry, unit, pair.index, *pair.plain(), count)


def _paced(
    collective: str, name: str, pair: Pair, startup: float, unit: int = 1
) -> Algorithm:
    """The algorithm, told a start-up in bytes for elements of `unit` bytes."""
    entry = pair.placement.given(named(collective, name), unit, startup)
    return entry.default(startup=min(startup, MAX_STARTUP_BYTES) / unit)


@lru_cache(maxsize=64)
def reduce_scatter(
    name: str,
    pair: Pair,
    here: tuple[int, ...],
    there: tuple[int, ...],
    unit: int,
    startup: float,
) -> Recipe:
    """Elements of `unit` bytes, those of the other group combined and cut by counts;
    `startup` is in bytes."""
    entry = named("inter_reduce_scatter", name)
    if not entry.node_memory and "nodes" in entry.options:
        pieces = max(startup / unit, 1.0)
        entry = entry.in_units(unit).default(startup=pieces, nodes=pair.placement.nodes)
    else:
        entry = _paced("inter_reduce_scatter", name, pair, startup, unit)
    return recipe(entry, unit, pair.index, *pair.sides(Uneven(here), Uneven(there)))


@lru_cache(maxsize=64)
def alltoall(
    collective: str,
    name: str,
    pair: Pair,
    send: tuple[int, ...],
    recv: tuple[int, ...],
    startup: float,
) -> Recipe:
    """Blocks of so many bytes to and from each rank of the other group."""
    entry = _paced(collective, name, pair, startup)
    blocks = _blocks(send, "send"), _blocks(recv, "recv")
    return recipe(entry, 1, pair.index, *pair.plain(), *blocks)


@lru_cache(maxsize=64)
def alltoall_known(name: str, pair: Pair, rows: bytes, startup: float) -> Recipe:
    """The same, where the blocks of all ranks of the own group are known: a row of each
    rank, of what it sends to and then receives from everyone."""
    entry = _paced("inter_alltoallv", name, pair, startup)
    table = np.frombuffer(rows, np.int64).reshape(pair.here, 2, pair.there)
    offsets = np.pad(np.cumsum(table, 2), ((0, 0), (0, 0), (1, 0)))
    blocks = Rows(offsets[:, 0], pair.index, "send"), Rows(offsets[:, 1], pair.index)
    return recipe(entry, 1, pair.index, *pair.plain(), *blocks)


def _blocks(counts: tuple[int, ...], buf: str) -> Blocks:
    if min(counts) == max(counts):
        return Even(len(counts), counts[0], buf)
    return Uneven(counts, buf)


@lru_cache(maxsize=64)
def barrier(name: str, pair: Pair) -> Recipe:
    """Nobody goes on before all have come."""
    entry = named("inter_barrier", name).given(nodes=pair.placement.nodes)
    return recipe(entry, 1, pair.index, *pair.plain())
