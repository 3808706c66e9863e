"""The rows of a timeline's picture: a bar for each rank, and the critical path.

The colours differ in lightness too, so that every kind of colour vision distinguishes
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cost.timeline import MEETING, WORK
from .palette import (
    IDLE_COLOUR,
    PATH_COLOUR,
    RECEIVE_COLOUR,
    SEND_COLOUR,
    WAIT_COLOUR,
    WORK_COLOUR,
    RankGroup,
    RankNode,
)

if TYPE_CHECKING:
    from ..cost.timeline import Events, Timeline, Work

#: the pattern of a rank that waits at a meeting
HATCH = "//////"

#: the most ranks with a bar for each port; with more, the two ports share a bar
MAX_RANKS_WITH_PORTS = 32

# inches
GANTT_GAP = 0.22
#: the least width of a message with a visible edge
MIN_EDGED_INCHES = 0.05


@dataclass(frozen=True)
class Chart:
    """The axes of a timeline, the rows' places in inches, and the scale of time."""

    axes: Any
    groups: list[RankGroup]
    nodes: list[RankNode]
    row: float
    #: the upper edge of each rank's row
    tops: np.ndarray
    #: the whole time, in inches and in seconds
    width: float
    total: float

    def top(self, rank: Any) -> Any:
        """The upper edge of a rank's row."""
        return self.tops[rank]

    @property
    def bar(self) -> float:
        """The height of a row's bar."""
        return self.row * (0.86 if self.row > 0.08 else 1.0)


def _boxes(
    chart: Chart, x: np.ndarray, end: np.ndarray, y: Any, height: float, **style: Any
) -> None:
    """Draw rectangles from x to end, each below its y."""
    from matplotlib.collections import PolyCollection

    y = np.broadcast_to(y, x.shape)
    sides = (x, y), (end, y), (end, y - height), (x, y - height)
    corners = np.stack([np.stack(side, axis=1) for side in sides], axis=1)
    chart.axes.add_collection(PolyCollection(list(corners), **style), autolim=False)


def _ports(chart: Chart, e: Events, height: float) -> None:
    """Draw sends in the upper part of a row, receives in the lower.

    Narrow messages have no edges, because the edges would cover the colour.
    """
    low = chart.bar - height
    is_wide = (e.end - e.start) * chart.width / chart.total > MIN_EDGED_INCHES
    edges = {"linewidths": np.where(is_wide, 0.6, 0.0), "edgecolors": "white"}
    for ranks, colour, down in (
        (e.source, SEND_COLOUR, 0.0),
        (e.target, RECEIVE_COLOUR, low),
    ):
        y = chart.top(ranks) - down
        _boxes(chart, e.start, e.end, y, height, facecolors=colour, **edges)


def _waits(chart: Chart, w: Work) -> None:
    """Draw the waits of ranks for their node."""
    is_meeting = w.kind == MEETING
    style: dict[str, Any] = {
        "facecolors": IDLE_COLOUR,
        "edgecolors": WAIT_COLOUR,
        "linewidths": 0,
    }
    y = chart.top(w.rank[is_meeting])
    _boxes(
        chart,
        w.start[is_meeting],
        w.end[is_meeting],
        y,
        chart.bar,
        hatch=HATCH,
        **style,
    )


def _works(chart: Chart, w: Work, down: float, height: float) -> None:
    """Draw copies and reductions, in a part of the rank's row."""
    is_work = w.kind == WORK
    style: dict[str, Any] = {"facecolors": WORK_COLOUR, "linewidths": 0}
    y = chart.top(w.rank[is_work]) - down
    _boxes(chart, w.start[is_work], w.end[is_work], y, height, **style)


def busy(e: Events, total: float) -> tuple[np.ndarray, ...]:
    """Rank, start, end and number of busy ports (1 or 2) of every stretch of time.

    Times are rounded to a grid, because an end and the next beginning may differ by
    rounding errors, and would otherwise be a stretch of their own.
    """
    rank = np.concatenate([e.source, e.target] * 2)
    grid = total * 1e-9
    time = np.rint(np.concatenate([e.start, e.start, e.end, e.end]) / grid) * grid
    change = np.repeat([1, -1], 2 * len(e))
    order = np.lexsort((time, rank))
    rank, time, level = rank[order], time[order], np.cumsum(change[order])
    is_last_at_its_time = np.append(
        (rank[1:] != rank[:-1]) | (time[1:] != time[:-1]), True
    )
    rank = rank[is_last_at_its_time]
    time = time[is_last_at_its_time]
    level = np.minimum(level[is_last_at_its_time], 2)
    is_change = np.append(True, (rank[1:] != rank[:-1]) | (level[1:] != level[:-1]))
    rank, time, level = rank[is_change], time[is_change], level[is_change]
    is_busy = np.flatnonzero(level > 0)
    return rank[is_busy], time[is_busy], time[is_busy + 1], level[is_busy]


def _bars(chart: Chart, e: Events) -> None:
    """Draw a bar for each rank: dark while both ports are busy, else lighter."""
    rank, start, end, level = busy(e, chart.total)
    for ports, colour in ((1, RECEIVE_COLOUR), (2, SEND_COLOUR)):
        with_ports = level == ports
        y = chart.top(rank[with_ports])
        style: dict[str, Any] = {"facecolors": colour, "linewidths": 0}
        _boxes(chart, start[with_ports], end[with_ports], y, chart.bar, **style)


def stays(ends: list[set[int]], first: int) -> list[int]:
    """The rank at which each leg of a path waits for the leg before.

    Neighbours on the path have a rank in common. The path stays on a rank where
    possible, so that the line crosses few rows.
    """
    rank = first
    if len(ends) > 1 and (common := ends[0] & ends[1]) and rank not in common:
        rank = min(common)
    ranks = [rank]
    for before, current in pairwise(ends):
        if ranks[-1] not in current:
            ranks.append(min(before & current, default=min(current)))
        else:
            ranks.append(ranks[-1])
    return ranks


def _path(chart: Chart, timeline: Timeline) -> None:
    """Draw the critical path: a line along the ranks on which the end waited."""
    from matplotlib import patheffects

    legs = timeline.critical_legs()
    if not legs:
        return
    ranks = stays([set(leg.ranks) for leg in legs], legs[0].ranks[-1])
    y = np.repeat([chart.top(r) - chart.bar / 2 for r in ranks], 2)
    x = np.array([(leg.start, leg.end) for leg in legs]).ravel()
    casing = [patheffects.withStroke(linewidth=3.4, foreground="white")]
    style: dict[str, Any] = {"color": PATH_COLOUR, "lw": 1.6, "path_effects": casing}
    chart.axes.plot(x, y, **style, solid_joinstyle="miter", zorder=3)


def draw_rows(chart: Chart, timeline: Timeline) -> None:
    """Draw the bars of all ranks, pale in idle times.

    Work between messages is in the middle of a row or, where both ports share the row,
    in the lower part.
    """
    tops, start = chart.top(np.arange(timeline.n)), np.zeros(timeline.n)
    idle: dict[str, Any] = {"facecolors": IDLE_COLOUR, "linewidths": 0}
    _boxes(chart, start, start + timeline.time, tops, chart.bar, **idle)
    e, w = timeline.events, timeline.work
    ports, third = timeline.n <= MAX_RANKS_WITH_PORTS, chart.bar / 3
    if w:
        _waits(chart, w)
    if e and ports:
        _ports(chart, e, third if w else chart.bar / 2)
    elif e:
        _bars(chart, e)
    if w:
        _works(chart, w, third if ports else 2 * third, third)
    if e:
        _path(chart, timeline)
