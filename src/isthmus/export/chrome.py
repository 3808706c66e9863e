"""A timeline as trace events, for Perfetto and for Chrome's own viewer.

A process is a group, a thread is a port of a rank, a slice is a message at one of its
ends; an arrow goes from the sender's slice to the receiver's. Times are microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..cost.timeline import Timeline

PORTS = ("sends", "receives")
MICRO = 1e6


def _named(kind: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    """An event that tells the viewer about a process or a thread."""
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args}


def _threads(groups: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """The names of all groups, ranks and ports, in rank order."""
    base = 0
    for pid, n in enumerate(groups):
        name = f"group {'AB'[pid]}" if len(groups) == 2 else "ranks"
        yield _named("process_name", pid, 0, name=name)
        yield _named("process_sort_index", pid, 0, sort_index=pid)
        for rank in range(base, base + n):
            for port, does in enumerate(PORTS):
                tid = 2 * rank + port
                yield _named("thread_name", pid, tid, name=f"rank {rank} {does}")
                yield _named("thread_sort_index", pid, tid, sort_index=tid)
        base += n


def _messages(timeline: Timeline, groups: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Both ends of every message, and the arrow between them."""
    e = timeline.events
    if e is None:
        raise ValueError("simulate with record=True to write a trace")
    columns = (e.source, e.target, e.size, e.round, e.start, e.end)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for i, (source, target, size, k, start, end) in enumerate(rows):
        ts, dur = start * MICRO, (end - start) * MICRO
        # The arrow's ends lie well inside the slices that they belong to.
        sender = (source, target, f"to {target}", {"ph": "s"}, 0.25)
        receiver = (target, source, f"from {source}", {"ph": "f", "bp": "e"}, 0.75)
        for port, (rank, peer, name, arrow, part) in enumerate((sender, receiver)):
            pid = int(len(groups) > 1 and rank >= groups[0])
            at = {"pid": pid, "tid": 2 * rank + port}
            args = {"bytes": int(size), "peer": peer, "round": k}
            slice_ = {"ph": "X", "cat": PORTS[port], "name": name, "args": args}
            yield {**slice_, **at, "ts": ts, "dur": dur}
            flow = {**arrow, "cat": "message", "name": "message", "id": i}
            yield {**flow, **at, "ts": ts + part * dur}


def trace(timeline: Timeline, groups: tuple[int, ...] | None = None) -> dict[str, Any]:
    """The trace of a timeline that was recorded with every message."""
    sizes = groups or (timeline.n,)
    if sum(sizes) != timeline.n:
        raise ValueError(f"groups of {sizes} are not the {timeline.n} ranks there are")
    events = [*_threads(sizes), *_messages(timeline, sizes)]
    about = {"seconds": timeline.time, "idle": timeline.idle}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}


def write(
    path: Path, timeline: Timeline, groups: tuple[int, ...] | None = None
) -> None:
    """Write the trace to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(trace(timeline, groups)) + "\n", encoding="utf-8")
