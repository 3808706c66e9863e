"""A timeline as data for the page, each message with the step of the schedule."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

import numpy as np

from ..cost.recorded import Recorded
from ..cost.timeline import Events, Timeline

#: times are whole numbers of ticks, of which the longest timeline has this many
TICKS_OF_LONGEST = 1_000_000


def _steps(events: Events, steps: list[dict[str, Any]]) -> list[int] | None:
    """The step in which each recorded message moves; None if the messages differ.

    Messages from one rank to another match in their order.
    """
    waiting: dict[tuple[int, int], deque[tuple[int, int]]] = defaultdict(deque)
    for k, step in enumerate(steps):
        for source, target, _, into in step.get("messages", ()):
            waiting[source, target].append((k, sum(into[2::3])))
    step_of_message = np.zeros(len(events), np.int64)
    columns = events.source.tolist(), events.target.tolist(), events.size.tolist()
    rows = list(zip(*columns, strict=True))
    for i in np.argsort(events.round, kind="stable").tolist():
        source, target, size = rows[i]
        queue = waiting[source, target]
        if not queue or queue[0][1] != size:
            return None
        step_of_message[i] = queue.popleft()[0]
    return None if any(waiting.values()) else step_of_message.tolist()


def times(
    name: str,
    timeline: Timeline,
    steps: list[dict[str, Any]] | None,
    limit: float | None = None,
) -> dict[str, Any]:
    """The times of all messages, local work and ranks of a timeline.

    Without `steps`, and where the timeline has other messages than the steps, a message
    belongs to the round of its sender.
    """
    events, work = timeline.events, timeline.work
    if events is None:
        raise ValueError("simulate with record=True to explore a timeline")
    last = max(timeline.time, float(events.end.max(initial=0.0)))
    tick = last / TICKS_OF_LONGEST or 1.0
    linked = _steps(events, steps) if steps is not None else None

    def ticks(seconds: np.ndarray) -> list[int]:
        page_timeline: list[int] = np.rint(seconds / tick).astype(np.int64).tolist()
        return page_timeline

    page_timeline = {
        "name": name,
        "recorded": isinstance(timeline, Recorded),
        "linked": linked is not None,
        "time": timeline.time,
        "idle": timeline.idle,
        "limit": limit,
        "tick": tick,
        "source": events.source.tolist(),
        "target": events.target.tolist(),
        "size": events.size.tolist(),
        "step": events.round.tolist() if linked is None else linked,
        "start": ticks(events.start),
        "end": ticks(events.end),
        "path": timeline.critical_path(),
        "legs": [
            x
            for leg in timeline.critical_legs()
            for x in (*leg.ranks, *ticks(np.array([leg.start, leg.end])))
        ],
        "finish": ticks(timeline.finish),
        "sending": ticks(timeline.sending),
        "receiving": ticks(timeline.receiving),
    }
    if work is not None and len(work):
        page_timeline["work"] = {
            "rank": work.rank.tolist(),
            "kind": work.kind.tolist(),
            "start": ticks(work.start),
            "end": ticks(work.end),
        }
    return page_timeline
