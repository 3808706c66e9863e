"""A timeline as a picture: ranks are rows, time goes right; blue talks, grey waits.

`gantt_rows` draws the rows; this file has the page, the axes and the words.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cost.timeline import MEETING
from .gantt_rows import GANTT_GAP, HATCH, MAX_RANKS_WITH_PORTS, Chart, draw_rows
from .palette import (
    FAINT,
    IDLE_COLOUR,
    INK,
    PATH_COLOUR,
    RECEIVE_COLOUR,
    SEND_COLOUR,
    WAIT_COLOUR,
    WORK_COLOUR,
    RankGroup,
    RankNode,
    groups_of,
    nodes_of,
)
from .sheet import in_words, rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..cost.timeline import Timeline

# inches
GANTT_WIDTH = 10.0
GANTT_LEFT = 0.85
GANTT_RIGHT = 0.3
GANTT_TOP = 0.75
GANTT_BOTTOM = 0.92
#: the width of the whole time
GANTT_TIME_WIDTH = GANTT_WIDTH - GANTT_LEFT - GANTT_RIGHT
GANTT_ROWS_HEIGHT, MAX_GANTT_ROW, MIN_GANTT_ROW = 7.0, 0.34, 0.03
#: the height of the time axis, a part of GANTT_BOTTOM
GANTT_AXIS = 0.5
#: the least distance of two ranks' names
MIN_NAME_DISTANCE = 0.15
#: the most space between all groups or nodes together
MAX_GAPS = 2.0


def _scale(seconds: float) -> tuple[float, str]:
    """The unit in which to show a time: the unit's seconds and name."""
    for size, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return size, name
    return (1e-9, "ns") if seconds > 0 else (1.0, "s")


def _names(chart: Chart) -> None:
    """Write the names of groups or nodes, and of as many ranks as have room."""
    step = 1
    while step * chart.row < MIN_NAME_DISTANCE:
        step *= 2
    label = {rank: group.label(rank) for group in chart.groups for rank in group.ranks}
    ticks: list[tuple[float, str]] = []
    for block in chart.nodes or chart.groups:
        for rank in block.ranks[::step]:
            ticks.append((chart.top(rank) - chart.bar / 2, label[rank]))
        _name(chart, block)
    chart.axes.set_yticks([y for y, _ in ticks], [name for _, name in ticks])


def _name(chart: Chart, block: RankGroup | RankNode) -> None:
    """Write the name of a group or a node beside its ranks; a node also has a line."""
    top, low = chart.top(block.ranks[0]), chart.top(block.ranks[-1]) - chart.bar
    fits = chart.row * len(block.ranks) > 0.62
    words, rotation = (block.name, 90) if fits else (block.short, 0)
    transform = {"transform": chart.axes.get_yaxis_transform()}
    at: dict[str, Any] = {"ha": "center", "va": "center", "color": INK} | transform
    x, y = -0.58 / chart.width, (top + low) / 2
    chart.axes.text(x, y, words, fontsize=8.5, weight="bold", rotation=rotation, **at)
    if isinstance(block, RankNode):
        x = -0.42 / chart.width
        line: dict[str, Any] = {"color": INK, "lw": 1.2, "clip_on": False} | transform
        chart.axes.plot((x, x), (top, low), **line)


def _legend(figure: Figure, timelines: Sequence[Timeline]) -> None:
    """Write the meaning of the colours below the rows."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    works = any(line.work for line in timelines)
    meets = any(line.work and (line.work.kind == MEETING).any() for line in timelines)
    blue = ("sends (upper half)", "receives (lower half)")
    if works:
        blue = ("sends (above)", "receives (below)")
    if timelines[0].n > MAX_RANKS_WITH_PORTS:
        blue = ("sends and receives", "sends or receives")
    keys: list[Any] = [
        Patch(color=colour, label=words)
        for colour, words in zip((SEND_COLOUR, RECEIVE_COLOUR), blue, strict=True)
    ]
    keys += [Patch(color=WORK_COLOUR, label="copies, reduces")] * works
    keys += [Patch(color=IDLE_COLOUR, label="idle")]
    if meets:
        style: dict[str, Any] = {
            "facecolor": IDLE_COLOUR,
            "edgecolor": WAIT_COLOUR,
            "lw": 0,
        }
        keys += [Patch(label="waits for its node", hatch=HATCH, **style)]
    keys += [Line2D([], [], color=PATH_COLOUR, lw=1.5, label="critical path")]
    corner = (GANTT_LEFT / GANTT_WIDTH, 0.12 / figure.get_figheight())
    style = {"frameon": False, "borderaxespad": 0, "borderpad": 0}
    style |= {"fontsize": 8, "ncol": len(keys), "labelcolor": INK}
    figure.legend(handles=keys, loc="lower left", bbox_to_anchor=corner, **style)


def _axes(chart: Chart, depth: float) -> None:
    """Draw the time axis, with its unit."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    size, unit = _scale(chart.total)
    axes = chart.axes
    axes.set(xlim=(0, chart.total), ylim=(-depth, 0))
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / size:.4g}"))
    axes.set_xlabel(f"time [{unit}]", fontsize=8.5, color=INK)
    axes.tick_params(labelsize=7.5, colors=INK, length=3)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "left", "right"]].set_visible(False)
    axes.spines["bottom"].set(color=FAINT, position=("outward", 3))


