"""From the bytes each rank contributes to one rank's rounds: values in, values out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..algorithms.parts.stages import stage_by_size
from ..schedules.hosts import Hosts
from ..schedules.ir import Round
from ..schedules.layout import Even, GroupBlocks, OwnBlock, Side, Uneven
from ..schedules.program import trim
from ..schedules.registry import Algorithm, resolve
from . import choose
from .choose import BUILT_IN
from .estimate import Machine

BUFFERS = ("send", "recv", "tmp", "node")
#: blocks are cut at multiples of this many bytes at the most
GRANULARITY = 64


@dataclass(frozen=True, slots=True)
class Equal:
    """A group of n ranks that contribute the same number of bytes each."""

    n: int
    each: int

    @property
    def blocks(self) -> GroupBlocks:
        """The blocks, in bytes."""
        return Even(self.n, self.each)

    @property
    def largest(self) -> int:
        """The bytes of the largest block."""
        return self.each

    @property
    def bits(self) -> int:
        """All counts, or-ed together."""
        return self.each


@dataclass(frozen=True, slots=True)
class Listed:
    """A group whose counts are all known; `packed` is them as an int64 array."""

    packed: bytes

    @property
    def counts(self) -> np.ndarray:
        """The bytes that each rank contributes."""
        return np.frombuffer(self.packed, np.int64)

    @property
    def n(self) -> int:
        """The number of ranks."""
        return len(self.counts)

    @property
    def blocks(self) -> GroupBlocks:
        """The blocks, in bytes."""
        return Uneven(self.counts)

    @property
    def largest(self) -> int:
        """The bytes of the largest block."""
        return int(self.counts.max())

    @property
    def bits(self) -> int:
        """All counts, or-ed together."""
        return int(np.bitwise_or.reduce(self.counts))


@dataclass(frozen=True, slots=True)
class Summed:
    """The own group as a rank knows it that was told its place, the total, the largest
    block and the bits of all counts."""

    n: int
    index: int
    start: int
    own: int
    whole: int
    largest: int
    bits: int

    @property
    def blocks(self) -> GroupBlocks:
        """The blocks, in bytes."""
        return OwnBlock(self.n, self.index, self.start, self.own, self.whole)


Group = Equal | Listed | Summed


def listed(counts: object) -> Listed:
    """A group of the given counts."""
    return Listed(np.asarray(counts, np.int64).tobytes())


@dataclass(frozen=True, slots=True)
class Sizes:
    """What both groups contribute."""

    a: Group
    b: Group

    @property
    def irregular(self) -> bool:
        """Whether ranks of a group may contribute different amounts."""
        return not isinstance(self.a, Equal)

    @property
    def collective(self) -> str:
        """The name of the collective in the registry."""
        return "inter_allgatherv" if self.irregular else "inter_allgather"


def granularity(bits: int) -> int:
    """The unit in bytes in which blocks are cut, so that no basic element is split.

    The size of a basic type is a power of two; it divides the size of all blocks of
    that type, and so the lowest bit of all those sizes.
    """
    return min(bits & -bits or GRANULARITY, GRANULARITY)


def _in_units(group: Group, unit: int) -> GroupBlocks:
    if isinstance(group, Equal):
        return Even(group.n, group.each // unit)
    if isinstance(group, Listed):
        return Uneven(group.counts // unit)
    start, own, whole = (x // unit for x in (group.start, group.own, group.whole))
    return OwnBlock(group.n, group.index, start, own, whole)


@lru_cache(maxsize=256)
def algorithm_for(
    name: str, sizes: Sizes, machine: Machine = BUILT_IN, own_counts: bool = False
) -> str:
    """The algorithm asked for; for "auto", the one that fits the sizes.

    With `own_counts`, also one for which a rank must know all counts of its own group.
    Ranks that know the totals only agree on it, and must ask before they go on.
    """
    if name != "auto":
        return name
    a, b = sizes.a, sizes.b
    totals = a.blocks.total, b.blocks.total
    largest = max(a.largest, b.largest)
    v = sizes.irregular
    return choose.inter_allgatherv(a.n, b.n, *totals, largest, v, machine, own_counts)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One rank's rounds, and the bytes of an element of each buffer."""

    entry: Algorithm
    rounds: tuple[Round, ...]
    units: dict[str, int]
    #: a rank's own contribution is in "recv" from the beginning
    in_place: bool = False


