"""Timelines: when each rank sends, receives, works and waits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Events:
    """Arrays with an entry for each message: its ranks, bytes, round and times."""

    source: np.ndarray
    target: np.ndarray
    size: np.ndarray
    round: np.ndarray
    start: np.ndarray
    end: np.ndarray

    @classmethod
    def of(cls, rows: Iterable[tuple[float, ...]]) -> Events:
        """The events of rows, one for each message, with the fields in order."""
        columns = list(zip(*rows, strict=True)) or [()] * 6
        integers = (np.array(column, np.int64) for column in columns[:4])
        return cls(*integers, *(np.array(column, float) for column in columns[4:]))

    def __len__(self) -> int:
        return len(self.source)


#: kinds of activity of a rank between messages: copies and reductions, or waiting
WORK, MEETING = 0, 1


@dataclass(frozen=True)
class Work:
    """Arrays with an entry for each activity of a rank between messages: the rank, the
    kind (WORK for copies and reductions, MEETING), the round and the times."""

    rank: np.ndarray
    kind: np.ndarray
    round: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.rank)


@dataclass(frozen=True)
class Leg:
    """A part of a critical path: a message from rank to rank, or an activity between
    messages, whose rank is then both of `ranks`."""

    ranks: tuple[int, int]
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """The time of a schedule on a machine, in seconds.

    `events` and `work` are None unless the simulation recorded them, since the arrays
    are long.
    """

    finish: np.ndarray
    sent: np.ndarray
    received: np.ndarray
    messages: np.ndarray
    sending: np.ndarray
    receiving: np.ndarray
    computing: np.ndarray
    rounds: int
    events: Events | None = field(default=None, repr=False)
    work: Work | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        """The number of ranks."""
        return len(self.finish)

    @property
    def time(self) -> float:
        """When the last rank is done."""
        return float(self.finish.max(initial=0.0))

    @property
    def idle(self) -> float:
        """The share of the time in which the ports of ranks pass nothing."""
        total = 2 * self.time * self.n
        busy = float(self.sending.sum() + self.receiving.sum())
        return 1 - busy / total if total else 0.0

    def critical_path(self) -> list[int]:
        """The messages, as numbers of events, on which the last rank's end depended.

        Goes back from the segment (a message, or an activity between messages) that
        ends last, each time to a segment whose end is the current segment's beginning:
        at the same rank, else at a shared port. At a meeting the path goes on with the
        last rank to come, because all ranks of the meeting waited for that rank.
        """
        return [i for i in self._critical() if i < len(self._events)]

    def critical_legs(self) -> list[Leg]:
        """The critical path with the activities of ranks between its messages."""
        path = self._critical() if self.work else self.critical_path()
        source, target, start, end, *_ = self._segments
        return [
            Leg((int(source[i]), int(target[i])), float(start[i]), float(end[i]))
            for i in path
        ]

    @property
    def _events(self) -> Events:
        if self.events is None:
            raise ValueError("simulate with record=True to see the critical path")
        return self.events

    @property
    def _segments(self) -> tuple[np.ndarray, ...]:
        """Both ranks, start, end, kind and round of each message and activity."""
        e, w = self._events, self.work
        messages = e.source, e.target, e.start, e.end, np.full(len(e), -1), e.round
        if not w:
            return messages
        activities = w.rank, w.rank, w.start, w.end, w.kind, w.round
        columns = zip(messages, activities, strict=True)
        return tuple(np.concatenate(column) for column in columns)

    def _critical(self) -> list[int]:
        """The critical path as numbers of segments."""
        source, target, start, end, kind, round_ = self._segments
        path: list[int] = []
        current = int(end.argmax()) if len(end) else -1
        while current >= 0:
            if kind[current] == MEETING:
                at_end = np.isclose(end, end[current], rtol=1e-12, atol=0)
                at_end &= round_ == round_[current]
                meetings = at_end & (kind == MEETING)
                # Other segments end then, too, if the meeting itself takes no time.
                others = at_end & ~meetings
                last = others if others.any() else meetings
                current = int(np.where(last, start, -1.0).argmax())
            path.append(current)
            ranks = (source[current], target[current])
            before = np.isclose(end, start[current], rtol=1e-12, atol=0)
            before[path] = False
            touching = np.isin(source, ranks) | np.isin(target, ranks)
            previous = np.flatnonzero(before & touching)
            if not len(previous):
                previous = np.flatnonzero(before)
            has_previous = len(previous) and start[current] > 0
            current = int(previous[-1]) if has_previous else -1
        return path[::-1]
