"""The costs of messages: the description of a machine for simulator, limit and bounds.

A machine is nested units, from the inside out: node, rack, … A message of m bytes
belongs to the lowest level with both ends in a unit. The message takes alpha + m beta
of the level, and occupies the ports of sender and receiver for gap + m beta; an
unspecified gap is as long as a start-up. For m beta the message also occupies the port,
in its direction, of each unit on the way whose processes share a port, so start-ups of
several processes overlap. Messages inside a node are copies in the node's memory, and
take longer where a round's copies exceed the rate of the memory.

Without shared ports the model is the alpha-beta model: single port, full duplex, every
pair of ranks connected.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..schedules.hosts import Hosts

if TYPE_CHECKING:
    from ..schedules.schedule import Schedule
    from .timeline import Timeline


@dataclass(frozen=True)
class Level:
    """A unit of `size` units of the level below; of all units there without a size.

    A message inside the unit takes alpha + m beta; a message that leaves the unit
    occupies the unit's port, if shared. The port has `lanes`, each for one message at a
    time; a process always uses one lane. Between the beginnings of two messages of a
    process inside the unit pass `gap`, or alpha by default, and the time of the bytes.
    Where k units of the level below send at once inside the unit, a byte takes at least
    k times `together`, because a single memory, or switch, passes all bytes. Bytes of a
    message take `changing` times as long where the sender's message before went to
    another rank, or the receiver's came from another: ranks then wait for each other,
    and TCP begins slowly again.
    """

    size: int | None
    alpha: float
    beta: float
    shared: bool = True
    lanes: int = 1
    gap: float | None = None
    together: float = 0.0
    changing: float = 1.0

    @property
    def between(self) -> float:
        """The gap between two messages of a process."""
        return self.alpha if self.gap is None else self.gap


@dataclass(frozen=True)
class Memory:
    """The memory of a node: seconds per byte of a process that copies alone, per byte
    of all the node's processes together, and for a meeting of the processes."""

    alone: float = 0.0
    together: float = 0.0
    meeting: float = 0.0


@dataclass(frozen=True)
class LibraryCalls:
    """The MPI library's own calls on a machine, as far as messages do not tell.

    The calls take `slowdown` times what their messages would take, and cut long blocks
    into pieces of `piece_bytes`, or not at all if 0. On a machine without a description
    of them they are no candidate.
    """

    slowdown: float = 1.0
    piece_bytes: int = 0


@dataclass(frozen=True)
class Machine:
    """A machine of nested units, its levels from the inside out.

    Ranks in order fill the innermost units, unless `placement` has the unit of each
    rank. `gamma` is the time per byte reduced, `unit` the bytes of an element. Copies
    take no time unless the `memory` of a node has costs. `hosts` are start-up times and
    times per byte, one for each rank, of messages of the outermost level, where hosts
    differ: a message takes the time of the slower of its two ends, but occupies the
    port of each end for the time of that end alone; so a fast host sends to several
    slow hosts at once.
    """

    levels: tuple[Level, ...]
    gamma: float = 0.0
    unit: int = 1
    placement: tuple[int, ...] | None = None
    memory: Memory = Memory()
    hosts: Hosts | None = None
    library: LibraryCalls | None = None
    name: str = field(default="", compare=False)
    #: where the numbers come from
    note: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        """Turn sequences into tuples; refuse levels that cannot be nested."""
        object.__setattr__(self, "levels", tuple(self.levels))
        if self.placement is not None:
            object.__setattr__(self, "placement", tuple(map(int, self.placement)))
        inner_sizes = [level.size for level in self.levels[:-1]]
        if not self.levels or None in inner_sizes:
            raise ValueError("every level but the last needs a size")
        if any(level.size is not None and level.size < 1 for level in self.levels):
            raise ValueError("a level groups one unit at least")
        if any(level.between < 0 for level in self.levels):
            raise ValueError("a gap between messages is not negative")
        if any(level.changing < 1 for level in self.levels):
            raise ValueError("a message to another rank is no faster than to the last")

    @property
    def alpha(self) -> float:
        """The start-up of a message of the outermost level."""
        return self.levels[-1].alpha

    @property
    def beta(self) -> float:
        """The time per byte of a message of the outermost level."""
        return self.levels[-1].beta

    @property
    def gap(self) -> float:
        """The time between two messages of a process, at the outermost level."""
        return self.levels[-1].between

    @property
    def changing(self) -> float:
        """The slowdown of bytes whose partner changes, at the outermost level."""
        return self.levels[-1].changing

    @property
    def startup_bytes(self) -> float:
        """The bytes that pass in the time of a start-up, at the outermost level."""
        return self.alpha / self.beta

    @cached_property
    def sharing(self) -> int:
        """The most ranks that share the port of an innermost unit; without a placement
        those of a full unit."""
        innermost = self.levels[0]
        if len(self.levels) == 1 or not innermost.shared:
            return 1
        if self.placement is None:
            return innermost.size or 1
        return max(Counter(self.placement).values())

    @property
    def far(self) -> float:
        """The slowdown of bytes from all ranks to partners that change and share no
        unit."""
        return self.sharing * self.changing

    @property
    def flat(self) -> bool:
        """Whether no rank shares a port with another rank."""
        return all(level.size == 1 and not level.shared for level in self.levels[:-1])

    def units(self, n: int) -> list[np.ndarray]:
        """For each level, the unit of each of n ranks."""
        innermost_size = self.levels[0].size or max(n, 1)
        unit = np.arange(n) // innermost_size
        if self.placement is not None:
            unit = np.asarray(self.placement[:n], np.int64)
            if len(unit) < n or np.bincount(unit, minlength=1).max() > innermost_size:
                raise ValueError(f"the placement has no room for {n} ranks")
        units = [unit]
        for level in self.levels[1:]:
            unit = unit // level.size if level.size else np.zeros_like(unit)
            units.append(unit)
        if units[-1].any():
            raise ValueError(f"the machine has fewer places than {n} ranks")
        if self.hosts is not None and len(self.hosts.alphas) < n:
            raise ValueError(f"the machine has fewer hosts than {n} ranks")
        return units

    def reached(self, n: int) -> Machine:
        """The machine of n ranks, without the levels that none of their messages
        reaches."""
        if self.flat:
            return self
        inner = sum(bool(unit.any()) for unit in self.units(n))
        outermost = replace(self.levels[inner], size=None)
        return replace(self, levels=(*self.levels[:inner], outermost))

    def simulate(self, schedule: Schedule, record: bool = False) -> Timeline:
        """The timeline of a schedule; `record` keeps its messages and work."""
        from .simulate import simulate  # a choice needs no simulator

        return simulate(self, schedule, record)


#: every rank is a unit of its own
ALONE = Level(1, 0.0, 0.0, shared=False)


def AlphaBeta(alpha: float, beta: float, gamma: float = 0.0, unit: int = 1) -> Machine:
    """A machine with start-up time alpha and time per byte beta between any two ranks.

    Each rank has a port of its own.
    """
    return Machine((ALONE, Level(None, alpha, beta)), gamma, unit)


def Unequal(hosts: Hosts, gamma: float = 0.0, unit: int = 1) -> Machine:
    """A machine of unequal hosts, with a rank on each unless `hosts.nodes` says which
    ranks share a host."""
    slowest = Level(None, max(hosts.alphas), max(hosts.betas))
    if not hosts.nodes:
        return Machine((ALONE, slowest), gamma, unit, hosts=hosts)
    node = Level(max(Counter(hosts.nodes).values()), *hosts.memory)
    return Machine((node, slowest), gamma, unit, hosts.nodes, hosts=hosts)
