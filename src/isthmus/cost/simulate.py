"""A schedule on a machine, step by step: when every message starts and ends.

Two engines find when the messages of a step start. Where none shares a port with
others, they move in waves (see `waves`): a few numpy calls each. Where some do, they
queue (see `contention`): a message asks for shared ports when it is next at both its
ends; who asked first goes first, ties by rank.

What is exact: steps are taken one after the other, so that a shared port serves
messages of an earlier step before those of a later one even if these asked first;
inside a step, and where no two steps meet at a port, it is exact. Where nodes belong to
one group only, times differed by less than 0.2 % from those of one queue for all; where
a node has ranks of both, by up to 20 %. It is many times faster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .contention import Queue
from .messages import Messages, Step, steps
from .tally import Tally
from .timeline import Timeline
from .waves import waves

if TYPE_CHECKING:
    from ..schedules.schedule import Schedule
    from .machine import Machine


def simulate(machine: Machine, schedule: Schedule, record: bool = False) -> Timeline:
    """The timeline of all ranks."""
    net = _Network(machine, machine.units(schedule.n))
    if schedule.shares_memory:
        _check_nodes(schedule.nodes, net.units[0])
    tally = Tally(schedule.n, machine.unit, record)
    ranks = _Ranks(net, tally)
    for k, step in enumerate(steps(schedule)):
        ranks.take(k, step)
    return tally.timeline(ranks.begun)


def _check_nodes(nodes: Sequence[Hashable], units: np.ndarray) -> None:
    """Ranks that share memory must be on one node of the machine."""
    pairs = set(zip(nodes, units.tolist(), strict=True))
    if len(pairs) != len(set(nodes)):
        raise ValueError("ranks that share memory are on several nodes of the machine")


class _Ranks:
    """When the round of each rank began, its ports are free again, and the last of its
    messages so far is done; and when shared ports are free."""

    def __init__(self, net: _Network, tally: Tally) -> None:
        self.net, self.tally = net, tally
        self.begun = self.sends = self.recvs = self.done = np.zeros(net.n)
        self.free = np.zeros(net.ports)

    def take(self, k: int, step: Step) -> None:
        """A step: its messages, and what ranks do whose round then ends."""
        m, net = step.messages, self.net
        level = net.level(m)
        lasts = net.crowded(m, level)
        out, into = held = net.held(m, level, lasts)
        start = net.starts(m, level, held, (self.sends, self.recvs), self.free)
        early, late = net.work(step.early), net.work(step.late)
        done, begun = self.done.copy(), self.begun
        for who in (m.source, m.target):
            np.maximum.at(done, who, start + lasts)
        self.tally.add(k, m, start, lasts, early + late, held)
        now = np.maximum(begun + early, done) + late
        if step.ends is not None:  # others are still in their rounds, or wait
            now = np.where(step.ends, now, begun)
        after = net.met(now, step.meets) if step.meets.any() else now
        self.tally.local(k, begun, early, now - late, late, after)
        if step.ends is None:
            self.begun = self.sends = self.recvs = self.done = after
            return
        sends, recvs = self.sends.copy(), self.recvs.copy()
        np.maximum.at(sends, m.source, start + out)
        np.maximum.at(recvs, m.target, start + into)
        free = step.ends | step.meets
        self.begun, self.sends, self.recvs, self.done = (
            np.where(free, after, x) for x in (begun, sends, recvs, done)
        )


class _Network:
    """A machine for a number of ranks: which message takes how long, which ports.

    Of the shared ports, 2 u is the one out of a unit and 2 u + 1 the one into it, with
    the lanes of the units of all sharing levels in one row.
    """

    def __init__(self, machine: Machine, units: list[np.ndarray]) -> None:
        self.machine, self.units, self.n = machine, units, len(units[0])
        levels = machine.levels
        self.alphas = np.array([level.alpha for level in levels])
        self.betas = np.array([level.beta for level in levels]) * machine.unit
        self.gaps = np.array([level.between for level in levels])
        #: whether a port is taken exactly as long as a message lasts
        self.plain = machine.hosts is None and np.array_equal(self.gaps, self.alphas)
        #: levels in which messages slow each other down
        self.crowds = [(k, x.together) for k, x in enumerate(levels) if x.together]
        shared = [k for k, level in enumerate(levels[:-1]) if level.shared]
        rows = [units[k] * levels[k].lanes + self._lane(k) for k in shared]
        sizes = [int(row.max(initial=-1)) + 1 for row in rows]
        bases = np.cumsum([0, *sizes]).tolist()
        self.bases = list(zip(shared, bases, rows, strict=False))
        self.ports = 2 * sum(sizes)

    def _lane(self, k: int) -> np.ndarray:
        """The lane of the port of its unit that each rank takes."""
        seen: dict[int, int] = defaultdict(int)
        lanes = np.zeros(self.n, np.int64)
        for r, unit in enumerate(self.units[k].tolist()):
            lanes[r] = seen[unit] % self.machine.levels[k].lanes
            seen[unit] += 1
        return lanes

    def level(self, m: Messages) -> np.ndarray:
        """The lowest level at which both ends are in one unit."""
        level: np.ndarray = np.zeros(len(m), np.int64)
        for unit in self.units:
            level += np.not_equal(unit[m.source], unit[m.target])
        return level

    def lasts(self, m: Messages, level: np.ndarray) -> np.ndarray:
        """How long each message takes."""
        times: np.ndarray = self.alphas[level] + self.betas[level] * m.size
        return self._by_hosts(times, m, level, m.source, m.target)

    def held(
        self, m: Messages, level: np.ndarray, lasts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """How long each message takes the send port and the receive port."""
        if self.plain:
            return lasts, lasts
        # a message that is slowed down by others takes its ports as much longer
        times = lasts + (self.gaps - self.alphas)[level]
        ends = (m.source, m.source), (m.target, m.target)
        out, into = (self._by_hosts(times, m, level, *both) for both in ends)
        return out, into

    def _by_hosts(
        self,
        times: np.ndarray,
        m: Messages,
        level: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
    ) -> np.ndarray:
        """The times, but of messages between hosts those of the slower of a and b."""
        if self.machine.hosts is None:
            return times
        between = self.machine.hosts.times(a, b, self.machine.unit * m.size)
        return np.where(level == len(self.alphas) - 1, between, times)

    def crowded(self, m: Messages, level: np.ndarray) -> np.ndarray:
        """How long each message of a step takes, beside the others of its node."""
        times, together = self._together(m, level), self.machine.memory.together
        inside = level == 0
        if not together or not inside.any():
            return times
        node = self.units[0][m.source]
        count = np.bincount(node[inside], minlength=int(node.max()) + 1)
        shared = self.alphas[0] + together * self.machine.unit * count[node] * m.size
        return np.where(inside, np.maximum(times, shared), times)

    def _together(self, m: Messages, level: np.ndarray) -> np.ndarray:
        """How long each message takes, beside the others in its unit."""
        times = self.lasts(m, level)
        for k, together in self.crowds:
            inside = np.flatnonzero(level == k)
            if not len(inside):
                continue
            source, unit = m.source[inside], self.units[k]
            below = self.units[k - 1] if k else np.arange(self.n)
            _, first = np.unique(below[source], return_index=True)
            active = np.bincount(unit[source[first]], minlength=int(unit.max()) + 1)
            slow = together * active[unit[source]] * m.size[inside]
            shared = self.alphas[k] + self.machine.unit * slow
            times[inside] = np.maximum(times[inside], shared)
        return times

    def work(self, amount: np.ndarray) -> np.ndarray:
        """How long each rank takes to copy and to reduce so much, beside the others of
        its node."""
        memory, unit = self.machine.memory, self.machine.unit
        copied, reduced = amount
        times: np.ndarray = unit * (
            memory.alone * copied + self.machine.gamma * reduced
        )
        if memory.together:
            # those of a node that are at work have equal shares of its memory's rate
            node, moved = self.units[0], copied + reduced
            active = np.bincount(
                node[moved > 0], minlength=int(node.max(initial=0)) + 1
            )
            times = np.maximum(times, unit * memory.together * active[node] * moved)
        return times

    def met(self, now: np.ndarray, meets: np.ndarray) -> np.ndarray:
        """When each rank goes on, if some wait for all of their node."""
        node = self.units[0]
        last = np.zeros(int(node.max(initial=0)) + 1)
        np.maximum.at(last, node[meets], now[meets])
        meeting = self.machine.memory.meeting
        after: np.ndarray = np.where(meets, last[node] + meeting, now)
        return after

    def _shared(self, m: Messages, level: np.ndarray) -> np.ndarray:
        """The shared ports of each message in a row; -1 where it stays inside."""
        columns: list[np.ndarray] = [np.zeros((0, len(m)), np.int64)]
        for k, base, row in self.bases:
            for way, ends in enumerate((m.source, m.target)):
                port = 2 * (base + row[ends]) + way
                columns.append(np.where(level > k, port, -1)[None])
        rows: np.ndarray = np.concatenate(columns).T
        return rows

    def _holds(self, m: Messages, level: np.ndarray) -> np.ndarray:
        """How long each message takes the shared ports on its way."""
        times: np.ndarray = self.betas[level] * m.size
        if self.machine.hosts is None:
            return times
        amount = self.machine.unit * m.size
        ends = m.source, m.target
        between = self.machine.hosts.times(*ends, amount)
        bytes_only = between - self.machine.hosts.times(*ends, 0)
        return np.where(level == len(self.betas) - 1, bytes_only, times)

    def starts(
        self,
        m: Messages,
        level: np.ndarray,
        held: tuple[np.ndarray, np.ndarray],
        now: tuple[np.ndarray, np.ndarray],
        free: np.ndarray,
    ) -> np.ndarray:
        """When each message of a step starts; takes the shared ports for its bytes."""
        if not self.bases:
            return waves(m, held, now)
        ports = self._shared(m, level)
        outside = ports.max(axis=1, initial=-1) >= 0
        if not outside.any():
            return waves(m, held, now)
        holds, (sends, recvs) = self._holds(m, level), now
        if not (_single(m.source, self.n) and _single(m.target, self.n)):
            return _queued(m, held, holds, ports, now, free)
        start: np.ndarray = np.maximum(sends[m.source], recvs[m.target])
        taken = ports[ports >= 0]
        if _single(taken, self.ports):
            for column in ports.T:
                start = np.maximum(start, np.where(column >= 0, free[column], 0.0))
            for column in ports.T:
                free[column[column >= 0]] = (start + holds)[column >= 0]
            return start
        # Every message asks at the start of the step: those inside need no queue.
        few = _pick(m, outside)
        times = (held[0][outside], held[1][outside]), holds[outside]
        start[outside] = _queued(few, *times, ports[outside], now, free)
        return start


def _tuples(shared: np.ndarray) -> list[list[int]]:
    """The shared ports of each message, without those it does not take."""
    if shared.shape[1] == 2:  # one sharing level: both or none
        return [x if x[0] >= 0 else [] for x in shared.tolist()]
    return [[port for port in x if port >= 0] for x in shared.tolist()]


def _pick(m: Messages, chosen: np.ndarray) -> Messages:
    """Some of the messages, in the same orders."""
    number = np.cumsum(chosen) - 1
    arrival = number[m.arrival[chosen[m.arrival]]]
    return Messages(m.source[chosen], m.target[chosen], m.size[chosen], arrival)


def _single(who: np.ndarray, n: int) -> bool:
    """Whether each number comes once at the most."""
    return len(who) == 0 or int(np.bincount(who, minlength=n).max()) == 1


def _queued(
    m: Messages,
    held: tuple[np.ndarray, np.ndarray],
    holds: np.ndarray,
    ports: np.ndarray,
    now: tuple[np.ndarray, np.ndarray],
    free: np.ndarray,
) -> np.ndarray:
    """When the messages of a step start, by the event queue; frees ports later."""
    queue = Queue(m, held, holds, _tuples(ports), now, free)
    queue.run()
    free[:] = queue.free
    return np.array(queue.start)
