"""Nodes with several processes: levels, each with its own alpha, beta and ports.

A message belongs to the lowest level at which both its ends are in one unit: inside a
node, between nodes of a rack, and so on. It takes alpha + m beta of that level, and for
all that time the send port of its sender and the receive port of its receiver; for
m beta of it the one port, in its direction, of every unit that it leaves or enters
whose processes share one: start-ups of several processes overlap. A message asks for
shared ports when it is next at both its ends; who asked first goes first, ties by rank
(see `contention`). Messages inside a node are copies in its memory, and take longer
where all of a round together are more than it can do.

What is exact: with `exact` all that, in the order of time. Without it, rounds are
taken one after the other, so that a shared port serves messages of an earlier round
before those of a later one even if these asked first; inside a round, and where no
two rounds meet at a port, it is the same. Where nodes belong to one group only, the
times differed by less than 0.2 %; where a node has ranks of both, by up to 20 %. It is
many times faster: a round in which no message waits for another is a few numpy calls.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..schedules.schedule import Schedule
from .alphabeta import ports as own_ports
from .contention import Queue, Traffic
from .messages import Messages, Step, steps
from .tally import Tally
from .timeline import Timeline


@dataclass(frozen=True)
class Level:
    """A unit of `size` units of the level below; without a size, of all there are.

    Inside it a message takes alpha + m beta; what leaves it takes its port, if shared.
    The port has so many lanes, each for one message at a time; a process always takes
    the same one.
    """

    size: int | None
    alpha: float
    beta: float
    shared: bool = True
    lanes: int = 1


@dataclass(frozen=True)
class Memory:
    """What the memory of a node takes: seconds per byte that one process copies alone,
    per byte of all its processes together, and for a meeting of them."""

    alone: float = 0.0
    together: float = 0.0
    meeting: float = 0.0


@dataclass(frozen=True)
class Hierarchy:
    """A machine of nested units, from the inside out: node, rack, …

    Ranks in order fill the innermost units; or `placement` says which one each is in.
    `gamma` is the time per byte reduced, `unit` the bytes of an element. Copies take no
    time unless the `memory` of a node says so.
    """

    levels: tuple[Level, ...]
    gamma: float = 0.0
    unit: int = 1
    placement: tuple[int, ...] | None = None
    exact: bool = False
    memory: Memory = Memory()

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

    def units(self, n: int) -> list[np.ndarray]:
        """For each level, the unit in which each of n ranks is."""
        first = self.levels[0].size or max(n, 1)
        at = np.arange(n) // first
        if self.placement is not None:
            at = np.asarray(self.placement[:n], np.int64)
            if len(at) < n or np.bincount(at, minlength=1).max() > first:
                raise ValueError(f"the placement has no room for {n} ranks")
        found = [at]
        for level in self.levels[1:]:
            at = at // level.size if level.size else np.zeros_like(at)
            found.append(at)
        if found[-1].any():
            raise ValueError(f"the machine has fewer places than {n} ranks")
        return found

    def simulate(self, schedule: Schedule, record: bool = False) -> Timeline:
        """The timeline of all ranks."""
        net = _Network(self, self.units(schedule.n))
        if schedule.shares_memory:
            _check_nodes(schedule.nodes, net.units[0])
            if self.exact:
                raise ValueError("meetings are simulated round by round, not exactly")
        rounds = steps(schedule.lanes(), schedule.n)
        tally = Tally(schedule.n, self.unit, record)
        run = _at_once if self.exact else _round_by_round
        return tally.timeline(run(net, rounds, tally))


def _check_nodes(nodes: Sequence[Hashable], units: np.ndarray) -> None:
    """Ranks that share memory must be on one node of the machine."""
    pairs = set(zip(nodes, units.tolist(), strict=True))
    if len(pairs) != len(set(nodes)):
        raise ValueError("ranks that share memory are on several nodes of the machine")


class _Network:
    """A hierarchy for a number of ranks: which message takes how long, which ports.

    Of the shared ports, 2 u is the one out of a unit and 2 u + 1 the one into it, with
    the lanes of the units of all sharing levels in one row.
    """

    def __init__(self, model: Hierarchy, units: list[np.ndarray]) -> None:
        self.model, self.units, self.n = model, units, len(units[0])
        self.alphas = np.array([level.alpha for level in model.levels])
        self.betas = np.array([level.beta for level in model.levels]) * model.unit
        shared = [k for k, level in enumerate(model.levels[:-1]) if level.shared]
        rows = [units[k] * model.levels[k].lanes + self._lane(k) for k in shared]
        sizes = [int(row.max(initial=-1)) + 1 for row in rows]
        bases = np.cumsum([0, *sizes]).tolist()
        self.bases = list(zip(shared, bases, rows, strict=False))
        self.ports = 2 * sum(sizes)

    def _lane(self, k: int) -> np.ndarray:
        """The lane of the port of its unit that each rank takes."""
        seen: dict[int, int] = defaultdict(int)
        found = np.zeros(self.n, np.int64)
        for r, unit in enumerate(self.units[k].tolist()):
            found[r] = seen[unit] % self.model.levels[k].lanes
            seen[unit] += 1
        return found

    def level(self, m: Messages) -> np.ndarray:
        """The lowest level at which both ends are in one unit."""
        level: np.ndarray = np.zeros(len(m), np.int64)
        for unit in self.units:
            level += np.not_equal(unit[m.source], unit[m.target])
        return level

    def lasts(self, m: Messages, level: np.ndarray) -> np.ndarray:
        """How long each message takes."""
        times: np.ndarray = self.alphas[level] + self.betas[level] * m.size
        return times

    def holds(self, m: Messages, level: np.ndarray) -> np.ndarray:
        """How long each message holds the shared ports on its way."""
        times: np.ndarray = self.betas[level] * m.size
        return times

    def crowded(self, m: Messages, level: np.ndarray) -> np.ndarray:
        """How long each message of a round takes, beside the others of its node."""
        times, together = self.lasts(m, level), self.model.memory.together
        inside = level == 0
        if not together or not inside.any():
            return times
        node = self.units[0][m.source]
        count = np.bincount(node[inside], minlength=int(node.max()) + 1)
        shared = self.alphas[0] + together * self.model.unit * count[node] * m.size
        return np.where(inside, np.maximum(times, shared), times)

    def work(self, amount: np.ndarray) -> np.ndarray:
        """How long each rank takes to copy and to reduce so much, beside the others of
        its node."""
        memory, unit = self.model.memory, self.model.unit
        copied, reduced = amount
        times: np.ndarray = unit * (memory.alone * copied + self.model.gamma * reduced)
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
        found: np.ndarray = np.where(meets, last[node] + self.model.memory.meeting, now)
        return found

    def shared(self, m: Messages, level: np.ndarray) -> np.ndarray:
        """The shared ports of each message in a row; -1 where it stays inside."""
        columns: list[np.ndarray] = [np.zeros((0, len(m)), np.int64)]
        for k, base, row in self.bases:
            for way, ends in enumerate((m.source, m.target)):
                port = 2 * (base + row[ends]) + way
                columns.append(np.where(level > k, port, -1)[None])
        rows: np.ndarray = np.concatenate(columns).T
        return rows


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
    lasts: np.ndarray,
    holds: np.ndarray,
    ports: Sequence[Sequence[int]],
    now: np.ndarray,
    free: np.ndarray,
) -> np.ndarray:
    """When the messages of a round start, by the event queue; frees ports later."""
    zeros = np.zeros(len(m), np.int64)
    queue = Queue(
        Traffic(m.source, m.target, m.arrival, zeros, lasts, holds, ports), now, free
    )
    queue.run()
    free[:] = queue.free
    return np.array(queue.start)


def _starts(
    net: _Network,
    m: Messages,
    level: np.ndarray,
    lasts: np.ndarray,
    now: np.ndarray,
    free: np.ndarray,
) -> np.ndarray:
    """When each message of a round starts."""
    ports, holds = net.shared(m, level), net.holds(m, level)
    outside = ports.max(axis=1, initial=-1) >= 0
    if not outside.any():
        return own_ports(m, lasts, now, lasts, lasts)[0]
    if not (_single(m.source, net.n) and _single(m.target, net.n)):
        return _queued(m, lasts, holds, _tuples(ports), now, free)
    start: np.ndarray = np.maximum(now[m.source], now[m.target])
    taken = ports[ports >= 0]
    if _single(taken, net.ports):
        for column in ports.T:
            start = np.maximum(start, np.where(column >= 0, free[column], 0.0))
        for column in ports.T:
            free[column[column >= 0]] = (start + holds)[column >= 0]
        return start
    # Every message asks at the start of the round: those inside need no queue.
    few, rows = _pick(m, outside), _tuples(ports[outside])
    times = lasts[outside], holds[outside]
    start[outside] = _queued(few, *times, rows, now, free)
    return start


def _round_by_round(net: _Network, rounds: Iterable[Step], tally: Tally) -> np.ndarray:
    """When each rank is done, with every round after the one before it."""
    now, free = np.zeros(net.n), np.zeros(net.ports)
    for k, step in enumerate(rounds):
        m = step.messages
        level = net.level(m)
        lasts = net.crowded(m, level)
        start = _starts(net, m, level, lasts, now, free)
        early, late = net.work(step.early), net.work(step.late)
        begun = now
        now = now + early
        for who in (m.source, m.target):
            np.maximum.at(now, who, start + lasts)
        done = now + late
        now = net.met(done, step.meets) if step.meets.any() else done
        tally.add(k, m, start, lasts, early + late)
        tally.local(k, begun, early, done - late, late, now)
    return now


def _at_once(net: _Network, rounds: Iterable[Step], tally: Tally) -> np.ndarray:
    """When each rank is done, with all messages in the order of time."""
    found = list(rounds)
    many = [step.messages for step in found]
    m, round_ = _joined(many)
    level = net.level(m)
    lasts = net.lasts(m, level)
    pauses = _pauses(found, net.model.gamma * net.model.unit)
    traffic = Traffic(
        m.source,
        m.target,
        m.arrival,
        round_,
        lasts,
        net.holds(m, level),
        _tuples(net.shared(m, level)),
        pauses,
    )
    queue = Queue(traffic, np.zeros(net.n), np.zeros(net.ports))
    queue.run()
    start = np.array(queue.start)
    order = np.argsort(round_, kind="stable")
    edges = np.cumsum([len(x) for x in many])[:-1]
    rate = net.model.gamma * net.model.unit
    for k, (step, part) in enumerate(zip(found, np.split(order, edges), strict=True)):
        pause = rate * step.reduced
        some = Messages(m.source[part], m.target[part], m.size[part], part)
        tally.add(k, some, start[part], lasts[part], pause)
    return np.maximum(queue.sends, queue.recvs)


def _joined(many: list[Messages]) -> tuple[Messages, np.ndarray]:
    """The messages of all rounds, by rank and then round, and their rounds."""
    base = np.cumsum([0, *(len(m) for m in many)])
    none = np.zeros(0, np.int64)
    source, target, size = (
        np.concatenate([none, *(getattr(m, name) for m in many)])
        for name in ("source", "target", "size")
    )
    arrival = np.concatenate(
        [none, *(b + m.arrival for b, m in zip(base, many, strict=False))]
    )
    round_ = np.repeat(np.arange(len(many)), [len(m) for m in many])
    order = np.argsort(source, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    arrival = arrival[np.argsort(target[arrival], kind="stable")]
    joined = Messages(source[order], target[order], size[order], number[arrival])
    return joined, round_[order]


def _pauses(found: list[Step], rate: float) -> dict[int, deque[tuple[int, float]]]:
    """What each rank reduces after which round, in seconds."""
    pauses: dict[int, deque[tuple[int, float]]] = defaultdict(deque)
    for k, step in enumerate(found):
        for r in np.flatnonzero(step.reduced).tolist():
            pauses[r].append((k, rate * int(step.reduced[r])))
    return dict(pauses)
