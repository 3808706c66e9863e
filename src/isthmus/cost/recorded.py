"""The timeline of a real run, from the times at which ranks saw their messages."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from .timeline import Events, Timeline

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class MessageEnd:
    """A send or a receive of a rank: the peer, the start and the completion."""

    sends: bool
    peer: int
    size: int
    round: int
    start: float
    end: float


@dataclass(frozen=True)
class Log:
    """The messages of a rank in a call, in seconds of a clock that all ranks share.

    `ends` are in the order of rounds, and of messages in a round.
    """

    begin: float
    end: float
    ends: tuple[MessageEnd, ...]


@dataclass(frozen=True)
class Recorded(Timeline):
    """A timeline of a real run, in which ports may pass several messages at once."""

    def critical_path(self) -> list[int]:
        """The messages, as numbers of events, on which the last rank's end depended.

        Goes back from the last message to end, each time to the last message received
        by the sender before the send. The path is likely, where the path of a
        simulation is certain, since a log does not say what the rank waited for.
        """
        e = self.events
        if e is None or not len(e):
            return []
        path = [int(e.end.argmax())]
        while True:
            current = path[-1]
            before = (e.end <= e.start[current]) & (e.target == e.source[current])
            if not before.any():
                return path[::-1]
            path.append(int(np.where(before, e.end, -np.inf).argmax()))


def timeline(logs: Sequence[Log]) -> Recorded:
    """The logs of all ranks as one timeline, from the beginning of the first log.

    A message lasts from when both ends are ready until the receive is complete, since
    an eager send completes long before the message arrives.
    """
    zero = min(log.begin for log in logs)
    finish = np.array([log.end for log in logs]) - zero
    return of_events(_events(logs, zero), finish)


def of_events(events: Events, finish: np.ndarray) -> Recorded:
    """The timeline of messages, on ranks that were done at `finish`."""
    n = len(finish)
    sent = np.bincount(events.source, events.size, n)
    received = np.bincount(events.target, events.size, n)
    count = np.bincount(events.source, minlength=n).astype(float)
    sending, receiving = (
        np.array([_covered(events, ranks == r) for r in range(n)])
        for ranks in (events.source, events.target)
    )
    rounds = len(np.unique(events.round))
    idle = np.zeros(n)
    return Recorded(
        finish, sent, received, count, sending, receiving, idle, rounds, events
    )


def _events(logs: Sequence[Log], zero: float) -> Events:
    """The messages of all ranks: sends and receives of a pair match in order."""
    receives: dict[tuple[int, int], deque[MessageEnd]] = defaultdict(deque)
    for r, log in enumerate(logs):
        for end in log.ends:
            if not end.sends:
                receives[end.peer, r].append(end)
    rows = []
    for r, log in enumerate(logs):
        for send in (end for end in log.ends if end.sends):
            recv = receives[r, send.peer].popleft()
            start = max(send.start, recv.start) - zero
            rows.append((r, send.peer, send.size, send.round, start, recv.end - zero))
    if any(receives.values()):
        raise ValueError("a message was received that nobody sent")
    return Events.of(rows)


def _covered(events: Events, mask: np.ndarray) -> float:
    """The time during which messages of a mask are under way."""
    starts: list[float] = events.start[mask].tolist()
    ends: list[float] = events.end[mask].tolist()
    intervals = merged(zip(starts, ends, strict=True))
    return sum(end - start for start, end in intervals)


def merged(intervals: Iterable[tuple[Number, Number]]) -> list[tuple[Number, Number]]:
    """Intervals in order, with overlapping intervals merged."""
    disjoint: list[tuple[Number, Number]] = []
    for start, end in sorted(intervals):
        if disjoint and start <= disjoint[-1][1]:
            disjoint[-1] = disjoint[-1][0], max(disjoint[-1][1], end)
        else:
            disjoint.append((start, end))
    return disjoint
