"""The LogGOPS model, event for event as LogGOPSim simulates it.

A send of s bytes at t keeps its rank's processor until t + o + (s-1)O and its send port
until t + g + (s-1)G; the first byte arrives at t + o + L. An arrival is taken in when
processor and receive port are free, and keeps the processor for o + (s-1)max(O, G) and
the port for g + (s-1)G. So one message alone takes 2o + L + (s-1)G, and a rank that
takes in a long message cannot start a send: this is not a full-duplex machine.

A send of at most S bytes is done when it starts (eager), a longer one when its receive
is matched (rendezvous). The transfer itself never waits for the receive.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, fields
from heapq import heappop, heappush

import numpy as np

from ..schedules.ir import Comm, Library, Reduce, Round, Send
from ..schedules.program import per_rank
from ..schedules.schedule import Schedule
from ..verify.errors import BadMessage, Deadlock
from .timeline import Events, Timeline

# In the order in which the steps of a round are queued; an arrival is nobody's step.
SEND, RECV, CALC, ARRIVAL = range(4)


@dataclass(slots=True, eq=False)
class Step:
    """A send, a receive or a calculation (its peer: itself, its size: nanoseconds)."""

    kind: int
    rank: int
    peer: int
    size: float
    round: int
    start: float = 0
    end: float = 0


Stages = list[list[list[Step]]]


@dataclass(frozen=True)
class LogGOPS:
    """A machine in LogGOPSim's parameters, whose times are nanoseconds.

    Latency L, overhead o and O per byte, gap g and G per byte, rendezvous above S
    bytes; gamma is the time to reduce a byte, `unit` the bytes of an element. Whole
    numbers are simulated exactly, and are all that LogGOPSim takes; the timeline is in
    seconds, its `finish` the time when a rank's processor is free for good.
    """

    L: float
    o: float
    g: float
    G: float
    O: float = 0  # noqa: E741
    S: float = 65535
    gamma: float = 0
    unit: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value >= 0:
                raise ValueError(f"{field.name} = {value}: must be at least 0")

    def simulate(self, schedule: Schedule, record: bool = False) -> Timeline:
        """The timeline of all ranks."""
        run = _Run(self, stages(schedule, self.unit, self.gamma))
        run.all()
        return run.timeline(record)


class _Host:
    """One rank: when it is free, how far it is, and what waits for it."""

    def __init__(self, rank: int, stages: list[list[Step]]) -> None:
        self.rank = rank
        self.cpu: float = 0
        self.send_port: float = 0
        self.recv_port: float = 0
        self.computed: float = 0
        self.stages = iter(stages)
        self.open = 0
        self.done = False
        self.posted: dict[int, deque[Step]] = defaultdict(deque)
        self.arrived: dict[int, deque[Step]] = defaultdict(deque)
        self.waiting: tuple[list[tuple[int, Step]], ...] = ([], [], [], [])
        self.alarm: list[tuple[float, int] | None] = [None] * 4

    def free(self, kind: int) -> float:
        """When what a step of this kind needs is free."""
        if kind == SEND:
            return max(self.cpu, self.send_port)
        if kind == ARRIVAL:
            return max(self.cpu, self.recv_port)
        return self.cpu


class _Run:
    """All ranks, and the events to come by time, then by order of their making.

    A step that finds its rank busy tries again when the rank is free, still in its old
    place. Of those that wait for the same, only the first has an event: the alarm.
    """

    def __init__(self, model: LogGOPS, stages: Stages) -> None:
        self.model = model
        self.hosts = [_Host(rank, mine) for rank, mine in enumerate(stages)]
        self.queue: list[tuple[float, int, int, int, Step | None]] = []
        self.made = 0
        self.now: float = 0
        self.messages: list[Step] = []

    def all(self) -> None:
        """Take event after event."""
        for host in self.hosts:
            self.release(host)
        while self.queue:
            self.now, order, kind, rank, step = heappop(self.queue)
            host = self.hosts[rank]
            if step is None:
                self.ring(host, kind, order)
            elif kind == RECV or host.free(kind) <= self.now:
                self.take(host, kind, step)
            else:
                self.wait(host, kind, order, step)
        self.check()

    def check(self) -> None:
        """Raise if anything is left."""
        stuck = [host.rank for host in self.hosts if not host.done]
        if stuck:
            raise Deadlock(f"ranks {stuck[:8]} wait for messages nobody sends")
        left = [host.rank for host in self.hosts if any(host.arrived.values())]
        if left:
            raise BadMessage(f"ranks {left[:8]} get messages they do not receive")

    def push(self, time: float, kind: int, host: _Host, step: Step) -> None:
        heappush(self.queue, (time, self.made, kind, host.rank, step))
        self.made += 1

    def release(self, host: _Host) -> None:
        """Queue a rank's next stage."""
        stage = next(host.stages, None)
        if stage is None:
            host.done = True
            return
        host.open = len(stage)
        for step in stage:
            self.push(host.free(step.kind), step.kind, host, step)

    def wait(self, host: _Host, kind: int, order: int, step: Step) -> None:
        """Keep a step until its rank is free."""
        heappush(host.waiting[kind], (order, step))
        if host.waiting[kind][0][0] == order:
            self.set_alarm(host, kind)

    def set_alarm(self, host: _Host, kind: int) -> None:
        """Ring for the first of those that wait when its rank is free."""
        if not host.waiting[kind]:
            host.alarm[kind] = None
            return
        at = host.free(kind), host.waiting[kind][0][0]
        host.alarm[kind] = at
        heappush(self.queue, (*at, kind, host.rank, None))

    def ring(self, host: _Host, kind: int, order: int) -> None:
        """Take the first of those that wait, unless the rank is busy once more."""
        if host.alarm[kind] != (self.now, order):
            return
        if host.free(kind) <= self.now:
            self.take(host, kind, heappop(host.waiting[kind])[1])
        self.set_alarm(host, kind)

    def take(self, host: _Host, kind: int, step: Step) -> None:
        """Do a step whose rank is free."""
        (self.send, self.post, self.calculate, self.arrive)[kind](host, step)

    def calculate(self, host: _Host, step: Step) -> None:
        host.cpu = self.now + step.size
        host.computed += step.size
        self.finish(host)

    def send(self, host: _Host, step: Step) -> None:
        m, more = self.model, max(step.size - 1, 0)
        host.cpu = self.now + m.o + more * m.O
        host.send_port = self.now + m.g + more * m.G
        step.start = self.now
        self.messages.append(step)
        self.push(self.now + m.o + m.L, ARRIVAL, self.hosts[step.peer], step)
        if step.size <= m.S:
            self.finish(host)

    def arrive(self, host: _Host, message: Step) -> None:
        m, more = self.model, max(message.size - 1, 0)
        host.cpu = message.end = self.now + m.o + more * max(m.O, m.G)
        host.recv_port = self.now + m.g + more * m.G
        if host.posted[message.rank]:
            self.match(host, host.posted[message.rank].popleft(), message)
        else:
            host.arrived[message.rank].append(message)

    def post(self, host: _Host, recv: Step) -> None:
        if host.arrived[recv.peer]:
            self.match(host, recv, host.arrived[recv.peer].popleft())
        else:
            host.posted[recv.peer].append(recv)

    def match(self, host: _Host, recv: Step, message: Step) -> None:
        """End a receive, and the send if it waited for that."""
        if recv.size != message.size:
            raise BadMessage(
                f"rank {host.rank}, round {recv.round}: expects {recv.size} bytes from "
                f"rank {message.rank}, gets {message.size}"
            )
        message.end = max(message.end, self.now)
        ended = [host]
        if message.size > self.model.S:
            sender = self.hosts[message.rank]
            sender.cpu = max(sender.cpu, self.now)
            ended.append(sender)
        for each in sorted(ended, key=lambda h: h.rank):
            self.finish(each)

    def finish(self, host: _Host) -> None:
        """Count a step as done; after the last of its stage the next is free."""
        host.open -= 1
        if not host.open:
            self.release(host)

    def timeline(self, record: bool) -> Timeline:
        """What happened, in seconds."""
        found, n = _events(self.messages), len(self.hosts)
        finish = np.array([host.cpu for host in self.hosts], float)
        sending, receiving = self.busy(found, finish.max(initial=0.0))
        return Timeline(
            finish / 1e9,
            np.bincount(found.source, found.size, n),
            np.bincount(found.target, found.size, n),
            np.bincount(found.source, minlength=n).astype(float),
            sending / 1e9,
            receiving / 1e9,
            np.array([host.computed for host in self.hosts], float) / 1e9,
            len(np.unique(found.round)),
            found if record else None,
        )

    def busy(self, found: Events, end: float) -> tuple[np.ndarray, np.ndarray]:
        """For how long each rank could not send another message, or take one in."""
        m, n = self.model, len(self.hosts)
        more = np.maximum(found.size - 1, 0)
        sends = np.maximum(m.o + more * m.O, m.g + more * m.G)
        recvs = np.maximum(m.o + more * max(m.O, m.G), m.g + more * m.G)
        after_send = np.array([host.send_port for host in self.hosts]) - end
        after_recv = np.array([host.recv_port for host in self.hosts]) - end
        return (
            np.bincount(found.source, sends, n) - np.maximum(after_send, 0),
            np.bincount(found.target, recvs, n) - np.maximum(after_recv, 0),
        )


