"""The simulation of a schedule on a machine: when every message starts and ends.

Two engines find when the messages of a step start. Messages without shared ports move
in waves (see `waves`): a few numpy calls each. Otherwise messages queue (see
`contention`): a message asks for shared ports when it is next at both ends; the first
to ask goes first, ties by rank.

Steps are simulated in sequence, because a single queue for all steps is many times
slower. So a shared port serves messages of an earlier step before messages of a later
step, even if the latter asked first. The simulation is exact inside a step, and where
no two steps meet at a port. Where nodes belong to a single group, times differed by
less than 0.2 % from times by a single queue; where a node has ranks of both groups, by
up to 20 %.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .contention import PortQueue
from .messages import Messages, Step, steps
from .tally import SimulationTally
from .timeline import Timeline
from .waves import waves

if TYPE_CHECKING:
    from ..schedules.schedule import Schedule
    from .machine import Machine


def simulate(machine: Machine, schedule: Schedule, record: bool = False) -> Timeline:
    """The timeline of all ranks of a schedule on a machine.

    With `record` the timeline has every message, and the work between messages.
    """
    network = _Network(machine, machine.units(schedule.n))
    if schedule.shares_memory:
        _check_nodes(schedule.nodes, network.units[0])
    tally = SimulationTally(schedule.n, machine.unit, record)
    ranks = _Ranks(network, tally)
    for k, step in enumerate(steps(schedule)):
        ranks.add_step(k, step)
    return tally.timeline(ranks.round_starts)


def _check_nodes(nodes: Sequence[Hashable], units: np.ndarray) -> None:
    """Refuse ranks that share memory but are on several nodes of the machine."""
    pairs = set(zip(nodes, units.tolist(), strict=True))
    if len(pairs) != len(set(nodes)):
        raise ValueError("ranks that share memory are on several nodes of the machine")


class _Ranks:
    """The times at which ranks and shared ports are ready for the next step.

    Of each rank: the start of the round, the times at which the two ports are free
    again, and the end of the last message of the round so far.
    """

    def __init__(self, network: _Network, tally: SimulationTally) -> None:
        self.network, self.tally = network, tally
        self.round_starts = np.zeros(network.n)
        self.send_free = self.recv_free = self.last_ends = self.round_starts
        self.shared_free = np.zeros(network.ports)
        #: of each rank the last receiver and the last sender; -1 before the first
        self.last_partners = np.full((2, network.n), -1)

    def _slowed(self, messages: Messages, level: np.ndarray) -> Messages:
        """The messages, as much longer as partners that change slow them down."""
        changing = self.network.changing[level]
        slow = np.flatnonzero(changing > 1)
        if not len(slow):
            return messages
        arrival = messages.arrival[changing[messages.arrival] > 1]
        targets, sources = self.last_partners
        changes = np.zeros(len(messages), bool)
        changes[slow] = _changes(messages.source[slow], messages.target[slow], targets)
        changes[arrival] |= _changes(
            messages.target[arrival], messages.source[arrival], sources
        )
        return replace(messages, size=messages.size * np.where(changes, changing, 1.0))

    def add_step(self, k: int, step: Step) -> None:
        """Simulate step k: the messages, then the work of ranks whose round ends."""
        messages, network = step.messages, self.network
        level = network.level(messages)
        slowed = self._slowed(messages, level)
        durations = network.durations_beside_others(slowed, level)
        port_times = network.port_times(slowed, level, durations)
        ranks_free = self.send_free, self.recv_free
        start = network.starts(slowed, level, port_times, ranks_free, self.shared_free)
        early, late = network.work(step.early), network.work(step.late)
        last_ends, round_starts = self.last_ends.copy(), self.round_starts
        for ranks in (messages.source, messages.target):
            np.maximum.at(last_ends, ranks, start + durations)
        self.tally.add_messages(k, messages, start, durations, port_times)
        ready = np.maximum(round_starts + early, last_ends) + late
        if step.ends is not None:  # the other ranks are inside their rounds, or wait
            ready = np.where(step.ends, ready, round_starts)
        meets = step.meets.any()
        after = network.meeting_ends(ready, step.meets) if meets else ready
        self.tally.add_work(k, round_starts, early, ready - late, late, after)
        if step.ends is None:
            self.round_starts = self.send_free = self.recv_free = self.last_ends = after
            return
        send_free, recv_free = self.send_free.copy(), self.recv_free.copy()
        np.maximum.at(send_free, messages.source, start + port_times[0])
        np.maximum.at(recv_free, messages.target, start + port_times[1])
        goes_on = step.ends | step.meets
        self.round_starts, self.send_free, self.recv_free, self.last_ends = (
            np.where(goes_on, after, before)
            for before in (round_starts, send_free, recv_free, last_ends)
        )


def _changes(ranks: np.ndarray, partners: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Whether the partner of each message is another than that of the rank's message
    before. Messages of a rank follow each other; `last` has each rank's last partner
    before, and after."""
    is_first = np.diff(ranks, prepend=-1) != 0
    before = np.where(is_first, last[ranks], np.roll(partners, 1))
    last[ranks] = partners
    changes: np.ndarray = (before >= 0) & (before != partners)
    return changes


