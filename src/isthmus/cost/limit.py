"""The limit: the time that no algorithm can beat, from the contract of a collective.

A port passes one byte after another, each way. So a process, a node or a rack takes at
least the time of the bytes that must enter or leave through its port, and all units
together the time of the bytes that must pass between units. The bytes follow from the
contract and the placement, the time from the machine. Three things are easily
forgotten, and a limit without them is too high:

- contributions to a sum leave a node combined, as a single one;
- a node may have ranks of both groups, between which nothing needs to be sent;
- ranks of a node may copy through its memory, beside their ports.

The limit is a bound and no prediction: it counts a single start-up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..schedules.schedule import Model
from ..verify.contracts import Contract, Demand, Need, Ranks
from .machine import Machine


@dataclass(frozen=True)
class Crossing:
    """The elements that must enter each unit, leave each unit, and pass between units.

    Of the last, some unit must pass at least an equal share.
    """

    enters: np.ndarray
    leaves: np.ndarray
    total: int

    @property
    def most(self) -> int:
        """The least number of elements that the port of some unit passes, one way."""
        one_way = np.maximum(self.enters, self.leaves).max(initial=0)
        return max(int(one_way), -(-self.total // max(len(self.enters), 1)))


def crossing(demand: Demand, unit_of_rank: Sequence[int] | np.ndarray) -> Crossing:
    """The elements that must pass between units, numbered from 0 on."""
    unit = np.asarray(unit_of_rank, np.int64)
    count = int(unit.max(initial=-1)) + 1
    if isinstance(demand, np.ndarray):
        return _crossing_of_table(demand, unit, count)
    return _CrossingSums(unit, count).crossing(demand)


def _crossing_of_table(table: np.ndarray, unit: np.ndarray, count: int) -> Crossing:
    order = np.argsort(unit, kind="stable")
    edges = np.searchsorted(unit[order], np.arange(count))
    rows = np.add.reduceat(table[order], edges, axis=0)
    between = np.add.reduceat(rows[:, order], edges, axis=1)
    np.fill_diagonal(between, 0)
    return Crossing(between.sum(axis=0), between.sum(axis=1), int(between.sum()))


class _CrossingSums:
    """The sums of the elements that enter and leave each unit, over many needs.

    Many needs have all ranks as sources or as targets. Their elements are summed for
    each set of ranks, and added to the units of the set once, at the end: the time of a
    need then does not grow with the number of units.
    """

    def __init__(self, unit: np.ndarray, count: int) -> None:
        self.unit, self.count = unit, count
        self.units_of_ranks: dict[Ranks, frozenset[int]] = {}
        #: elements that all units of a set of ranks get, or give; units that are
        #: exceptions have the difference in `enters` and `leaves`
        self.to_all: Counter[Ranks] = Counter()
        self.from_all: Counter[Ranks] = Counter()
        self.enters, self.leaves = [0] * count, [0] * count
        self.total = 0

    def units(self, ranks: Ranks) -> frozenset[int]:
        """The units of a set of ranks."""
        if ranks not in self.units_of_ranks:
            parts = (np.unique(self.unit[r.start : r.stop]).tolist() for r in ranks)
            units = frozenset(unit for part in parts for unit in part)
            self.units_of_ranks[ranks] = units
        return self.units_of_ranks[ranks]

    def crossing(self, needs: Sequence[Need]) -> Crossing:
        """The elements that must pass between units for all needs together."""
        for need in needs:
            self.add(need)
        enters, leaves = np.array(self.enters), np.array(self.leaves)
        for sums, elements in ((self.to_all, enters), (self.from_all, leaves)):
            for ranks, size in sums.items():
                elements[list(self.units(ranks))] += size
        return Crossing(enters, leaves, self.total)

    def add(self, need: Need) -> None:
        """Add the elements of a need."""
        sources, targets = self.units(need.sources), self.units(need.targets)
        if not (sources and targets and need.size):
            return
        self.to_all[need.targets] += need.size
        if need.alike:  # a unit that has the elements needs none; who gives is open
            for unit in sources & targets:
                self.enters[unit] -= need.size
            self.total += len(targets - sources) * need.size
            (home, *others) = sources
            if not others and targets != sources:
                self.leaves[home] += need.size
            return
        self.from_all[need.sources] += need.size
        if len(sources) == 1 and not targets.isdisjoint(sources):
            (home,) = sources
            self.enters[home] -= need.size
        if len(targets) == 1 and not sources.isdisjoint(targets):
            (home,) = targets
            self.leaves[home] -= need.size
        # The sum is first complete in some unit: by then all other sources have sent,
        # and only from then on can the other targets get the sum.
        together = 1 if sources.isdisjoint(targets) else 2
        self.total += (len(sources) + len(targets) - together) * need.size


@dataclass(frozen=True)
class Limit:
    """Seconds that no algorithm can beat, and the reason: the elements that must enter
    or leave a unit of a level of the machine (level -1: a process)."""

    seconds: float = 0.0
    size: int = 0
    level: int = -1


def limits(contract: Contract, n: int, model: Model) -> list[Limit]:
    """The limits by the ports of processes, and by those of each level's units."""
    if not isinstance(model, Machine):
        return [Limit()]
    demand = contract.demand()
    ports = _Ports(model, n)
    if n > 1 and not len(demand) and any(map(contract.waits_for, range(n))):
        return [Limit(ports.first_message())]
    sums = not isinstance(demand, np.ndarray) and any(
        not need.alike and sum(map(len, need.sources)) > 1 for need in demand
    )
    bounds = [ports.of_processes(crossing(demand, np.arange(n)), sums)]
    for k, unit in enumerate([] if model.flat else ports.units[:-1]):
        bounds.append(ports.of_level(k, crossing(demand, _renumbered(unit))))
    return bounds


