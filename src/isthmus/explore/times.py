"""A timeline as data for the page, each message with the step of the schedule."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

import numpy as np

from ..cost.recorded import Recorded
from ..cost.timeline import Events, Timeline

#: the ticks of a whole timeline; times are whole numbers of ticks
TICKS_OF_LONGEST = 1_000_000


def _steps(events: Events, steps: list[dict[str, Any]]) -> list[int] | None:
    """The step in which each recorded message moves; None if messages differ.

    Recorded messages match the messages of the steps in order, by source and target,
    because a recording knows rounds, but not the steps of a picture.
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

    Without `steps`, or if the messages differ from those of the steps, a message
    belongs to the round of its sender.
    """
    events, work = timeline.events, timeline.work
    if events is None:
        raise ValueError("simulate with record=True to explore a timeline")
    last = max(timeline.time, float(events.end.max(initial=0.0)))
    tick = last / TICKS_OF_LONGEST or 1.0
    step_of_message = _steps(events, steps) if steps is not None else None
    is_linked = step_of_message is not None

    def ticks(seconds: np.ndarray) -> list[int]:
        whole_ticks: list[int] = np.rint(seconds / tick).astype(np.int64).tolist()
        return whole_ticks

    page_timeline = {
        "name": name,
        "recorded": isinstance(timeline, Recorded),
        "linked": is_linked,
        "time": timeline.time,
        "idle": timeline.idle,
        "limit": limit,
        "tick": tick,
        "source": events.source.tolist(),
        "target": events.target.tolist(),
        "size": events.size.tolist(),
        "step": step_of_message if is_linked else events.round.tolist(),
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
