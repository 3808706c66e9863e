"""A timeline as trace events, for Perfetto and for Chrome's own viewer.

A process is a group, a thread is a port of a rank, a slice is an end of a message; an
arrow goes from the sender's slice to the receiver's. If ranks copy, reduce or wait at
meetings of their nodes, each has a third thread, since slices of a thread must not
overlap. Times are microseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..cost.recorded import Recorded, of_events
from ..cost.timeline import Events, Timeline

PORT_THREADS = ("sends", "receives")
#: the names of a rank's slices between messages, by their kind
WORK_THREADS = ("copies, reduces", "waits for its node")
MICROSECONDS_PER_SECOND = 1e6


def _metadata(kind: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    """An event with the name or the place of a process or thread."""
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args}


def _threads_of_rank(timeline: Timeline) -> tuple[str, ...]:
    """What each thread of a rank shows, in the order of threads."""
    return (*PORT_THREADS, "works") if timeline.work else PORT_THREADS


def _threads(
    timeline: Timeline, groups: tuple[int, ...], nodes: Sequence[Hashable]
) -> Iterator[dict[str, Any]]:
    """The names of all groups, ranks and ports, in rank order."""
    base, threads = 0, _threads_of_rank(timeline)
    for pid, n in enumerate(groups):
        name = f"group {'AB'[pid]}" if len(groups) == 2 else "ranks"
        yield _metadata("process_name", pid, 0, name=name)
        yield _metadata("process_sort_index", pid, 0, sort_index=pid)
        for rank in range(base, base + n):
            node = f" (node {nodes[rank]})" if nodes else ""
            for i, thread in enumerate(threads):
                tid, words = len(threads) * rank + i, f"rank {rank}{node} {thread}"
                yield _metadata("thread_name", pid, tid, name=words)
                yield _metadata("thread_sort_index", pid, tid, sort_index=tid)
        base += n


def _pid(rank: int, groups: tuple[int, ...]) -> int:
    return int(len(groups) > 1 and rank >= groups[0])


def _messages(timeline: Timeline, groups: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Both ends of every message, and the arrow between the ends."""
    e, threads = timeline.events, len(_threads_of_rank(timeline))
    if e is None:
        raise ValueError("simulate with record=True to write a trace")
    columns = (e.source, e.target, e.size, e.round, e.start, e.end)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for i, (source, target, size, k, start, end) in enumerate(rows):
        ts = start * MICROSECONDS_PER_SECOND
        dur = (end - start) * MICROSECONDS_PER_SECOND
        # the arrow's ends lie well inside slices: at an edge, a viewer may take the
        # neighbouring slice
        sender = (source, target, f"to {target}", {"ph": "s"}, 0.25)
        receiver = (target, source, f"from {source}", {"ph": "f", "bp": "e"}, 0.75)
        for port, (rank, peer, name, arrow, part) in enumerate((sender, receiver)):
            thread = {"pid": _pid(rank, groups), "tid": threads * rank + port}
            args = {"bytes": int(size), "peer": peer, "round": k}
            slice_ = {"ph": "X", "cat": PORT_THREADS[port], "name": name, "args": args}
            yield {**slice_, **thread, "ts": ts, "dur": dur}
            flow = {**arrow, "cat": "message", "name": "message", "id": i}
            yield {**flow, **thread, "ts": ts + part * dur}


def _work(timeline: Timeline, groups: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Slices of copies, reductions and meetings between messages."""
    w, threads = timeline.work, len(_threads_of_rank(timeline))
    if not w:
        return
    columns = (w.rank, w.kind, w.round, w.start, w.end)
    for rank, kind, k, start, end in zip(*(x.tolist() for x in columns), strict=True):
        thread = {"pid": _pid(rank, groups), "tid": threads * rank + len(PORT_THREADS)}
        slice_ = {
            "ph": "X",
            "cat": "works",
            "name": WORK_THREADS[kind],
            "args": {"round": k},
        }
        yield {
            **slice_,
            **thread,
            "ts": start * MICROSECONDS_PER_SECOND,
            "dur": (end - start) * MICROSECONDS_PER_SECOND,
        }


def trace(
    timeline: Timeline,
    groups: tuple[int, ...] | None = None,
    nodes: Sequence[Hashable] = (),
) -> dict[str, Any]:
    """The trace of a timeline, recorded with every message.

    With `nodes`, the node of each rank, names of ranks contain the node.
    """
    sizes = groups or (timeline.n,)
    if sum(sizes) != timeline.n:
        raise ValueError(f"groups of {sizes} are not the {timeline.n} ranks there are")
    events = [
        *_threads(timeline, sizes, nodes),
        *_messages(timeline, sizes),
        *_work(timeline, sizes),
    ]
    summary = {
        "seconds": timeline.time,
        "idle": timeline.idle,
        "recorded": isinstance(timeline, Recorded),
        "finish": timeline.finish.tolist(),
    }
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": summary}


def write(
    path: Path,
    timeline: Timeline,
    groups: tuple[int, ...] | None = None,
    nodes: Sequence[Hashable] = (),
) -> None:
    """Write the trace to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(trace(timeline, groups, nodes))
    path.write_text(text + "\n", encoding="utf-8")


def read(path: Path) -> Recorded:
    """The timeline of a recorded run, from a trace written by `isthmus record`.

    Simulated traces are refused, because the explorer shows the timeline as measured.
    """
    try:
        document = json.loads(path.read_text("utf-8"))
        summary, events = document["otherData"], document["traceEvents"]
        recorded, finish = summary["recorded"], np.array(summary["finish"], float)
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{path}: not a trace that isthmus record wrote") from None
    if not recorded:
        raise ValueError(f"{path}: a simulated run; isthmus record writes real ones")
    rank_of_thread = {
        event["tid"]: int(re.findall(r"\d+", event["args"]["name"])[0])
        for event in events
        if event["name"] == "thread_name"
    }
    rows = [
        (
            rank_of_thread[event["tid"]],
            *(event["args"][name] for name in ("peer", "bytes", "round")),
            event["ts"] / MICROSECONDS_PER_SECOND,
            (event["ts"] + event["dur"]) / MICROSECONDS_PER_SECOND,
        )
        for event in events
        if event["ph"] == "X" and event["cat"] == PORT_THREADS[0]
    ]
    return of_events(Events.of(rows), finish)