def _heading(timeline: Timeline, groups: list[RankGroup]) -> str:
    """The whole time, the share in which ports idle, and counts, as text."""
    size, unit = _scale(timeline.time)
    ranks = " + ".join(str(len(g.ranks)) for g in groups)
    messages = in_words(int(timeline.messages.sum()), "message")
    return (
        f"{timeline.time / size:.4g} {unit}, ports idle {timeline.idle:.0%} of it"
        f"     {ranks} ranks, {in_words(timeline.rounds, 'round')}, {messages}"
    )


def _panel(chart: Chart, timeline: Timeline, depth: float) -> None:
    """Draw a timeline in its axes."""
    _axes(chart, depth)
    draw_rows(chart, timeline)
    _names(chart)


def _title(
    figure: Figure, timeline: Timeline, groups: list[RankGroup], name: str, y: float
) -> None:
    """Write the name and the numbers of a timeline above the axes."""
    height = figure.get_figheight()
    for words, size, up in ((name, 11.0, 0.45), (_heading(timeline, groups), 8.5, 0.2)):
        weight = "bold" if words == name else "normal"
        at = GANTT_LEFT / GANTT_WIDTH, (y + up) / height
        figure.text(*at, words, fontsize=size, weight=weight, color=INK)


def gantts(
    timelines: Mapping[str, Timeline],
    groups: tuple[int, ...] | None = None,
    nodes: Sequence[Hashable] = (),
) -> Figure:
    """A picture of named timelines of equal ranks, on a common scale.

    Timelines must be recorded with every message, since bars are drawn message by
    message. With `nodes`, the node of each rank, rows are in the order of nodes.
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
        if len(nodes) not in (0, timeline.n):
            raise ValueError(
                f"nodes of {len(nodes)} ranks are not the {timeline.n} there are"
            )
    edges = np.cumsum((0, *sizes)).tolist()
    rank_groups = groups_of([range(*edges[i : i + 2]) for i in range(len(sizes))])
    rank_nodes = nodes_of(nodes)
    row = min(max(GANTT_ROWS_HEIGHT / n, MIN_GANTT_ROW), MAX_GANTT_ROW)
    blocks = [x.ranks for x in rank_nodes or rank_groups]
    rows = rows_of(blocks, row, between=min(GANTT_GAP, MAX_GAPS / len(blocks)))
    depth, tops = rows.total, -np.array([rows.ranks[r] for r in range(n)])
    panel_height = depth + GANTT_TOP + GANTT_AXIS
    height = GANTT_BOTTOM - GANTT_AXIS + panel_height * len(timelines)
    figure = Figure(figsize=(GANTT_WIDTH, height))
    total = max(timeline.time for timeline in timelines.values()) or 1.0
    for k, (name, timeline) in enumerate(timelines.items()):
        y = GANTT_BOTTOM + panel_height * (len(timelines) - 1 - k)
        box = (
            GANTT_LEFT / GANTT_WIDTH,
            y / height,
            1 - (GANTT_LEFT + GANTT_RIGHT) / GANTT_WIDTH,
            depth / height,
        )
        chart = Chart(
            axes=figure.add_axes(box),
            groups=rank_groups,
            nodes=rank_nodes,
            row=row,
            tops=tops,
            width=GANTT_TIME_WIDTH,
            total=total,
        )
        _panel(chart, timeline, depth)
        _title(figure, timeline, rank_groups, name, y + depth)
    _legend(figure, list(timelines.values()))
    return figure


def gantt(
    timeline: Timeline,
    groups: tuple[int, ...] | None = None,
    name: str = "",
    nodes: Sequence[Hashable] = (),
) -> Figure:
    """A picture of a single timeline, recorded with every message."""
    return gantts({name: timeline}, groups, nodes)
