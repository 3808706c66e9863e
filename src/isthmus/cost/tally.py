"""Counting what each rank does while a schedule is simulated."""

from __future__ import annotations

import numpy as np

from .messages import Messages
from .timeline import MEETING, WORK, Events, Timeline, Work


class Tally:
    """What each rank sent, received and reduced, and each message if recorded."""

    def __init__(self, n: int, unit: int, record: bool) -> None:
        self.n, self.unit, self.record = n, unit, record
        self.sums = np.zeros((6, n))
        self.rounds = 0
        self.events: list[tuple[np.ndarray, ...]] = []
        self.locals: list[tuple[np.ndarray, ...]] = []

    def add(
        self,
        k: int,
        m: Messages,
        start: np.ndarray,
        lasts: np.ndarray,
        computing: np.ndarray,
        held: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Count the messages of round k, how long they hold the ports that send and
        receive them, if not as long as they last, and the time of what follows."""
        amount = m.size * self.unit
        whom = (m.source, m.target, m.source, m.source, m.target)
        what = (amount, amount, np.ones(len(m)), *(held or (lasts, lasts)))
        for row, (who, much) in enumerate(zip(whom, what, strict=True)):
            self.sums[row] += np.bincount(who, much, self.n)
        self.sums[5] += computing
        self.rounds += bool(len(m))
        if self.record:
            place = np.full(len(m), k)
            self.events.append(
                (m.source, m.target, amount, place, start, start + lasts)
            )

    def local(
        self,
        k: int,
        begun: np.ndarray,
        early: np.ndarray,
        after: np.ndarray,
        late: np.ndarray,
        gone_on: np.ndarray,
    ) -> None:
        """What ranks do in round k between messages: local steps from when on and for
        how long, twice, and until when they then wait for their node."""
        if not self.record:
            return
        spans = (begun, begun + early), (after, after + late), (after + late, gone_on)
        for kind, (start, end) in zip((WORK, WORK, MEETING), spans, strict=True):
            who = np.flatnonzero(end > start)
            same = np.full(len(who), kind), np.full(len(who), k)
            self.locals.append((who, *same, start[who], end[who]))

    def timeline(self, finish: np.ndarray) -> Timeline:
        """All of it."""
        none = (*(np.zeros(0, np.int64),) * 4, *(np.zeros(0),) * 2)
        columns = zip(none, *self.events, strict=True)
        events = Events(*map(np.concatenate, columns)) if self.record else None
        blank = (*(np.zeros(0, np.int64),) * 3, *(np.zeros(0),) * 2)
        local = zip(blank, *self.locals, strict=True)
        work = Work(*map(np.concatenate, local)) if self.record else None
        sent, received, count, sending, receiving, computing = self.sums
        busy = sending, receiving, computing
        return Timeline(finish, sent, received, count, *busy, self.rounds, events, work)
