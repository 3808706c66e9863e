"""Counting what each rank does while a schedule is simulated."""

from __future__ import annotations

import numpy as np

from .messages import Messages
from .timeline import Events, Timeline


class Tally:
    """What each rank sent, received and reduced, and each message if recorded."""

    def __init__(self, n: int, unit: int, record: bool) -> None:
        self.n, self.unit, self.record = n, unit, record
        self.sums = np.zeros((6, n))
        self.rounds = 0
        self.events: list[tuple[np.ndarray, ...]] = []

    def add(
        self,
        k: int,
        m: Messages,
        start: np.ndarray,
        lasts: np.ndarray,
        computing: np.ndarray,
    ) -> None:
        """Count the messages of round k, and the time of what follows them."""
        amount = m.size * self.unit
        whom = (m.source, m.target, m.source, m.source, m.target)
        what = (amount, amount, np.ones(len(m)), lasts, lasts)
        for row, (who, much) in enumerate(zip(whom, what, strict=True)):
            self.sums[row] += np.bincount(who, much, self.n)
        self.sums[5] += computing
        self.rounds += bool(len(m))
        if self.record:
            place = np.full(len(m), k)
            self.events.append(
                (m.source, m.target, amount, place, start, start + lasts)
            )

    def timeline(self, finish: np.ndarray) -> Timeline:
        """All of it."""
        none = (*(np.zeros(0, np.int64),) * 4, *(np.zeros(0),) * 2)
        columns = zip(none, *self.events, strict=True)
        events = Events(*map(np.concatenate, columns)) if self.record else None
        sent, received, count, sending, receiving, computing = self.sums
        busy = sending, receiving, computing
        return Timeline(finish, sent, received, count, *busy, self.rounds, events)
