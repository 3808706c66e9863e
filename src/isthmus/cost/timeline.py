"""When each rank sends, receives and idles: a schedule on a machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Events:
    """One entry per message: who, how much, in which round, from when to when."""

    source: np.ndarray
    target: np.ndarray
    size: np.ndarray
    round: np.ndarray
    start: np.ndarray
    end: np.ndarray

    @classmethod
    def of(cls, rows: Iterable[tuple[float, ...]]) -> Events:
        """The events of such rows."""
        columns = list(zip(*rows, strict=True)) or [()] * 6
        whole = (np.array(column, np.int64) for column in columns[:4])
        return cls(*whole, *(np.array(column, float) for column in columns[4:]))

    def __len__(self) -> int:
        return len(self.source)


#: kinds of what a rank does between messages
WORK, MEETING = 0, 1


@dataclass(frozen=True)
class Work:
    """One entry per time that a rank copies or reduces, or waits at a meeting of its
    node: who, which of these, in which round, from when to when."""

    rank: np.ndarray
    kind: np.ndarray
    round: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.rank)


@dataclass(frozen=True)
class Leg:
    """A part of a critical path: a message from one rank to the other, or what a rank
    does between messages, which is then both."""

    ranks: tuple[int, int]
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """The time of a schedule on a machine, in seconds.

    `events` and `work` are there if they were asked for: they are long.
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
        """The share of the time that ports of ranks neither send nor receive."""
        whole = 2 * self.time * self.n
        busy = float(self.sending.sum() + self.receiving.sum())
        return 1 - busy / whole if whole else 0.0

    def critical_path(self) -> list[int]:
        """The messages, as numbers of events, that the last rank's end waited for.

        Goes back from what ends last, each time to a message whose end is the beginning
        of the present one, or to what a rank did between messages: at one of its ranks,
        else at a port they share. At a meeting it goes to the rank that came last.
        """
        return [i for i in self._critical() if i < len(self._events)]

    def critical_legs(self) -> list[Leg]:
        """The critical path with what ranks did between its messages."""
        path = self._critical() if self.work else self.critical_path()
        source, target, start, end, *_ = self._items
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
    def _items(self) -> tuple[np.ndarray, ...]:
        """Both ranks, start, end, kind and round of each message, and of what ranks did
        between them."""
        e, w = self._events, self.work
        found = e.source, e.target, e.start, e.end, np.full(len(e), -1), e.round
        if not w:
            return found
        more = w.rank, w.rank, w.start, w.end, w.kind, w.round
        return tuple(np.concatenate(x) for x in zip(found, more, strict=True))

    def _critical(self) -> list[int]:
        """The critical path as numbers of items."""
        source, target, start, end, kind, round_ = self._items
        path: list[int] = []
        at = int(end.argmax()) if len(end) else -1
        while at >= 0:
            if kind[at] == MEETING:
                same = np.isclose(end, end[at], rtol=1e-12, atol=0)
                same &= round_ == round_[at]
                own = same & (kind == MEETING)
                # what else ends then: the meeting itself takes no time
                came = same & ~own if (same & ~own).any() else own
                at = int(np.where(came, start, -1.0).argmax())
            path.append(at)
            ends = (source[at], target[at])
            before = np.isclose(end, start[at], rtol=1e-12, atol=0)
            before[path] = False
            touching = np.isin(source, ends) | np.isin(target, ends)
            found = np.flatnonzero(before & touching)
            if not len(found):
                found = np.flatnonzero(before)
            at = int(found[-1]) if len(found) and start[at] > 0 else -1
        return path[::-1]
