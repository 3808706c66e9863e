"""The rows of a timeline's picture: a bar for each rank, and the critical path.

The colours are those of Träff et al. 2008. Blue and yellow differ in lightness too, so
that no kind of colour vision takes one for the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .palette import Group

if TYPE_CHECKING:
    from ..cost.timeline import Events, Timeline

IDLE, SEND, RECEIVE, PATH = "#ffe27a", "#08519c", "#2a77b4", "#d7301f"

#: with more ranks than this, both ports of a rank share one bar
PORTS = 32

# inches
BETWEEN = 0.22
#: messages at least this wide are set apart from each other
SEEN = 0.05


@dataclass(frozen=True)
class Chart:
    """Where rows lie, in inches below the top of the axes, and the unit of time."""

    axes: Any
    groups: list[Group]
    row: float
    #: inches of the whole time, and that in seconds
    wide: float
    total: float

    def top(self, rank: Any) -> Any:
        """The upper edge of a rank's row."""
        second = rank >= self.groups[-1].ranks.start if len(self.groups) > 1 else 0
        return -(rank * self.row + BETWEEN * second)

    @property
    def bar(self) -> float:
        """The height of a row's bar."""
        return self.row * (0.86 if self.row > 0.08 else 1.0)


def _boxes(
    chart: Chart, x: np.ndarray, end: np.ndarray, y: Any, tall: float, **style: Any
) -> None:
    """Rectangles with these left and right ends below y."""
    from matplotlib.collections import PolyCollection

    y = np.broadcast_to(y, x.shape)
    sides = (x, y), (end, y), (end, y - tall), (x, y - tall)
    corners = np.stack([np.stack(side, axis=1) for side in sides], axis=1)
    chart.axes.add_collection(PolyCollection(list(corners), **style), autolim=False)


def _ports(chart: Chart, e: Events) -> None:
    """Sends in the upper half of a row, receives in the lower."""
    half = chart.bar / 2
    seen = (e.end - e.start) * chart.wide / chart.total > SEEN
    edges = {"linewidths": np.where(seen, 0.6, 0.0), "edgecolors": "white"}
    for who, colour, down in ((e.source, SEND, 0.0), (e.target, RECEIVE, half)):
        y = chart.top(who) - down
        _boxes(chart, e.start, e.end, y, half, facecolors=colour, **edges)


def busy(e: Events, total: float) -> tuple[np.ndarray, ...]:
    """Rank, start, end and number of busy ports (1 or 2) of every stretch of time."""
    rank = np.concatenate([e.source, e.target] * 2)
    # Ends and beginnings that differ by rounding only are the same.
    grid = total * 1e-9
    time = np.rint(np.concatenate([e.start, e.start, e.end, e.end]) / grid) * grid
    change = np.repeat([1, -1], 2 * len(e))
    order = np.lexsort((time, rank))
    rank, time, level = rank[order], time[order], np.cumsum(change[order])
    last = np.append((rank[1:] != rank[:-1]) | (time[1:] != time[:-1]), True)
    rank, time, level = rank[last], time[last], np.minimum(level[last], 2)
    new = np.append(True, (rank[1:] != rank[:-1]) | (level[1:] != level[:-1]))
    rank, time, level = rank[new], time[new], level[new]
    some = np.flatnonzero(level > 0)
    return rank[some], time[some], time[some + 1], level[some]


def _bars(chart: Chart, e: Events) -> None:
    """One bar for each rank: dark while it sends and receives, else lighter."""
    rank, start, end, level = busy(e, chart.total)
    for ports, colour in ((1, RECEIVE), (2, SEND)):
        some = level == ports
        y = chart.top(rank[some])
        style: dict[str, Any] = {"facecolors": colour, "linewidths": 0}
        _boxes(chart, start[some], end[some], y, chart.bar, **style)


def stays(e: Events, path: list[int]) -> list[int]:
    """The rank at which each message of a path waits for the one before it.

    Neighbours on the path have a rank in common; it stays the same where it can.
    """
    ends = [{int(e.source[i]), int(e.target[i])} for i in path]
    at = int(e.target[path[0]])
    if len(path) > 1 and (common := ends[0] & ends[1]) and at not in common:
        at = min(common)
    found = [at]
    for before, here in pairwise(ends):
        if found[-1] not in here:
            found.append(min(before & here, default=min(here)))
        else:
            found.append(found[-1])
    return found


def _path(chart: Chart, timeline: Timeline) -> None:
    """A line along the ranks whose messages the end waited for."""
    from matplotlib import patheffects

    e, path = timeline.events, timeline.critical_path()
    assert e is not None
    y = np.repeat([chart.top(r) - chart.bar / 2 for r in stays(e, path)], 2)
    x = np.stack([e.start[path], e.end[path]], axis=1).ravel()
    casing = [patheffects.withStroke(linewidth=3.4, foreground="white")]
    style: dict[str, Any] = {"color": PATH, "lw": 1.6, "path_effects": casing}
    chart.axes.plot(x, y, **style, solid_joinstyle="miter", zorder=3)


def draw_rows(chart: Chart, timeline: Timeline) -> None:
    """The bars of all ranks, yellow where they idle."""
    tops, nothing = chart.top(np.arange(timeline.n)), np.zeros(timeline.n)
    idle: dict[str, Any] = {"facecolors": IDLE, "linewidths": 0}
    _boxes(chart, nothing, nothing + timeline.time, tops, chart.bar, **idle)
    e = timeline.events
    if e is not None and len(e):
        (_ports if timeline.n <= PORTS else _bars)(chart, e)
        _path(chart, timeline)
