"""Messages that wait for ports which several ranks share: an event queue.

A message asks for its ports when it is next at both its ends, and starts as soon as
all of them are free. Where several wait for a port, the one that asked first goes
first, of equals the one from the lower rank; one that waits for a second port leaves
the first to others. A message without shared ports starts when it asks.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from ..verify.errors import Deadlock

#: The round of a message that does not come.
NEVER = 1 << 62
#: The start of a message that has not asked for its ports, or has but waits.
SILENT, ASKED = -1.0, -2.0


@dataclass(frozen=True)
class Traffic:
    """Messages in the order of their senders' ports: by rank, then by round.

    Each `lasts` so long, and `holds` its shared ports so long. `arrival` lists them in
    the order of the receivers' ports; `ports` are the numbers of the shared ones.
    `pauses` are, for a rank, rounds and the seconds after them.
    """

    source: np.ndarray
    target: np.ndarray
    arrival: np.ndarray
    round: np.ndarray
    lasts: np.ndarray
    holds: np.ndarray
    ports: Sequence[Sequence[int]]
    pauses: Mapping[int, deque[tuple[int, float]]] = field(default_factory=dict)


def _queues(who: np.ndarray, numbers: np.ndarray, n: int) -> list[Iterator[int]]:
    """The messages of each rank, in order."""
    edges = np.searchsorted(who, np.arange(n + 1)).tolist()
    found = numbers.tolist()
    return [iter(found[edges[r] : edges[r + 1]]) for r in range(n)]


class Queue:
    """Where everything stands: each rank, each port, and who waits for which."""

    def __init__(self, traffic: Traffic, now: np.ndarray, free: np.ndarray) -> None:
        n, count = len(now), len(traffic.source)
        self.source: list[int] = traffic.source.tolist()
        self.target: list[int] = traffic.target.tolist()
        self.round: list[int] = [*traffic.round.tolist(), NEVER]
        self.lasts: list[float] = traffic.lasts.tolist()
        self.holds: list[float] = traffic.holds.tolist()
        self.ports, self.pauses = traffic.ports, traffic.pauses
        self.free: list[float] = free.tolist()
        self.start = [SILENT] * count
        self.sends: list[float] = now.tolist()
        self.recvs: list[float] = now.tolist()
        self.out = _queues(traffic.source, np.arange(count), n)
        self.into = _queues(traffic.target[traffic.arrival], traffic.arrival, n)
        self.next_out = [next(q, -1) for q in self.out]
        self.next_in = [next(q, -1) for q in self.into]
        self.at = [-1] * n
        self.asking: list[tuple[float, int, int]] = []
        self.waiting: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
        self.releases: list[tuple[float, int]] = []

    def run(self) -> None:
        """Move every message."""
        for r in range(len(self.at)):
            self._enter(r)
        self._look([i for i in self.next_out if i >= 0])
        while self.asking or self.releases:
            self._advance()
        if self.start and min(self.start) < 0:
            raise Deadlock("the orders of sends and receives wait for each other")

    def _enter(self, r: int) -> bool:
        """Let a rank that is done go on to the round of its next message."""
        at = min(self.round[self.next_out[r]], self.round[self.next_in[r]])
        if at == self.at[r]:
            return False
        now = max(self.sends[r], self.recvs[r])
        pauses = self.pauses.get(r)
        while pauses and pauses[0][0] < at:
            now += pauses.popleft()[1]
        self.sends[r] = self.recvs[r] = now
        self.at[r] = at
        return True

    def _look(self, heads: list[int]) -> None:
        """Let messages ask for their ports that are next at both ends."""
        while heads:
            i = heads.pop()
            if i < 0 or self.start[i] != SILENT:
                continue
            s, t, k = self.source[i], self.target[i], self.round[i]
            if self.next_out[s] != i or self.next_in[t] != i:
                continue
            if self.at[s] != k or self.at[t] != k:
                continue
            ready = max(self.sends[s], self.recvs[t])
            if self.ports[i]:
                self.start[i] = ASKED
                heappush(self.asking, (ready, s, i))
            else:
                heads += self._begin(i, ready)

    def _begin(self, i: int, now: float) -> list[int]:
        """Start a message; the messages that are next at its ends."""
        s, t = self.source[i], self.target[i]
        self.start[i] = now
        self.sends[s] = self.recvs[t] = now + self.lasts[i]
        end = now + self.holds[i]
        for port in self.ports[i]:
            self.free[port] = end
            if self.waiting[port]:
                heappush(self.releases, (end, port))
        self.next_out[s] = next(self.out[s], -1)
        self.next_in[t] = next(self.into[t], -1)
        heads = [self.next_out[s], self.next_in[t]]
        if self._enter(s):
            heads.append(self.next_in[s])
        if self._enter(t):
            heads.append(self.next_out[t])
        return heads

    def _wait(self, asked: tuple[float, int, int], port: int) -> None:
        """Let a message wait for a port."""
        if not self.waiting[port]:
            heappush(self.releases, (self.free[port], port))
        heappush(self.waiting[port], asked)

    def _here(self) -> tuple[float, list[tuple[float, int, int, int]]]:
        """The next time something can start, and what, with the port it waited for."""
        now = min(q[0][0] for q in (self.asking, self.releases) if q)
        found: list[tuple[float, int, int, int]] = []
        while self.releases and self.releases[0][0] <= now:
            self._pull(heappop(self.releases)[1], now, found)
        while self.asking and self.asking[0][0] <= now:
            heappush(found, (*heappop(self.asking), -1))
        return now, found

    def _pull(
        self, port: int, now: float, found: list[tuple[float, int, int, int]]
    ) -> None:
        """Call the first that waits for a port, if the port is free."""
        if self.free[port] <= now and self.waiting[port]:
            heappush(found, (*heappop(self.waiting[port]), port))

    def _advance(self) -> None:
        """Start what can start next, in the order of asking."""
        now, found = self._here()
        while found:
            ready, s, i, port = heappop(found)
            latest = max(self.ports[i], key=self.free.__getitem__)
            if self.free[latest] > now:
                self._wait((ready, s, i), latest)
            else:
                self._look(self._begin(i, now))
            if port >= 0:
                self._pull(port, now, found)
