"""The limit: the time that no algorithm can beat, from what a collective promises.

A port passes one byte after the other, each way. So a process, a node or a rack takes
at least as long as what must enter or leave it, and all of them together as long as
what must pass from one to another. What must, follows from the contract and from who is
where; how long it takes, from the machine. Three things are easily forgotten, and a
limit without them is too high:

- contributions to a sum leave a node combined, as one;
- a node may have ranks of both groups, which need not send each other anything;
- ranks of a node may copy through its memory, beside their ports.

It is a bound, not a prediction: of start-ups it counts one.
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
    """The elements that must enter each unit and leave it, and those that must pass
    from some unit to another: each has its share of these, or somebody more."""

    enters: np.ndarray
    leaves: np.ndarray
    total: int

    @property
    def most(self) -> int:
        """What must pass the port of some unit, one way, at the least."""
        either = np.maximum(self.enters, self.leaves).max(initial=0)
        return max(int(either), -(-self.total // max(len(self.enters), 1)))


def crossing(demand: Demand, where: Sequence[int] | np.ndarray) -> Crossing:
    """What must pass between units; `where` says in which each rank is, from 0 on."""
    unit = np.asarray(where, np.int64)
    count = int(unit.max(initial=-1)) + 1
    if isinstance(demand, np.ndarray):
        return _crossing_of_table(demand, unit, count)
    return _Sums(unit, count).crossing(demand)


def _crossing_of_table(table: np.ndarray, unit: np.ndarray, count: int) -> Crossing:
    order = np.argsort(unit, kind="stable")
    edges = np.searchsorted(unit[order], np.arange(count))
    rows = np.add.reduceat(table[order], edges, axis=0)
    between = np.add.reduceat(rows[:, order], edges, axis=1)
    np.fill_diagonal(between, 0)
    return Crossing(between.sum(axis=0), between.sum(axis=1), int(between.sum()))


class _Sums:
    """The units of sets of ranks; what enters and leaves each, summed up.

    Many needs have all ranks as sources or as targets: what they have in common is
    added up at the end, once for each set.
    """

    def __init__(self, unit: np.ndarray, count: int) -> None:
        self.unit, self.count = unit, count
        self.known: dict[Ranks, frozenset[int]] = {}
        #: elements that all units of a set get, or give, without the exceptions
        self.to_all: Counter[Ranks] = Counter()
        self.from_all: Counter[Ranks] = Counter()
        self.enters, self.leaves = [0] * count, [0] * count
        self.total = 0

    def units(self, ranks: Ranks) -> frozenset[int]:
        """The units in which some of these ranks are."""
        if ranks not in self.known:
            each = (np.unique(self.unit[r.start : r.stop]).tolist() for r in ranks)
            self.known[ranks] = frozenset(x for part in each for x in part)
        return self.known[ranks]

    def crossing(self, needs: Sequence[Need]) -> Crossing:
        """Both ways of all of them."""
        for need in needs:
            self.add(need)
        enters, leaves = np.array(self.enters), np.array(self.leaves)
        for sums, found in ((self.to_all, enters), (self.from_all, leaves)):
            for ranks, size in sums.items():
                found[list(self.units(ranks))] += size
        return Crossing(enters, leaves, self.total)

    def add(self, need: Need) -> None:
        """What one need moves."""
        sources, targets = self.units(need.sources), self.units(need.targets)
        if not (sources and targets and need.size):
            return
        self.to_all[need.targets] += need.size
        if need.alike:  # a unit that has it needs nothing; who gives it is open
            for u in sources & targets:
                self.enters[u] -= need.size
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
        # first it is complete somewhere: by then all other sources have sent, and
        # only from then on can the other targets get it
        together = 1 if sources.isdisjoint(targets) else 2
        self.total += (len(sources) + len(targets) - together) * need.size


@dataclass(frozen=True)
class Limit:
    """Seconds that no algorithm can beat, and why: the elements that must enter or
    leave a unit, which is a process (level -1) or one of that level of the machine."""

    seconds: float = 0.0
    size: int = 0
    level: int = -1


def limits(contract: Contract, n: int, model: Model) -> list[Limit]:
    """The limit of processes, and of the units of each level that share ports."""
    if not isinstance(model, Machine):
        return [Limit()]
    demand = contract.demand()
    ports = _Ports(model, n)
    if n > 1 and not len(demand) and any(map(contract.waits_for, range(n))):
        return [Limit(ports.to_hear())]
    sums = not isinstance(demand, np.ndarray) and any(
        not need.alike and sum(map(len, need.sources)) > 1 for need in demand
    )
    found = [ports.of_processes(crossing(demand, np.arange(n)), sums)]
    for k, unit in enumerate([] if model.flat else ports.units[:-1]):
        found.append(ports.of_level(k, crossing(demand, _numbered(unit))))
    return found


def limit(contract: Contract, n: int, model: Model) -> Limit:
    """The limit of n ranks on a machine, whose placement says where they are."""
    return max(limits(contract, n, model), key=lambda x: x.seconds)


def copying(demand: Demand, n: int, model: Machine) -> float:
    """Seconds of the memory of the busiest node, if its ranks copy all that they bring
    and need: the limit of algorithms that use nothing else inside a node."""
    passed = crossing(demand, np.arange(n))
    copied = passed.enters + passed.leaves
    together = np.bincount(model.units(n)[0], copied)
    memory = model.memory
    slowest = max(memory.alone * copied.max(), memory.together * together.max())
    return float(model.unit * slowest)


def _numbered(unit: np.ndarray) -> np.ndarray:
    """Units that have ranks, numbered from 0 on."""
    found: np.ndarray = np.unique(unit, return_inverse=True)[1]
    return found


def _rate(per_byte: np.ndarray) -> np.ndarray:
    """Bytes a second; any number of them, where a byte takes no time."""
    with np.errstate(divide="ignore"):
        found: np.ndarray = 1 / per_byte
    return found


class _Ports:
    """What the ports of ranks and of units let through."""

    def __init__(self, model: Machine, n: int) -> None:
        self.model, self.n = model, n
        self.units = model.units(n)
        levels = model.levels
        #: the costs of a message of each rank, at each level
        self.alpha, self.beta = np.empty((2, len(levels), n))
        self.alpha.T[:] = [x.alpha for x in levels]
        self.beta.T[:] = [x.beta for x in levels]
        if model.hosts is not None:
            self.alpha[-1], self.beta[-1] = (
                model.hosts.alphas[:n],
                model.hosts.betas[:n],
            )
        self.beta *= model.unit
        #: the ranks that share each rank's unit, at each level
        sizes = [np.bincount(unit, minlength=1)[unit] for unit in self.units]
        below = [np.ones(n, np.int64), *sizes[:-1]]
        #: whether a rank has others there that no lower level has
        self.reaches = np.array([a > b for a, b in zip(sizes, below, strict=True)])

    def least_startup(self) -> float:
        """The start-up of the fastest message that can be."""
        return float(self._least(self.alpha, -1).min(initial=np.inf))

    def to_hear(self) -> float:
        """Until some rank has heard of another, of those farthest apart: a message, or
        a meeting of their node."""
        farthest = int(np.flatnonzero(self.reaches.any(axis=1))[-1])
        least = float(self._least(self.alpha, farthest - 1).min())
        return least if farthest else min(least, self.model.memory.meeting)

    def _least(self, value: np.ndarray, above: int) -> np.ndarray:
        """For each rank the least of a value, of the levels above one that it uses."""
        part = self.reaches[above + 1 :]
        used = np.where(part, value[above + 1 :], np.inf)
        found: np.ndarray = used.min(axis=0, initial=np.inf)
        return found

    def of_processes(self, passed: Crossing, sums: bool) -> Limit:
        """Ports of ranks; beside them those of a node may copy through its memory, or
        reduce in it, for which they need no start-up."""
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
        each = np.where(amount > 0, np.where(near, beside, by_port), 0.0)
        found = [Limit(float(each.max(initial=0.0)), most)]
        if passed.total:
            startup = 0.0 if near.any() else self.least_startup()
            share = passed.total / float((port + copies).sum())
            found.append(Limit(startup + share, passed.most))
        return max(found, key=lambda x: x.seconds)

    def of_level(self, k: int, passed: Crossing) -> Limit:
        """Ports of units: each lane passes one message at a time, start-ups overlap."""
        unit = _numbered(self.units[k])
        if not passed.total:
            return Limit()
        level, sizes = self.model.levels[k], np.bincount(unit)
        lanes = np.minimum(level.lanes, sizes) if level.shared else sizes
        beta, alpha = np.full((2, len(sizes)), np.inf)
        np.minimum.at(beta, unit, self._least(self.beta, k))
        np.minimum.at(alpha, unit, self._least(self.alpha, k))
        amount = np.maximum(passed.enters, passed.leaves)
        with np.errstate(invalid="ignore"):
            each = np.where(amount > 0, alpha + beta * amount / lanes, 0.0)
        found = [Limit(float(each.max()), int(amount[each.argmax()]), k)]
        share = passed.total / float((lanes * _rate(beta)).sum())
        found.append(Limit(float(alpha.min()) + share, passed.most, k))
        return max(found, key=lambda x: x.seconds)
