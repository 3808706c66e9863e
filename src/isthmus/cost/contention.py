"""An event queue for messages that wait for ports shared by several ranks.

A message asks for its ports when it is next at both ends, and starts as soon as all of
the ports are free. Messages wait for a port in the order of asking, of equals the
message from the lower rank first; a message waiting for a second port leaves the first
free. A message without shared ports starts at once. If the orders of sends and receives
wait for each other, the first sender's next message goes first.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from .messages import Messages

#: in place of a start: the message has not asked for its ports, or has asked and waits
NOT_ASKED, ASKED = -1.0, -2.0


class PortQueue:
    """The messages of a step, the ports of ranks and units, and the messages waiting.

    A message occupies the ports of its sender and receiver for `port_times`, and the
    `shared_ports`, given by numbers, for `shared_times`. The ports of ranks are free
    from `ranks_free` on, shared ports from `shared_free` on.
    """

    def __init__(
        self,
        messages: Messages,
        port_times: tuple[np.ndarray, np.ndarray],
        shared_times: np.ndarray,
        shared_ports: Sequence[Sequence[int]],
        ranks_free: tuple[np.ndarray, np.ndarray],
        shared_free: np.ndarray,
    ) -> None:
        n, numbers = len(ranks_free[0]), np.arange(len(messages))
        self.source: list[int] = messages.source.tolist()
        self.target: list[int] = messages.target.tolist()
        self.send_times: list[float] = port_times[0].tolist()
        self.recv_times: list[float] = port_times[1].tolist()
        self.shared_times: list[float] = shared_times.tolist()
        self.shared_ports = shared_ports
        self.shared_free: list[float] = shared_free.tolist()
        #: of each message, or NOT_ASKED or ASKED
        self.start = [NOT_ASKED] * len(messages)
        self.send_free: list[float] = ranks_free[0].tolist()
        self.recv_free: list[float] = ranks_free[1].tolist()
        #: of each rank the messages that have not started, in the order of its port
        self.sends = _by_rank(messages.source, numbers, n)
        targets_in_order = messages.target[messages.arrival]
        self.recvs = _by_rank(targets_in_order, messages.arrival, n)
        #: when a message asks, its sender and its number
        self.asking: list[tuple[float, int, int]] = []
        #: of each port the messages that wait for it, as in `asking`
        self.waiting: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
        #: when a port that is waited for is free again
        self.releases: list[tuple[float, int]] = []

    def run(self) -> None:
        """Start every message of the step."""
        self._ask([queue[0] for queue in self.sends if queue])
        while True:
            while self.asking or self.releases:
                self._advance()
            if not any(self.sends):
                return
            first = next(queue[0] for queue in self.sends if queue)
            receiver_queue = self.recvs[self.target[first]]
            receiver_queue.remove(first)
            receiver_queue.appendleft(first)
            self._ask([first])

    def _ask(self, heads: list[int]) -> None:
        """Let the messages that are next at both ends ask for their ports."""
        while heads:
            i = heads.pop()
            if self.start[i] != NOT_ASKED:
                continue
            s, t = self.source[i], self.target[i]
            if self.sends[s][0] != i or self.recvs[t][0] != i:
                continue
            ready = max(self.send_free[s], self.recv_free[t])
            if self.shared_ports[i]:
                self.start[i] = ASKED
                heappush(self.asking, (ready, s, i))
            else:
                heads += self._begin(i, ready)

    def _begin(self, i: int, now: float) -> list[int]:
        """Start message i; return the next messages of its sender and receiver."""
        s, t = self.source[i], self.target[i]
        self.start[i] = now
        self.send_free[s] = now + self.send_times[i]
        self.recv_free[t] = now + self.recv_times[i]
        end = now + self.shared_times[i]
        for port in self.shared_ports[i]:
            self.shared_free[port] = end
            if self.waiting[port]:
                heappush(self.releases, (end, port))
        self.sends[s].popleft()
        self.recvs[t].popleft()
        return [queue[0] for queue in (self.sends[s], self.recvs[t]) if queue]

    def _wait(self, asked: tuple[float, int, int], port: int) -> None:
        """Add a message to the waiting messages of a port."""
        if not self.waiting[port]:
            heappush(self.releases, (self.shared_free[port], port))
        heappush(self.waiting[port], asked)

    def _candidates(self) -> tuple[float, list[tuple[float, int, int, int]]]:
        """The next time at which a message can start, and the messages for that time,
        each with the port for which it waited, or -1."""
        now = min(heap[0][0] for heap in (self.asking, self.releases) if heap)
        candidates: list[tuple[float, int, int, int]] = []
        while self.releases and self.releases[0][0] <= now:
            self._call_first(heappop(self.releases)[1], now, candidates)
        while self.asking and self.asking[0][0] <= now:
            heappush(candidates, (*heappop(self.asking), -1))
        return now, candidates

    def _call_first(
        self, port: int, now: float, candidates: list[tuple[float, int, int, int]]
    ) -> None:
        """Make the first message waiting for a free port a candidate."""
        if self.shared_free[port] <= now and self.waiting[port]:
            heappush(candidates, (*heappop(self.waiting[port]), port))

    def _advance(self) -> None:
        """Start the messages that can start next, in the order of asking."""
        now, candidates = self._candidates()
        while candidates:
            ready, s, i, port = heappop(candidates)
            latest = max(self.shared_ports[i], key=self.shared_free.__getitem__)
            if self.shared_free[latest] > now:
                self._wait((ready, s, i), latest)
            else:
                self._ask(self._begin(i, now))
            if port >= 0:
                self._call_first(port, now, candidates)


def _by_rank(ranks: np.ndarray, numbers: np.ndarray, n: int) -> list[deque[int]]:
    """The message numbers of each of n ranks, in order, where `ranks` is sorted."""
    edges = np.searchsorted(ranks, np.arange(n + 1)).tolist()
    in_order = numbers.tolist()
    return [deque(in_order[edges[r] : edges[r + 1]]) for r in range(n)]
