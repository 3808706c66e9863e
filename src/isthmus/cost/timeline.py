"""When each rank sends, receives and idles: a schedule on a machine."""

from __future__ import annotations

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

        Goes back from the message that ends last, each time to one whose end is the
        beginning of the present one: at either of its ranks, else at a port they share.
        """
        if self.events is None:
            raise ValueError("simulate with record=True to see the critical path")
        e = self.events
        path: list[int] = []
        at = int(e.end.argmax()) if len(e) else -1
        while at >= 0:
            path.append(at)
            ends = (e.source[at], e.target[at])
            before = np.isclose(e.end, e.start[at], rtol=1e-12, atol=0)
            before[path] = False
            touching = np.isin(e.source, ends) | np.isin(e.target, ends)
            found = np.flatnonzero(before & touching)
            if not len(found):
                found = np.flatnonzero(before)
            at = int(found[-1]) if len(found) and e.start[at] > 0 else -1
        return path[::-1]