class _Network:
    """The costs of messages on a machine with a number of ranks, and their ports.

    The shared ports are numbered: 2 u leads out of a unit and 2 u + 1 into the unit,
    where u counts the lanes of the units of all sharing levels.
    """

    def __init__(self, machine: Machine, units: list[np.ndarray]) -> None:
        self.machine, self.units, self.n = machine, units, len(units[0])
        levels = machine.levels
        self.alphas = np.array([level.alpha for level in levels])
        self.betas = np.array([level.beta for level in levels]) * machine.unit
        self.gaps = np.array([level.between for level in levels])
        self.changing = np.array([level.changing for level in levels])
        #: whether a message occupies its ports for exactly its own duration
        self.occupied_as_long = machine.hosts is None and np.array_equal(
            self.gaps, self.alphas
        )
        #: levels in which messages slow each other down
        self.crowded_levels = [
            (k, level.together) for k, level in enumerate(levels) if level.together
        ]
        shared = [k for k, level in enumerate(levels[:-1]) if level.shared]
        rows = [units[k] * levels[k].lanes + self._lane(k) for k in shared]
        sizes = [int(row.max(initial=-1)) + 1 for row in rows]
        sharing_levels = np.cumsum([0, *sizes]).tolist()
        self.sharing_levels = list(zip(shared, sharing_levels, rows, strict=False))
        self.ports = 2 * sum(sizes)

    def _lane(self, k: int) -> np.ndarray:
        """The lane of each rank in the port of its unit at level k.

        Ranks of a unit take lanes in turn, so that lanes have equally many ranks.
        """
        ranks_so_far: dict[int, int] = defaultdict(int)
        lanes = np.zeros(self.n, np.int64)
        for r, unit in enumerate(self.units[k].tolist()):
            lanes[r] = ranks_so_far[unit] % self.machine.levels[k].lanes
            ranks_so_far[unit] += 1
        return lanes

    def level(self, messages: Messages) -> np.ndarray:
        """The level of each message: the lowest level with both ends in a unit."""
        level: np.ndarray = np.zeros(len(messages), np.int64)
        for unit in self.units:
            level += np.not_equal(unit[messages.source], unit[messages.target])
        return level

    def durations(self, messages: Messages, level: np.ndarray) -> np.ndarray:
        """The seconds of each message, if alone."""
        times: np.ndarray = self.alphas[level] + self.betas[level] * messages.size
        return self._by_hosts(times, messages, level, messages.source, messages.target)

    def port_times(
        self, messages: Messages, level: np.ndarray, durations: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The seconds that each message occupies the send port and the receive port."""
        if self.occupied_as_long:
            return durations, durations
        # a message that is slowed down by others takes its ports as much longer
        times = durations + (self.gaps - self.alphas)[level]
        source, target = messages.source, messages.target
        return (
            self._by_hosts(times, messages, level, source, source),
            self._by_hosts(times, messages, level, target, target),
        )

    def _by_hosts(
        self,
        times: np.ndarray,
        messages: Messages,
        level: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
    ) -> np.ndarray:
        """The times of messages, where those between hosts take the times of the slower
        of the hosts of ranks a and b."""
        if self.machine.hosts is None:
            return times
        between = self.machine.hosts.times(a, b, self.machine.unit * messages.size)
        return np.where(level == len(self.alphas) - 1, between, times)

    def durations_beside_others(
        self, messages: Messages, level: np.ndarray
    ) -> np.ndarray:
        """The seconds of each message of a step, beside all messages of the step.

        Messages inside a node share the rate of the node's memory.
        """
        times = self._durations_in_unit(messages, level)
        together = self.machine.memory.together
        inside = level == 0
        if not together or not inside.any():
            return times
        node = self.units[0][messages.source]
        count = np.bincount(node[inside], minlength=int(node.max()) + 1)
        shared = (
            self.alphas[0] + together * self.machine.unit * count[node] * messages.size
        )
        return np.where(inside, np.maximum(times, shared), times)

    def _durations_in_unit(self, messages: Messages, level: np.ndarray) -> np.ndarray:
        """The seconds of each message, beside all messages inside the unit."""
        times = self.durations(messages, level)
        for k, together in self.crowded_levels:
            inside = np.flatnonzero(level == k)
            if not len(inside):
                continue
            source, unit = messages.source[inside], self.units[k]
            below = self.units[k - 1] if k else np.arange(self.n)
            _, first = np.unique(below[source], return_index=True)
            active = np.bincount(unit[source[first]], minlength=int(unit.max()) + 1)
            slow = together * active[unit[source]] * messages.size[inside]
            shared = self.alphas[k] + self.machine.unit * slow
            times[inside] = np.maximum(times[inside], shared)
        return times

    def work(self, amount: np.ndarray) -> np.ndarray:
        """The seconds of each rank to copy and to reduce an amount, beside all ranks of
        the node."""
        memory, unit = self.machine.memory, self.machine.unit
        copied, reduced = amount
        times: np.ndarray = unit * (
            memory.alone * copied + self.machine.gamma * reduced
        )
        if memory.together:
            # ranks of a node that are at work have equal shares of its memory's rate
            node, moved = self.units[0], copied + reduced
            active = np.bincount(
                node[moved > 0], minlength=int(node.max(initial=0)) + 1
            )
            times = np.maximum(times, unit * memory.together * active[node] * moved)
        return times

    def meeting_ends(self, ready: np.ndarray, meets: np.ndarray) -> np.ndarray:
        """When each rank goes on, where ranks that meet wait for the last of their
        node."""
        node = self.units[0]
        last = np.zeros(int(node.max(initial=0)) + 1)
        np.maximum.at(last, node[meets], ready[meets])
        meeting = self.machine.memory.meeting
        after: np.ndarray = np.where(meets, last[node] + meeting, ready)
        return after

    def _shared_ports(self, messages: Messages, level: np.ndarray) -> np.ndarray:
        """The shared ports of each message in a row; -1 where the message stays in the
        unit."""
        columns: list[np.ndarray] = [np.zeros((0, len(messages)), np.int64)]
        for k, base, row in self.sharing_levels:
            for way, ends in enumerate((messages.source, messages.target)):
                port = 2 * (base + row[ends]) + way
                columns.append(np.where(level > k, port, -1)[None])
        rows: np.ndarray = np.concatenate(columns).T
        return rows

    def _shared_times(self, messages: Messages, level: np.ndarray) -> np.ndarray:
        """The seconds that each message occupies the shared ports on the way."""
        times: np.ndarray = self.betas[level] * messages.size
        if self.machine.hosts is None:
            return times
        amount = self.machine.unit * messages.size
        ends = messages.source, messages.target
        between = self.machine.hosts.times(*ends, amount)
        bytes_only = between - self.machine.hosts.times(*ends, 0)
        return np.where(level == len(self.betas) - 1, bytes_only, times)

    def starts(
        self,
        messages: Messages,
        level: np.ndarray,
        port_times: tuple[np.ndarray, np.ndarray],
        ranks_free: tuple[np.ndarray, np.ndarray],
        shared_free: np.ndarray,
    ) -> np.ndarray:
        """When each message of a step starts; moves `shared_free` on for its bytes."""
        if not self.sharing_levels:
            return waves(messages, port_times, ranks_free)
        ports = self._shared_ports(messages, level)
        outside = ports.max(axis=1, initial=-1) >= 0
        if not outside.any():
            return waves(messages, port_times, ranks_free)
        shared_times = self._shared_times(messages, level)
        source, target = messages.source, messages.target
        if not (_is_distinct(source, self.n) and _is_distinct(target, self.n)):
            return _starts_by_queue(
                messages, port_times, shared_times, ports, ranks_free, shared_free
            )
        start: np.ndarray = np.maximum(ranks_free[0][source], ranks_free[1][target])
        occupied = ports[ports >= 0]
        if _is_distinct(occupied, self.ports):
            for column in ports.T:
                port_free = np.where(column >= 0, shared_free[column], 0.0)
                start = np.maximum(start, port_free)
            for column in ports.T:
                shared_free[column[column >= 0]] = (start + shared_times)[column >= 0]
            return start
        # Every message asks at the start of the step: those inside need no queue.
        start[outside] = _starts_by_queue(
            _selected(messages, outside),
            (port_times[0][outside], port_times[1][outside]),
            shared_times[outside],
            ports[outside],
            ranks_free,
            shared_free,
        )
        return start


def _starts_by_queue(
    messages: Messages,
    port_times: tuple[np.ndarray, np.ndarray],
    shared_times: np.ndarray,
    ports: np.ndarray,
    ranks_free: tuple[np.ndarray, np.ndarray],
    shared_free: np.ndarray,
) -> np.ndarray:
    """When the messages of a step start, by the event queue.

    Moves `shared_free` on to when shared ports are free after the step.
    """
    queue = PortQueue(
        messages,
        port_times,
        shared_times,
        _port_lists(ports),
        ranks_free,
        shared_free,
    )
    queue.run()
    shared_free[:] = queue.shared_free
    return np.array(queue.start)


def _port_lists(ports: np.ndarray) -> list[list[int]]:
    """The shared ports of each message, from rows in which -1 stands for none."""
    if ports.shape[1] == 2:  # one sharing level: both or none
        return [row if row[0] >= 0 else [] for row in ports.tolist()]
    return [[port for port in row if port >= 0] for row in ports.tolist()]


def _selected(messages: Messages, mask: np.ndarray) -> Messages:
    """The messages of a mask, in the order of the senders' and receivers' ports."""
    number = np.cumsum(mask) - 1
    arrival = number[messages.arrival[mask[messages.arrival]]]
    source, target, size = messages.source, messages.target, messages.size
    return Messages(source[mask], target[mask], size[mask], arrival)


def _is_distinct(numbers: np.ndarray, n: int) -> bool:
    """Whether numbers below n are distinct, so that no two messages share a port."""
    return len(numbers) == 0 or int(np.bincount(numbers, minlength=n).max()) == 1
