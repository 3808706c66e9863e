"""A timeline as a picture: ranks are rows, time goes right, blue talks, yellow waits.

The colours are those of Träff et al. 2008. Blue and yellow differ in lightness too, so
that no kind of colour vision takes one for the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .palette import FAINT, INK, Group, groups_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..cost.timeline import Events, Timeline

IDLE, SEND, RECEIVE, PATH = "#ffe27a", "#08519c", "#2a77b4", "#d7301f"

#: with more ranks than this, both ports of a rank share one bar
PORTS = 32

# inches
WIDTH, LEFT, RIGHT, TOP, BOTTOM, BETWEEN = 10.0, 0.85, 0.3, 0.75, 0.92, 0.22
ROWS, TALLEST, LEAST = 7.0, 0.34, 0.03
#: of BOTTOM, what the time axis takes
AXIS = 0.5
#: the least distance of two ranks' names
APART = 0.15
#: messages at least this wide are set apart from each other
SEEN = 0.05


@dataclass(frozen=True)
class Chart:
    """Where rows lie, in inches below the top of the axes, and the unit of time."""

    axes: Any
    groups: list[Group]
    row: float
    total: float

    @property
    def wide(self) -> float:
        """Inches of the whole time."""
        return WIDTH - LEFT - RIGHT

    def top(self, rank: Any) -> Any:
        """The upper edge of a rank's row."""
        second = rank >= self.groups[-1].ranks.start if len(self.groups) > 1 else 0
        return -(rank * self.row + BETWEEN * second)

    @property
    def bar(self) -> float:
        """The height of a row's bar."""
        return self.row * (0.86 if self.row > 0.08 else 1.0)


def _scale(seconds: float) -> tuple[float, str]:
    """The unit that a time is best shown in."""
    for size, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return size, name
    return (1e-9, "ns") if seconds > 0 else (1.0, "s")


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


def _names(chart: Chart) -> None:
    """The groups, and as many ranks as there is room for."""
    step = 1
    while step * chart.row < APART:
        step *= 2
    ticks: list[tuple[float, str]] = []
    for group in chart.groups:
        for rank in group.ranks[::step]:
            ticks.append((chart.top(rank) - chart.bar / 2, group.label(rank)))
        first, last = group.ranks[0], group.ranks[-1]
        middle = (chart.top(first) + chart.top(last) - chart.bar) / 2
        fits = chart.row * len(group.ranks) > 0.62
        words, turned = (group.name, 90) if fits else (group.short, 0)
        where = {"transform": chart.axes.get_yaxis_transform(), "rotation": turned}
        at: dict[str, Any] = {"ha": "center", "va": "center", "color": INK} | where
        x = -0.58 / chart.wide
        chart.axes.text(x, middle, words, fontsize=8.5, weight="bold", **at)
    chart.axes.set_yticks([y for y, _ in ticks], [name for _, name in ticks])


def _legend(chart: Chart, figure: Figure, two: bool) -> None:
    """What the colours mean."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    blue = ("sends (upper half)", "receives (lower half)")
    if not two:
        blue = ("sends and receives", "sends or receives")
    keys: list[Any] = [
        Patch(color=colour, label=words)
        for colour, words in zip((SEND, RECEIVE), blue, strict=True)
    ]
    keys += [
        Patch(color=IDLE, label="idle"),
        Line2D([], [], color=PATH, lw=1.5, label="critical path"),
    ]
    where = (LEFT / WIDTH, 0.12 / figure.get_figheight())
    style: dict[str, Any] = {"frameon": False, "borderaxespad": 0, "borderpad": 0}
    style |= {"fontsize": 8, "ncol": 4, "labelcolor": INK}
    figure.legend(handles=keys, loc="lower left", bbox_to_anchor=where, **style)


def _axes(chart: Chart, deep: float) -> None:
    """The time axis, with its unit."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    size, unit = _scale(chart.total)
    axes = chart.axes
    axes.set(xlim=(0, chart.total), ylim=(-deep, 0))
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / size:.4g}"))
    axes.set_xlabel(f"time [{unit}]", fontsize=8.5, color=INK)
    axes.tick_params(labelsize=7.5, colors=INK, length=3)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "left", "right"]].set_visible(False)
    axes.spines["bottom"].set(color=FAINT, position=("outward", 3))


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def _heading(timeline: Timeline, groups: list[Group]) -> str:
    """The whole time, and how much of it nothing moves."""
    size, unit = _scale(timeline.time)
    ranks = " + ".join(str(len(g.ranks)) for g in groups)
    messages = _count(int(timeline.messages.sum()), "message")
    return (
        f"{timeline.time / size:.4g} {unit}, ports idle {timeline.idle:.0%} of it"
        f"     {ranks} ranks, {_count(timeline.rounds, 'round')}, {messages}"
    )


def _panel(chart: Chart, timeline: Timeline, deep: float) -> None:
    """One timeline in its axes."""
    _axes(chart, deep)
    tops, nothing = chart.top(np.arange(timeline.n)), np.zeros(timeline.n)
    idle: dict[str, Any] = {"facecolors": IDLE, "linewidths": 0}
    _boxes(chart, nothing, nothing + timeline.time, tops, chart.bar, **idle)
    e = timeline.events
    if e is not None and len(e):
        (_ports if timeline.n <= PORTS else _bars)(chart, e)
        _path(chart, timeline)
    _names(chart)


def _title(
    figure: Figure, timeline: Timeline, groups: list[Group], name: str, y: float
) -> None:
    """The name and the numbers of a timeline, above its axes."""
    height = figure.get_figheight()
    for words, size, up in ((name, 11.0, 0.45), (_heading(timeline, groups), 8.5, 0.2)):
        weight = "bold" if words == name else "normal"
        at = LEFT / WIDTH, (y + up) / height
        figure.text(*at, words, fontsize=size, weight=weight, color=INK)


def gantts(
    timelines: Mapping[str, Timeline], groups: tuple[int, ...] | None = None
) -> Figure:
    """Timelines of the same ranks, by their names: one below the other, on one scale.

    They must be recorded with every message.
    """
    from matplotlib.figure import Figure

    n = next(iter(timelines.values())).n
    sizes = groups or (n,)
    for timeline in timelines.values():
        if timeline.events is None:
            raise ValueError("simulate with record=True to draw a timeline")
        if sum(sizes) != timeline.n:
            raise ValueError(
                f"groups of {sizes} are not the {timeline.n} ranks there are"
            )
    edges = np.cumsum((0, *sizes)).tolist()
    named = groups_of([range(*edges[i : i + 2]) for i in range(len(sizes))])
    row = min(max(ROWS / n, LEAST), TALLEST)
    deep = row * n + BETWEEN * (len(named) - 1)
    apart = deep + TOP + AXIS
    height = BOTTOM - AXIS + apart * len(timelines)
    figure = Figure(figsize=(WIDTH, height))
    total = max(timeline.time for timeline in timelines.values()) or 1.0
    for k, (name, timeline) in enumerate(timelines.items()):
        y = BOTTOM + apart * (len(timelines) - 1 - k)
        box = LEFT / WIDTH, y / height, 1 - (LEFT + RIGHT) / WIDTH, deep / height
        chart = Chart(figure.add_axes(box), named, row, total)
        _panel(chart, timeline, deep)
        _title(figure, timeline, named, name, y + deep)
    _legend(chart, figure, n <= PORTS)
    return figure


def gantt(
    timeline: Timeline, groups: tuple[int, ...] | None = None, name: str = ""
) -> Figure:
    """Who communicates and who idles, of a timeline recorded with every message."""
    return gantts({name: timeline}, groups)