def _events(messages: list[Step]) -> Events:
    """All messages, in the order in which they were sent, in seconds."""
    return Events.of(
        (x.rank, x.peer, x.size, x.round, x.start / 1e9, x.end / 1e9) for x in messages
    )


def _step(c: Comm, rank: int, k: int, unit: int) -> Step:
    if isinstance(c, Library):
        raise ValueError("the stage 'library' has no time: nobody knows what it does")
    kind, peer = (SEND, c.to) if isinstance(c, Send) else (RECV, c.frm)
    return Step(kind, rank, peer, unit * sum(s.size for s in c.data), k)


def _parts(
    r: Round, rank: int, k: int, unit: int, gamma: float
) -> Iterator[list[Step]]:
    """The messages of a round, sends first, then its calculations."""
    messages = [_step(c, rank, k, unit) for c in r.comm]
    yield sorted(messages, key=lambda step: step.kind)
    reduced = (s.dst.size for s in r.then if isinstance(s, Reduce))
    yield [Step(CALC, rank, rank, gamma * unit * n, k) for n in reduced]


def stages(schedule: Schedule, unit: int, gamma: float) -> Stages:
    """The steps of every rank; each stage is free once the one before is done.

    An element is `unit` bytes, and a byte takes gamma to reduce.
    """
    found: Stages = [[] for _ in range(schedule.n)]
    for ranks, program in schedule.lanes():
        for k, r in enumerate(program):
            for rank, mine in zip(ranks, per_rank([r], len(ranks)), strict=True):
                for one in mine:
                    parts = _parts(one, rank, k, unit, gamma)
                    found[rank] += (part for part in parts if part)
    return found
