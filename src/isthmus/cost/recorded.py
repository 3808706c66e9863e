"""A timeline of a real run, from what each rank saw of its messages."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from .timeline import Events, Timeline

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class End:
    """One end of a message: who is at the other, when it was started, when complete."""

    sends: bool
    peer: int
    size: int
    round: int
    start: float
    end: float


@dataclass(frozen=True)
class Log:
    """What one rank did in one call, in seconds of a clock that all ranks share.

    `ends` are in the order of rounds, and of messages in a round.
    """

    begin: float
    end: float
    ends: tuple[End, ...]


@dataclass(frozen=True)
class Recorded(Timeline):
    """A timeline as it was. Ports may be busy with several messages at once."""

    def critical_path(self) -> list[int]:
        """The messages, as numbers of events, that the last rank's end waited for.

        Goes back from the message that ends last, each time to the one that was the
        last to arrive at its sender before it was sent; so it is a likely path, where
        that of a simulation is a certain one.
        """
        e = self.events
        if e is None or not len(e):
            return []
        path = [int(e.end.argmax())]
        while True:
            at = path[-1]
            before = (e.end <= e.start[at]) & (e.target == e.source[at])
            if not before.any():
                return path[::-1]
            path.append(int(np.where(before, e.end, -np.inf).argmax()))


def timeline(logs: Sequence[Log]) -> Recorded:
    """The logs of all ranks as one timeline, which begins with the first of them.

    A message lasts from when both its ends were ready until its receiver had it: an
    eager send is complete for its sender long before that.
    """
    zero = min(log.begin for log in logs)
    finish = np.array([log.end for log in logs]) - zero
    return of_events(_events(logs, zero), finish)


def of_events(events: Events, finish: np.ndarray) -> Recorded:
    """The timeline of messages, and of when each rank was done."""
    n = len(finish)
    sent = np.bincount(events.source, events.size, n)
    received = np.bincount(events.target, events.size, n)
    count = np.bincount(events.source, minlength=n).astype(float)
    sending, receiving = (
        np.array([_covered(events, who == r) for r in range(n)])
        for who in (events.source, events.target)
    )
    rounds = len(np.unique(events.round))
    idle = np.zeros(n)
    return Recorded(
        finish, sent, received, count, sending, receiving, idle, rounds, events
    )


def _events(logs: Sequence[Log], zero: float) -> Events:
    """Both ends of each message together; those of a pair match in their order."""
    receives: dict[tuple[int, int], deque[End]] = defaultdict(deque)
    for r, log in enumerate(logs):
        for x in log.ends:
            if not x.sends:
                receives[x.peer, r].append(x)
    rows = []
    for r, log in enumerate(logs):
        for x in log.ends:
            if x.sends:
                y = receives[r, x.peer].popleft()
                start = max(x.start, y.start) - zero
                rows.append((r, x.peer, x.size, x.round, start, y.end - zero))
    if any(receives.values()):
        raise ValueError("a message was received that nobody sent")
    return Events.of(rows)


def _covered(e: Events, some: np.ndarray) -> float:
    """The time in which at least one of some messages is under way."""
    times: list[list[float]] = [e.start[some].tolist(), e.end[some].tolist()]
    stretches = zip(*times, strict=True)
    return sum(end - start for start, end in merged(stretches))


def merged(intervals: Iterable[tuple[Number, Number]]) -> list[tuple[Number, Number]]:
    """Intervals in order, those that overlap as one."""
    found: list[tuple[Number, Number]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found