def recipe(entry: Algorithm, unit: int, *values: Any) -> Recipe:
    """The rounds of an algorithm that is given these values; elements of all buffers
    have `unit` bytes."""
    rounds = tuple(trim(entry.program(*values)))
    return Recipe(entry, rounds, dict.fromkeys(BUFFERS, unit))


@dataclass(frozen=True, slots=True)
class Placement:
    """The node of every rank, the bytes of a node's memory that a chunk takes, and what
    messages of each rank cost, per byte, if that was measured."""

    nodes: tuple[int, ...] = ()
    size: int = 0
    hosts: Hosts | None = None

    def given(self, entry: Algorithm, unit: int, startup: float) -> Algorithm:
        """The algorithm, told all that; `startup` is in bytes."""
        if self.hosts is not None and "hosts" in entry.options:
            return entry.default(hosts=self.hosts.in_units(unit))
        if not entry.node_memory:
            return entry
        size, startup = max(self.size // unit, 1), max(startup / unit, 1.0)
        return entry.default(nodes=self.nodes, size=size, startup=startup)

    @property
    def unequal(self) -> Hosts | None:
        """What messages of each rank cost, if hosts are known to be unequal."""
        return self.hosts if self.hosts and self.hosts.unequal else None

    def only(self, ranks: Iterable[int]) -> Placement:
        """The same of some ranks, in their order."""
        few = tuple(ranks)
        hosts = self.hosts and self.hosts.only(few)
        return Placement(tuple(self.nodes[r] for r in few), self.size, hosts)


#: of algorithms that do not ask where ranks are
UNPLACED = Placement()


@lru_cache(maxsize=32)
def between(
    name: str,
    sizes: Sizes,
    number: int,
    machine: Machine = BUILT_IN,
    placement: Placement = UNPLACED,
) -> Recipe:
    """What rank `number` of two groups does."""
    entry, stage = resolve(sizes.collective, algorithm_for(name, sizes, machine))
    a, b = granularity(sizes.a.bits), granularity(sizes.b.bits)
    if entry.joint or entry.node_memory:
        a = b = min(a, b)
    p = sizes.a.n
    sides = Side(0, _in_units(sizes.a, a)), Side(p, _in_units(sizes.b, b))
    here, there = (a, b) if number < p else (b, a)
    stage = stage or stage_by_size(there, machine.ring)
    entry = placement.given(entry, a, machine.startup)
    if entry.joint:
        startup = max(machine.startup / a, 1.0)
        entry = entry.in_units(a).default(startup=startup, nodes=placement.nodes)
    rounds = trim(entry.between(sides, number, stage))
    units = {"send": here, "recv": there, "tmp": here, "node": here}
    return Recipe(entry, tuple(rounds), units)


@lru_cache(maxsize=32)
def inside(
    name: str,
    group: Group,
    number: int,
    startup: float,
    placement: Placement = UNPLACED,
) -> Recipe:
    """What rank `number` of one group does; `startup` is in bytes."""
    unit = granularity(group.bits)
    entry = resolve("allgatherv", name)[0]
    entry = placement.given(entry, unit, startup).in_units(unit)
    entry = entry.default(startup=max(startup / unit, 1.0), nodes=placement.nodes)
    rounds = trim(entry.program(group.n, number, _in_units(group, unit)))
    units = dict.fromkeys(("recv", "tmp", "node"), unit)
    return Recipe(entry, tuple(rounds), units, in_place=True)


@lru_cache(maxsize=32)
def bcast(
    name: str,
    nbytes: int,
    p: int,
    number: int,
    root: int,
    startup: float,
    placement: Placement = UNPLACED,
) -> Recipe:
    """What rank `number` of p does to broadcast from the root; sizes are in bytes."""
    unit = granularity(nbytes)
    entry = placement.given(resolve("bcast", name)[0], unit, startup)
    entry = entry.default(startup=max(startup / unit, 1.0))
    rounds = trim(entry.program(p, number, nbytes // unit, root))
    return Recipe(entry, tuple(rounds), {"recv": unit, "node": unit}, in_place=True)
