"""A timeline as data for the page, each message with the step of the schedule."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

import numpy as np

from ..cost.recorded import Recorded
from ..cost.timeline import Events, Timeline

#: times are whole numbers of this part of the longest
TICKS = 1_000_000


def _steps(events: Events, steps: list[dict[str, Any]]) -> list[int] | None:
    """The step in which each message moves: those from one rank to another match in
    their order. None, if these are not the same messages."""
    waiting: dict[tuple[int, int], deque[tuple[int, int]]] = defaultdict(deque)
    for k, step in enumerate(steps):
        for source, target, _, into in step.get("messages", ()):
            waiting[source, target].append((k, sum(into[2::3])))
    found = np.zeros(len(events), np.int64)
    columns = events.source.tolist(), events.target.tolist(), events.size.tolist()
    rows = list(zip(*columns, strict=True))
    for i in np.argsort(events.round, kind="stable").tolist():
        source, target, size = rows[i]
        queue = waiting[source, target]
        if not queue or queue[0][1] != size:
            return None
        found[i] = queue.popleft()[0]
    return None if any(waiting.values()) else found.tolist()


def times(
    name: str,
    line: Timeline,
    steps: list[dict[str, Any]] | None,
    limit: float | None = None,
) -> dict[str, Any]:
    """When each rank does what. Without `steps`, and where it did other messages than
    they have, a message belongs to the round of its sender."""
    e, w = line.events, line.work
    if e is None:
        raise ValueError("simulate with record=True to explore a timeline")
    last = max(line.time, float(e.end.max(initial=0.0)))
    tick = last / TICKS or 1.0
    linked = _steps(e, steps) if steps is not None else None

    def ticks(seconds: np.ndarray) -> list[int]:
        found: list[int] = np.rint(seconds / tick).astype(np.int64).tolist()
        return found

    found = {
        "name": name,
        "recorded": isinstance(line, Recorded),
        "linked": linked is not None,
        "time": line.time,
        "idle": line.idle,
        "limit": limit,
        "tick": tick,
        "source": e.source.tolist(),
        "target": e.target.tolist(),
        "size": e.size.tolist(),
        "step": e.round.tolist() if linked is None else linked,
        "start": ticks(e.start),
        "end": ticks(e.end),
        "path": line.critical_path(),
        "legs": [
            x
            for leg in line.critical_legs()
            for x in (*leg.ranks, *ticks(np.array([leg.start, leg.end])))
        ],
        "finish": ticks(line.finish),
        "sending": ticks(line.sending),
        "receiving": ticks(line.receiving),
    }
    if w is not None and len(w):
        found["work"] = {
            "rank": w.rank.tolist(),
            "kind": w.kind.tolist(),
            "start": ticks(w.start),
            "end": ticks(w.end),
        }
    return found
