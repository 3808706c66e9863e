"""What messages cost: one description of a machine, for everything that puts a time.

A machine is nested units, from the inside out: node, rack, … A message belongs to the
lowest level at which both its ends are in one unit. It takes alpha + m beta of that
level; its sender's port and its receiver's are taken for gap + m beta of that, and
where nobody says, a gap is as long as a start-up. For m beta it takes the one port, in
its direction, of every unit that it leaves or enters whose processes share one, so
start-ups of several processes overlap. Messages inside a node are copies in its memory,
and take longer where all of a round together are more than it can do.

Where no units share anything that is the alpha-beta model: single port, full duplex,
every pair connected.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ..schedules.hosts import Hosts
from .simulate import simulate

if TYPE_CHECKING:
    from ..schedules.schedule import Schedule
    from .timeline import Timeline


@dataclass(frozen=True)
class Level:
    """A unit of `size` units of the level below; without a size, of all there are.

    Inside it a message takes alpha + m beta; what leaves it takes its port, if shared.
    The port has so many lanes, each for one message at a time; a process always takes
    the same one. From the beginning of a message inside it to that of the next of the
    same process, `gap` passes besides the time of the bytes: alpha, if nobody says.
    Where k units of the level below send at once inside it, none is faster than k times
    `together` a byte: one memory, or one switch, passes all of it.
    """

    size: int | None
    alpha: float
    beta: float
    shared: bool = True
    lanes: int = 1
    gap: float | None = None
    together: float = 0.0

    @property
    def between(self) -> float:
        """The gap between two messages of a process."""
        return self.alpha if self.gap is None else self.gap


@dataclass(frozen=True)
class Memory:
    """What the memory of a node takes: seconds per byte that one process copies alone,
    per byte of all its processes together, and for a meeting of them."""

    alone: float = 0.0
    together: float = 0.0
    meeting: float = 0.0


@dataclass(frozen=True)
class Machine:
    """Levels, from the inside out. Ranks in order fill the innermost units; or
    `placement` says which one each is in.

    `gamma` is the time per byte reduced, `unit` the bytes of an element. Copies take no
    time unless the `memory` of a node says so. `hosts` are start-up times and times per
    byte, one for each rank, of messages of the outermost level, where hosts differ: a
    message takes what the slower of its two ends takes, but the port of each end only
    what that end takes; so a fast host sends to several slow ones at once.
    """

    levels: tuple[Level, ...]
    gamma: float = 0.0
    unit: int = 1
    placement: tuple[int, ...] | None = None
    memory: Memory = Memory()
    hosts: Hosts | None = None
    name: str = field(default="", compare=False)
    #: where the numbers come from
    note: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        """Take any sequences; refuse levels that group nothing."""
        object.__setattr__(self, "levels", tuple(self.levels))
        if self.placement is not None:
            object.__setattr__(self, "placement", tuple(map(int, self.placement)))
        inner = [level.size for level in self.levels[:-1]]
        if not self.levels or None in inner:
            raise ValueError("every level but the last needs a size")
        if any(x.size is not None and x.size < 1 for x in self.levels):
            raise ValueError("a level groups one unit at least")
        if any(x.between < 0 for x in self.levels):
            raise ValueError("a gap between messages is not negative")

    @property
    def alpha(self) -> float:
        """The start-up of a message between ranks that are far from each other."""
        return self.levels[-1].alpha

    @property
    def beta(self) -> float:
        """The time of a byte between such ranks."""
        return self.levels[-1].beta

    @property
    def flat(self) -> bool:
        """Whether every rank has all its ports for itself."""
        return all(x.size == 1 and not x.shared for x in self.levels[:-1])

    def units(self, n: int) -> list[np.ndarray]:
        """For each level, the unit in which each of n ranks is."""
        first = self.levels[0].size or max(n, 1)
        at = np.arange(n) // first
        if self.placement is not None:
            at = np.asarray(self.placement[:n], np.int64)
            if len(at) < n or np.bincount(at, minlength=1).max() > first:
                raise ValueError(f"the placement has no room for {n} ranks")
        units = [at]
        for level in self.levels[1:]:
            at = at // level.size if level.size else np.zeros_like(at)
            units.append(at)
        if units[-1].any():
            raise ValueError(f"the machine has fewer places than {n} ranks")
        if self.hosts is not None and len(self.hosts.alphas) < n:
            raise ValueError(f"the machine has fewer hosts than {n} ranks")
        return units

    def placed(self, placement: tuple[int, ...]) -> Machine:
        """The same with its ranks in these innermost units."""
        return replace(self, placement=placement)

    def simulate(self, schedule: Schedule, record: bool = False) -> Timeline:
        """The timeline of all ranks."""
        return simulate(self, schedule, record)


#: every rank is a unit of its own
ALONE = Level(1, 0.0, 0.0, shared=False)


def AlphaBeta(alpha: float, beta: float, gamma: float = 0.0, unit: int = 1) -> Machine:
    """A machine with start-up time alpha and time per byte beta between any two ranks,
    each with a port of its own."""
    return Machine((ALONE, Level(None, alpha, beta)), gamma, unit)


def Unequal(hosts: Hosts, gamma: float = 0.0, unit: int = 1) -> Machine:
    """A machine of hosts that differ, each rank on one of its own unless `hosts` says
    which share one."""
    slowest = Level(None, max(hosts.alphas), max(hosts.betas))
    if not hosts.nodes:
        return Machine((ALONE, slowest), gamma, unit, hosts=hosts)
    node = Level(max(Counter(hosts.nodes).values()), *hosts.memory)
    return Machine((node, slowest), gamma, unit, hosts.nodes, hosts=hosts)