def limit(contract: Contract, n: int, model: Model) -> Limit:
    """The limit of n ranks on a machine, in the units of the machine's placement."""
    return max(limits(contract, n, model), key=lambda bound: bound.seconds)


def copying(demand: Demand, n: int, model: Machine) -> float:
    """Seconds of the memory of the busiest node, if ranks copy all elements they
    contribute or need: the limit of algorithms without messages inside a node."""
    by_rank = crossing(demand, np.arange(n))
    copied = by_rank.enters + by_rank.leaves
    together = np.bincount(model.units(n)[0], copied)
    memory = model.memory
    slowest = max(memory.alone * copied.max(), memory.together * together.max())
    return float(model.unit * slowest)


def _renumbered(unit: np.ndarray) -> np.ndarray:
    """The unit of each rank, without numbers for empty units.

    A limit shares elements equally over all units, and would be too low otherwise.
    """
    numbers: np.ndarray = np.unique(unit, return_inverse=True)[1]
    return numbers


def _rate(per_byte: np.ndarray) -> np.ndarray:
    """Bytes a second, from seconds a byte; infinite where a byte takes no time."""
    with np.errstate(divide="ignore"):
        bytes_per_second: np.ndarray = 1 / per_byte
    return bytes_per_second


class _Ports:
    """The limits by the ports of n ranks, and by the ports of their units."""

    def __init__(self, model: Machine, n: int) -> None:
        self.model, self.n = model, n
        self.units = model.units(n)
        levels = model.levels
        #: the costs of a message of each rank, at each level
        self.alpha, self.beta = np.empty((2, len(levels), n))
        self.alpha.T[:] = [level.alpha for level in levels]
        self.beta.T[:] = [level.beta for level in levels]
        if model.hosts is not None:
            self.alpha[-1], self.beta[-1] = (
                model.hosts.alphas[:n],
                model.hosts.betas[:n],
            )
        self.beta *= model.unit
        # the ranks in each rank's unit, at each level
        sizes = [np.bincount(unit, minlength=1)[unit] for unit in self.units]
        below = [np.ones(n, np.int64), *sizes[:-1]]
        #: whether a rank's unit has ranks that its unit of the level below has not
        self.reaches = np.array([a > b for a, b in zip(sizes, below, strict=True)])

    def least_startup(self) -> float:
        """The start-up of the fastest message between any two ranks."""
        return float(self._least(self.alpha, -1).min(initial=np.inf))

    def first_message(self) -> float:
        """The least seconds until a rank knows of a rank at the farthest level: those
        of a message, or of a meeting of their node."""
        farthest = int(np.flatnonzero(self.reaches.any(axis=1))[-1])
        least = float(self._least(self.alpha, farthest - 1).min())
        return least if farthest else min(least, self.model.memory.meeting)

    def _least(self, value: np.ndarray, above: int) -> np.ndarray:
        """Of each rank the least value at the levels above one, where the rank has
        peers."""
        reached = self.reaches[above + 1 :]
        values = np.where(reached, value[above + 1 :], np.inf)
        least: np.ndarray = values.min(axis=0, initial=np.inf)
        return least

    def of_processes(self, passed: Crossing, sums: bool) -> Limit:
        """The limit by the ports of ranks.

        Beside the ports, ranks of a node may copy or reduce in the node's memory,
        without a start-up.
        """
        model = self.model
        amount = np.maximum(passed.enters, passed.leaves)
        most = int(amount.max(initial=0))
        copy = model.memory.alone
        copy = model.unit * (min(copy, model.gamma) if sums else copy)
        port = _rate(self._least(self.beta, -1))
        copies = np.where(self.reaches[0], _rate(np.array(copy)), 0.0)
        times = np.where(self.reaches, self.alpha + self.beta * amount, np.inf)
        by_port = times.min(axis=0, initial=np.inf)
        both_ways = passed.enters + passed.leaves
        with np.errstate(invalid="ignore"):
            beside = np.maximum(
                amount / (port + copies), both_ways / (2 * port + copies)
            )
        near = self.reaches[0]
        seconds = np.where(amount > 0, np.where(near, beside, by_port), 0.0)
        bounds = [Limit(float(seconds.max(initial=0.0)), most)]
        if passed.total:
            startup = 0.0 if near.any() else self.least_startup()
            share = passed.total / float((port + copies).sum())
            bounds.append(Limit(startup + share, passed.most))
        return max(bounds, key=lambda bound: bound.seconds)

    def of_level(self, k: int, passed: Crossing) -> Limit:
        """The limit by the ports of units at level k.

        Each lane of a port passes one message at a time; start-ups overlap.
        """
        unit = _renumbered(self.units[k])
        if not passed.total:
            return Limit()
        level, sizes = self.model.levels[k], np.bincount(unit)
        lanes = np.minimum(level.lanes, sizes) if level.shared else sizes
        beta, alpha = np.full((2, len(sizes)), np.inf)
        np.minimum.at(beta, unit, self._least(self.beta, k))
        np.minimum.at(alpha, unit, self._least(self.alpha, k))
        amount = np.maximum(passed.enters, passed.leaves)
        with np.errstate(invalid="ignore"):
            seconds = np.where(amount > 0, alpha + beta * amount / lanes, 0.0)
        bounds = [Limit(float(seconds.max()), int(amount[seconds.argmax()]), k)]
        share = passed.total / float((lanes * _rate(beta)).sum())
        bounds.append(Limit(float(alpha.min()) + share, passed.most, k))
        return max(bounds, key=lambda bound: bound.seconds)
