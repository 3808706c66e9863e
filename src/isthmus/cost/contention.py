"""Messages that wait for ports which several ranks share: an event queue.

A message asks for its ports when it is next at both its ends, and starts as soon as
all of them are free. Where several wait for a port, the one that asked first goes
first, of equals the one from the lower rank; one that waits for a second port leaves
the first to others. A message without shared ports starts when it asks. If the orders
of sends and receives wait for each other, the first sender's next message goes first.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from .messages import Messages

#: The start of a message that has not asked for its ports, or has but waits.
SILENT, ASKED = -1.0, -2.0


def _queues(who: np.ndarray, numbers: np.ndarray, n: int) -> list[deque[int]]:
    """The messages of each rank, in order."""
    edges = np.searchsorted(who, np.arange(n + 1)).tolist()
    each = numbers.tolist()
    return [deque(each[edges[r] : edges[r + 1]]) for r in range(n)]


class Queue:
    """Where everything stands: each rank, each port, and who waits for which.

    Each message takes the ports of its ends as long as `held` says, and its shared
    `ports`, by their numbers, as long as `holds` says. The ports of ranks are free from
    `now` on, shared ones from `free` on.
    """

    def __init__(
        self,
        m: Messages,
        held: tuple[np.ndarray, np.ndarray],
        holds: np.ndarray,
        ports: Sequence[Sequence[int]],
        now: tuple[np.ndarray, np.ndarray],
        free: np.ndarray,
    ) -> None:
        n = len(now[0])
        self.source: list[int] = m.source.tolist()
        self.target: list[int] = m.target.tolist()
        self.held: tuple[list[float], list[float]] = held[0].tolist(), held[1].tolist()
        self.holds: list[float] = holds.tolist()
        self.ports = ports
        self.free: list[float] = free.tolist()
        self.start = [SILENT] * len(m)
        self.sends: list[float] = now[0].tolist()
        self.recvs: list[float] = now[1].tolist()
        self.out = _queues(m.source, np.arange(len(m)), n)
        self.into = _queues(m.target[m.arrival], m.arrival, n)
        self.asking: list[tuple[float, int, int]] = []
        self.waiting: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
        self.releases: list[tuple[float, int]] = []

    def run(self) -> None:
        """Move every message."""
        self._look([queue[0] for queue in self.out if queue])
        while True:
            while self.asking or self.releases:
                self._advance()
            if not any(self.out):
                return
            first = next(queue[0] for queue in self.out if queue)
            into = self.into[self.target[first]]
            into.remove(first)
            into.appendleft(first)
            self._look([first])

    def _look(self, heads: list[int]) -> None:
        """Let messages ask for their ports that are next at both ends."""
        while heads:
            i = heads.pop()
            if self.start[i] != SILENT:
                continue
            s, t = self.source[i], self.target[i]
            if self.out[s][0] != i or self.into[t][0] != i:
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
        self.sends[s] = now + self.held[0][i]
        self.recvs[t] = now + self.held[1][i]
        end = now + self.holds[i]
        for port in self.ports[i]:
            self.free[port] = end
            if self.waiting[port]:
                heappush(self.releases, (end, port))
        self.out[s].popleft()
        self.into[t].popleft()
        return [queue[0] for queue in (self.out[s], self.into[t]) if queue]

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
