"""The sums, and the events if recorded, of all ranks while a schedule is simulated."""

from __future__ import annotations

import numpy as np

from .messages import Messages
from .timeline import MEETING, WORK, Events, Timeline, Work


class SimulationTally:
    """What each rank sent, received and reduced, and each message if recorded."""

    def __init__(self, n: int, unit: int, record: bool) -> None:
        self.n, self.unit, self.record = n, unit, record
        #: rows: bytes sent and received, messages, seconds of sending, receiving, work
        self.sums = np.zeros((6, n))
        self.rounds = 0
        self.events: list[tuple[np.ndarray, ...]] = []
        self.work: list[tuple[np.ndarray, ...]] = []

    def add_messages(
        self,
        k: int,
        messages: Messages,
        start: np.ndarray,
        durations: np.ndarray,
        port_times: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """Add the messages of step k, which occupy the send and the receive ports of
        their ranks for `port_times`."""
        source, target = messages.source, messages.target
        amount = messages.size * self.unit
        ranks = (source, target, source, source, target)
        values = (amount, amount, np.ones(len(messages)), *port_times)
        for row, (who, value) in enumerate(zip(ranks, values, strict=True)):
            self.sums[row] += np.bincount(who, value, self.n)
        self.rounds += bool(len(messages))
        if self.record:
            step = np.full(len(messages), k)
            end = start + durations
            self.events.append((source, target, amount, step, start, end))

    def add_work(
        self,
        k: int,
        begun: np.ndarray,
        early: np.ndarray,
        messages_done: np.ndarray,
        late: np.ndarray,
        meeting_end: np.ndarray,
    ) -> None:
        """Add the local work of ranks in step k, and their waiting at a meeting.

        `early` seconds of work begin with the round, `late` seconds after the messages.
        """
        self.sums[5] += early + late
        if not self.record:
            return
        late_end = messages_done + late
        spans = (begun, begun + early), (messages_done, late_end)
        waits = late_end, meeting_end
        for kind, (start, end) in zip(
            (WORK, WORK, MEETING), (*spans, waits), strict=True
        ):
            ranks = np.flatnonzero(end > start)
            labels = np.full(len(ranks), kind), np.full(len(ranks), k)
            self.work.append((ranks, *labels, start[ranks], end[ranks]))

    def timeline(self, finish: np.ndarray) -> Timeline:
        """The timeline of ranks that were done at `finish`."""
        no_events = (*(np.zeros(0, np.int64),) * 4, *(np.zeros(0),) * 2)
        columns = zip(no_events, *self.events, strict=True)
        events = Events(*map(np.concatenate, columns)) if self.record else None
        no_work = (*(np.zeros(0, np.int64),) * 3, *(np.zeros(0),) * 2)
        columns = zip(no_work, *self.work, strict=True)
        work = Work(*map(np.concatenate, columns)) if self.record else None
        sent, received, count, sending, receiving, computing = self.sums
        busy = sending, receiving, computing
        return Timeline(finish, sent, received, count, *busy, self.rounds, events, work)
