"""The alpha-beta model: single port, full duplex, every pair connected.

A message of m bytes takes alpha + m beta, and for all that time the send port of its
sender and the receive port of its receiver. Within a round the sends take the port in
their order, and so do the receives; a rank is in its next round when all is done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..schedules.hosts import Hosts
from ..schedules.schedule import Schedule
from ..verify.errors import Deadlock
from .messages import Messages, steps
from .tally import Tally
from .timeline import Timeline


@dataclass(frozen=True)
class AlphaBeta:
    """A machine with start-up time alpha, time per byte beta, and per byte reduced
    gamma; `unit` is the bytes of an element."""

    alpha: float
    beta: float
    gamma: float = 0.0
    unit: int = 1

    def duration(self, m: Messages) -> np.ndarray:
        """How long each message takes."""
        times: np.ndarray = self.alpha + self.beta * self.unit * m.size
        return times

    def held(self, m: Messages) -> tuple[np.ndarray, np.ndarray]:
        """How long each message takes the send port and the receive port."""
        return (times := self.duration(m)), times

    def simulate(self, schedule: Schedule, record: bool = False) -> Timeline:
        """The timeline of all ranks."""
        return simulated(self, schedule, record)


@dataclass(frozen=True)
class Unequal:
    """Hosts with start-up times and times per byte, one for each rank: a message takes
    what the slower of its two ends takes, but the port of each end only what that end
    takes: in a round, a fast host sends to several slow ones at once. `gamma` is the
    time per byte reduced, `unit` the bytes of an element."""

    hosts: Hosts
    gamma: float = 0.0
    unit: int = 1

    def duration(self, m: Messages) -> np.ndarray:
        """How long each message takes."""
        return self.hosts.times(m.source, m.target, self.unit * m.size)

    def held(self, m: Messages) -> tuple[np.ndarray, np.ndarray]:
        """How long each message takes the send port and the receive port."""
        size = self.unit * m.size
        return (
            self.hosts.times(m.source, m.source, size),
            self.hosts.times(m.target, m.target, size),
        )

    def simulate(self, schedule: Schedule, record: bool = False) -> Timeline:
        """The timeline of all ranks."""
        if len(self.hosts.alphas) < schedule.n:
            raise ValueError(f"the machine has fewer hosts than {schedule.n} ranks")
        return simulated(self, schedule, record)


def simulated(model: AlphaBeta | Unequal, schedule: Schedule, record: bool) -> Timeline:
    """The timeline of all ranks, round by round."""
    if schedule.shares_memory:
        raise ValueError("ranks that share memory need a model with nodes")
    now = np.zeros(schedule.n)
    tally = Tally(schedule.n, model.unit, record)
    for k, step in enumerate(steps(schedule.lanes(), schedule.n)):
        m = step.messages
        lasts = model.duration(m)
        held = model.held(m)
        start, done = ports(m, lasts, now, *held)
        pause = model.gamma * model.unit * step.reduced
        tally.add(k, m, start, lasts, pause, held)
        now = done + pause
    return tally.timeline(now)


def _heads(who: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each rank's messages begin and end in a list sorted by rank."""
    edges = np.searchsorted(who, np.arange(n + 1))
    return edges[:-1].copy(), edges[1:]


def ports(
    m: Messages, lasts: np.ndarray, now: np.ndarray, out: np.ndarray, into: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """When each message starts, and when all messages of each rank have arrived; they
    take the send ports as long as `out` says, the receive ports as `into` does.

    In waves: every message that is next at both its ports moves.
    """
    n = len(now)
    sends, recvs, done = now.copy(), now.copy(), now.copy()
    start = np.zeros(len(m))
    by_target = m.arrival
    next_send, last_send = _heads(m.source, n)
    next_recv, last_recv = _heads(m.target[by_target], n)
    left = len(m)
    while left:
        senders = np.flatnonzero(next_send < last_send)
        heads = next_send[senders]
        targets = m.target[heads]
        ready = by_target[np.minimum(next_recv[targets], len(m) - 1)] == heads
        ready &= next_recv[targets] < last_recv[targets]
        moved = heads[ready]
        if not len(moved):
            raise Deadlock("the orders of sends and receives wait for each other")
        source, target = m.source[moved], m.target[moved]
        begin = np.maximum(sends[source], recvs[target])
        start[moved] = begin
        sends[source], recvs[target] = begin + out[moved], begin + into[moved]
        for end in (source, target):
            done[end] = np.maximum(done[end], begin + lasts[moved])
        next_send[source] += 1
        next_recv[target] += 1
        left -= len(moved)
    return start, done
