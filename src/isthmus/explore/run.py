"""A schedule as data for the page: every rank's first data, and the steps.

The page replays the steps. Buffers are runs of elements with a common origin, so that
the page does not grow with the bytes of the collective.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from ..cost.placement import nodes as placed_on
from ..draw.order import RankStep, StepEvents, order
from ..draw.palette import groups_of, nodes_of
from ..schedules.ir import Data, Reduce, Span
from ..schedules.program import buffer_size
from ..schedules.registry import resolve
from ..schedules.schedule import Schedule
from ..verify.marks import Memory

#: the buffers, by their numbers in the data
BUFFER_NAMES = ("send", "recv", "tmp", "node")
#: the most ranks with buffers on a page, and the most ranks of a page, which shows a
#: matrix of messages beyond the first limit
MAX_RANKS_IN_DETAIL, MAX_PAGE_RANKS = 64, 1024
#: a sequence of whole numbers, which may be nested
Numbers = list[Any]


def runs(buf: np.ndarray) -> Numbers:
    """The written elements of a buffer: [start, size, index, lo, hi, …].

    A run has elements from `index` on of the contributions of ranks lo to hi - 1.
    """
    if not len(buf):
        return []
    index, lo, hi = buf["index"], buf["lo"], buf["hi"]
    begins_run = (np.diff(index) != 1) | (np.diff(lo) != 0) | (np.diff(hi) != 0)
    edges = np.concatenate(([0], np.flatnonzero(begins_run) + 1, [len(buf)]))
    starts, sizes = edges[:-1], np.diff(edges)
    rows = np.stack([starts, sizes, index[starts], lo[starts], hi[starts]], axis=1)
    written: Numbers = rows[lo[starts] >= 0].ravel().tolist()
    return written


class Images:
    """The contents of buffers, each once, since many ranks begin or end alike."""

    def __init__(self) -> None:
        self.contents: list[Numbers] = []
        self._known: dict[tuple[int, ...], int] = {}
        self._last: tuple[np.ndarray | None, int] = None, -1

    def number(self, buf: np.ndarray) -> int:
        """The number of a buffer's content."""
        # contracts often have a single array for all ranks of a group
        if buf is self._last[0]:
            return self._last[1]
        content = runs(buf)
        number = self._known.setdefault(tuple(content), len(self.contents))
        if number == len(self.contents):
            self.contents.append(content)
        self._last = buf, number
        return number

    def memory(self, memory: Memory) -> dict[str, int]:
        """The numbers of the contents of a rank's buffers."""
        return {name: self.number(buf) for name, buf in memory.items()}


def _span(s: Span) -> list[int]:
    return [BUFFER_NAMES.index(s.buf), int(s.start), int(s.size)]


def _spans(data: Data) -> list[int]:
    """Spans as a flat list of numbers, with adjacent spans joined."""
    numbers: list[int] = []
    for s in data:
        if numbers and numbers[-3:-1] == [
            BUFFER_NAMES.index(s.buf),
            s.start - numbers[-1],
        ]:
            numbers[-1] += int(s.size)
        else:
            numbers += _span(s)
    return numbers


def _local_step(rank_step: RankStep) -> list[int]:
    rank, s = rank_step
    return [int(isinstance(s, Reduce)), rank, *_span(s.src), *_span(s.dst)[:2]]


def _step(step: StepEvents) -> dict[str, Numbers]:
    """The columns of a step, without empty columns."""
    columns: dict[str, Numbers] = {
        "first": [_local_step(x) for x in step.first],
        "messages": [
            [m.source, m.target, _spans(m.send.data), _spans(m.recv.data)]
            for m in step.messages
        ],
        "library": [
            [x.base, BUFFER_NAMES.index(x.buf), *x.offsets] for x in step.library
        ],
        "then": [_local_step(x) for x in step.then],
        "meetings": list(step.meetings),
    }
    return {name: rows for name, rows in columns.items() if rows}


def in_order_of_sending(step: dict[str, Numbers]) -> list[dict[str, Numbers]]:
    """A step cut into the first messages of all ranks, the second messages, and so on.

    A redistribution is a single round: every rank posts all messages at once, and its
    port sends them in sequence. As a single step, nobody could follow the messages. The
    cut does not change the result, since messages of a round touch disjoint elements.
    """
    sent: Counter[int] = Counter()
    parts: list[Numbers] = []
    for message in step.get("messages", ()):
        number = sent[message[0]]
        sent[message[0]] += 1
        if number == len(parts):
            parts.append([])
        parts[number].append(message)
    if len(parts) < 2:
        return [step]
    head_columns = {name: step[name] for name in ("first", "library") if name in step}
    tail_columns = {name: step[name] for name in ("then", "meetings") if name in step}
    steps = [{"messages": messages} for messages in parts]
    return [head_columns | steps[0], *steps[1:-1], steps[-1] | tail_columns]


#: the ideas of the orders of a redistribution's messages; the registry has none of them
IDEA_OF_ORDER = {
    "list schedule": "One message at a time: first those whose ports have most left.",
    "shifted": "So many messages that each rank sends to the rank after it first.",
}


def _idea_and_paper(schedule: Schedule) -> dict[str, str]:
    """The idea and the paper of a registered algorithm; else empty words."""
    if schedule.collective == "redistribution":
        return {"idea": IDEA_OF_ORDER.get(schedule.algorithm, ""), "paper": ""}
    try:
        entry, _ = resolve(schedule.collective, schedule.algorithm)
    except ValueError:
        return {"idea": "", "paper": ""}
    return {"idea": entry.idea, "paper": entry.paper}


def head(schedule: Schedule) -> dict[str, Any]:
    """The names, the sizes, the groups and the nodes of a schedule."""
    groups, nodes = groups_of(list(schedule.groups)), nodes_of(placed_on(schedule))
    return {
        "collective": schedule.collective,
        "algorithm": schedule.algorithm,
        **_idea_and_paper(schedule),
        "sizes": dict(schedule.sizes),
        "n": schedule.n,
        "groups": [
            {
                "name": g.name,
                "letter": g.letter,
                "from": g.ranks.start,
                "n": len(g.ranks),
            }
            for g in groups
        ],
        "nodes": [{"name": x.short, "ranks": list(x.ranks)} for x in nodes],
        "shares": schedule.shares_memory,
    }


def detail(schedule: Schedule) -> dict[str, Any]:
    """All steps, and the first and the promised last buffers of every rank."""
    images, programs = Images(), schedule.all_ranks()
    ranks = []
    for r, rounds in enumerate(programs):
        before, after = schedule.contract.before(r), schedule.contract.after(r)
        sizes = {name: len(buf) for name, buf in before.items()}
        sizes["tmp"] = buffer_size(rounds, "tmp")
        ranks.append(
            {
                "sizes": sizes,
                "before": images.memory(before),
                "after": images.memory(after),
            }
        )
    shared = [
        max(buffer_size(programs[r], "node") for r in node.ranks)
        for node in nodes_of(schedule.nodes or range(schedule.n))
    ]
    ordered = order(schedule, programs)
    if schedule.collective == "redistribution":
        posted = {
            id(act): k
            for rounds in programs
            for k, act in enumerate(act for r in rounds for act in r.comm)
        }
        steps = []
        for step in ordered:
            by_place = sorted(step.messages, key=lambda m: posted[id(m.send)])
            by_turn = replace(step, messages=tuple(by_place))
            steps += in_order_of_sending(_step(by_turn))
    else:
        steps = [_step(step) for step in ordered]
    return {
        "images": images.contents,
        "ranks": ranks,
        "node_sizes": shared,
        "steps": steps,
    }
