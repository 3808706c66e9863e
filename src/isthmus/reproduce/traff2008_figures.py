"""Pictures for Träff et al. 2008: time against size, block sizes, load balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cost.timeline import Timeline
from ..distributions import PAPER_DISTRIBUTIONS
from ..draw.gantt_rows import busy
from ..draw.palette import IDLE_COLOUR, SEND_COLOUR
from ..units import show_bytes, show_time
from .output import legend, panels
from .traff2008 import (
    BEST_BLOCKS,
    CIRCULANT_BOUND,
    CIRCULANT_WAY,
    DEALT_WAYS,
    FIXED_BLOCKS,
    LINEAR_RING,
    LINUX,
    LINUX_OVER_P,
    NODE_RING,
    STUDIED_BYTES,
    GatherPoint,
    System,
    dealt_name,
    studied,
    ways,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: colour, marker, line and width of each way; the colours survive colour blindness
GATHER_STYLES: dict[str, tuple[str, str, str, float]] = {
    LINEAR_RING: ("#777777", "s", "-", 3.0),
    FIXED_BLOCKS: ("#E69F00", "^", "-", 1.6),
    BEST_BLOCKS: ("#0072B2", "o", "-", 1.6),
    CIRCULANT_WAY: ("#009E73", "D", "--", 1.3),
    CIRCULANT_BOUND: ("#009E73", "", ":", 1.6),
    NODE_RING: ("#D55E00", "v", "-", 1.6),
}
#: colour and marker of the choice of each rule
RULE_MARKS: dict[str, tuple[str, str]] = {
    "rule 1": ("#CC79A7", "s"),
    "rule 2": ("#E69F00", "^"),
    "rule 3": ("#56B4E9", "D"),
    "best": ("#D55E00", "*"),
}

#: the ends of the axis of times in the picture of block sizes, as multiples of beta m
MIN_MULTIPLE, MAX_MULTIPLE = 0.45, 10.0
#: the states of a process, from light to dark: for every kind of colour vision
PORT_COLOURS = {
    "idle": IDLE_COLOUR,
    "sends or receives": "#6baed6",
    "sends and receives": SEND_COLOUR,
}
#: columns of a picture of the load balance: as many as pixels on a page
BALANCE_COLUMNS = 560


def _panels(title: str, height: float) -> tuple[Figure, list[Axes]]:
    """Six panels, one for each distribution, on the same axes."""
    figure, grid = panels((10, height), 2, 3, sharex=True, sharey=True)
    figure.suptitle(title, fontsize=11)
    for ax, name in zip(grid.flat, PAPER_DISTRIBUTIONS, strict=True):
        ax.set_title(name, fontsize=10)
        ax.grid(True, linewidth=0.4, alpha=0.5)
        ax.tick_params(labelsize=8)
    return figure, list(grid.flat)


def _bytes_axis(axes: Sequence[Axes], step: int) -> None:
    """Show bytes on logarithmic axes, with a tick at every `step` powers of two."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    for ax in axes:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_locator(LogLocator(base=float(1 << step), numticks=20))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: show_bytes(x)))


def _labels(figure: Figure, axes: Sequence[Axes], x: str, y: str) -> None:
    """Label the axes of panels, and add the legend below."""
    for ax in axes[::3]:
        ax.set_ylabel(y, fontsize=9)
    for ax in axes[3:]:
        ax.set_xlabel(x, fontsize=9)
    legend(figure, axes[0], fontsize=8.5, frameon=False)


def times(points: Sequence[GatherPoint], system: System) -> Figure:
    """Time against total size on a system, a panel for each distribution."""
    processes = f"{system.p} processes, B = {show_bytes(system.size)}"
    return _times(points, system, (system.name, ways(system)), processes)


def dealt_times(points: Sequence[GatherPoint], system: System) -> Figure:
    """Time against total size where ranks are dealt out to the nodes in turn."""
    processes = f"{system.p} processes, dealt out to the nodes in turn"
    return _times(points, system, (dealt_name(system), DEALT_WAYS), processes)


def _times(
    points: Sequence[GatherPoint],
    system: System,
    curves: tuple[str, Sequence[str]],
    processes: str,
) -> Figure:
    """Time against total size; `curves` are the system of the points, and the ways."""
    model, (name, names_of_ways) = system.model, curves
    title = (
        f"{system.name}, {processes}"
        f"   (assumed: α = {show_time(model.alpha)}, {1e-9 / model.beta:.3g} GB/s)"
    )
    figure, axes = _panels(title, 6.2)
    m = np.array(system.totals)
    for ax, distribution in zip(axes, PAPER_DISTRIBUTIONS, strict=True):
        for way in names_of_ways:
            _curve(ax, points, (name, distribution, way))
        ax.plot(
            m, 1e3 * model.beta * m, color="black", lw=1, ls=(0, (1, 1)), label="βm"
        )
        ax.set_yscale("log")
    _bytes_axis(axes, 4 if m[-1] / m[0] > 1000 else 2)
    _labels(figure, axes, "total size m", "time in ms")
    return figure


def _curve(ax: Axes, points: Sequence[GatherPoint], key: tuple[str, str, str]) -> None:
    """Draw the time of a way; the first way is drawn broad, so that curves on it can be
    seen."""
    curve_points = sorted(
        (p.m, 1e3 * p.seconds)
        for p in points
        if (p.system, p.distribution, p.way) == key
    )
    ax.plot(*zip(*curve_points, strict=True), label=key[2], **_style(key[2]))


def _style(way: str) -> dict[str, Any]:
    colour, marker, line, width = GATHER_STYLES[way]
    size = 7 if way == LINEAR_RING else 4
    style = {"color": colour, "marker": marker, "linestyle": line}
    return style | {"linewidth": width, "markersize": size}


def over_p(points: Sequence[GatherPoint]) -> Figure:
    """Time against the number of processes on the Linux cluster, for one total size."""
    title = (
        f"{LINUX.name}, m = {show_bytes(STUDIED_BYTES)}, B = {show_bytes(LINUX.size)}"
    )
    figure, axes = _panels(title, 6.2)
    names = {LINUX.name, *(system.name for system in LINUX_OVER_P)}
    linux_points = [p for p in points if p.system in names and p.m == STUDIED_BYTES]
    for ax, distribution in zip(axes, PAPER_DISTRIBUTIONS, strict=True):
        for way in ways(LINUX):
            curve_points = sorted(
                (p.processes, 1e3 * p.seconds)
                for p in linux_points
                if (p.distribution, p.way) == (distribution, way)
            )
            ax.plot(*zip(*curve_points, strict=True), label=way, **_style(way))
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        processes = sorted({p.processes for p in linux_points})
        ax.set_xticks(processes, list(map(str, processes)))
        ax.minorticks_off()
    _labels(figure, axes, "processes", "time in ms")
    return figure


def sizes(
    points: Sequence[GatherPoint],
    system: System,
    sizes_of_rules: Mapping[str, Mapping[str, Any]],
) -> Figure:
    """Time against block size; below the limit, the choices of the rules."""
    title = (
        f"{system.name}, {system.p} processes, m = {show_bytes(studied()[system])}: "
        "blocked ring with pieces of B bytes"
    )
    figure, axes = _panels(title, 6.6)
    for ax, distribution in zip(axes, PAPER_DISTRIBUTIONS, strict=True):
        multiple_of_size = {
            p.size: p.multiple
            for p in points
            if (p.system, p.distribution) == (system.name, distribution)
        }
        ax.plot(
            *zip(*sorted(multiple_of_size.items()), strict=True),
            color="#0072B2",
            lw=1.8,
        )
        _choices(ax, multiple_of_size, sizes_of_rules[distribution])
        ax.axhline(1, color="black", lw=1, ls=(0, (1, 1)), label="βm")
        ax.set(yscale="log", ylim=(MIN_MULTIPLE, MAX_MULTIPLE))
    _bytes_axis(axes, 4)
    _plain(axes, (1, 1.5, 2, 3, 5, 10))
    _labels(figure, axes, "block size B", "time / βm")
    return figure


def _choices(
    ax: Axes, multiples: Mapping[int, float], sizes_of_rules: Mapping[str, Any]
) -> None:
    """Mark each rule's size on a level of its own, with a line up to the curve.

    Marks of several rules at one size would cover each other otherwise.
    """
    levels = np.geomspace(1, MIN_MULTIPLE, len(RULE_MARKS) + 2)[1:-1]
    for level, (rule, (colour, marker)) in zip(levels, RULE_MARKS.items(), strict=True):
        size = sizes_of_rules[rule]
        x = [] if size is None else [size]
        style: dict[str, Any] = {"color": colour, "marker": marker, "ls": ""}
        style |= {"markersize": 11 if rule == "best" else 6.5, "zorder": 3}
        style |= {"markeredgecolor": "black", "markeredgewidth": 0.5}
        ax.plot(x, [level] * len(x), **style, label=rule)
        for position in x:
            ax.vlines(
                position, level, multiples[position], color=colour, lw=1.1, zorder=1
            )


def _plain(axes: Sequence[Axes], ticks: Sequence[float]) -> None:
    """Show plain numbers at the ticks of logarithmic axes."""
    for ax in axes:
        ax.set_yticks(ticks, [f"{y:g}" for y in ticks])
        ax.minorticks_off()


def balance(timelines: Mapping[str, Timeline], distribution: str) -> Figure:
    """The communication (blue) and idle time (yellow) of processes, on a time axis."""
    from matplotlib.patches import Patch

    figure, axes = panels((10, 5.4), 1, len(timelines), sharex=True, sharey=True)
    longest = max(timeline.time for timeline in timelines.values())
    for ax, (name, timeline) in zip(axes, timelines.items(), strict=True):
        share = timeline.time / longest
        _rows(ax, timeline, max(1, round(BALANCE_COLUMNS * share)))
        if share < 0.2:
            _magnified(ax, timeline)
        title = (
            f"{name}: {show_time(timeline.time)}, ports idle {timeline.idle:.0%} of it"
        )
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("time in ms", fontsize=9)
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set(xlim=(0, 1e3 * longest), ylim=(LINUX.p - 0.5, -0.5))
    axes[0].set_ylabel("process", fontsize=9)
    figure.suptitle(
        f"{LINUX.name}, {LINUX.p} processes, {distribution} distribution, "
        f"m = {show_bytes(STUDIED_BYTES)}",
        fontsize=11,
    )
    keys = [Patch(color=c, label=title) for title, c in PORT_COLOURS.items()]
    placement: dict[str, Any] = {"loc": "outside lower center", "ncols": len(keys)}
    figure.legend(handles=keys, fontsize=8.5, frameon=False, **placement)
    return figure


def _magnified(ax: Axes, timeline: Timeline) -> None:
    """Draw the rows of a short run again, beside the first, on a wider time axis."""
    inset = ax.inset_axes((0.22, 0.16, 0.76, 0.74))
    _rows(inset, timeline, round(0.76 * BALANCE_COLUMNS))
    inset.set_title("the same, magnified", fontsize=8.5)
    inset.set_xlabel("time in ms", fontsize=8)
    inset.tick_params(labelsize=7)


def _rows(ax: Axes, timeline: Timeline, columns: int) -> None:
    """Draw a row for each process; colours mix where a column of the picture covers
    several states, so that short messages are neither lost nor made longer."""
    from matplotlib.colors import to_rgb

    assert timeline.events is not None
    idle, one_port, two_ports = (
        np.array(to_rgb(colour)) for colour in PORT_COLOURS.values()
    )
    edges = np.linspace(0, timeline.time, columns + 1)
    rank, start, end, ports = busy(timeline.events, timeline.time)
    picture = np.tile(idle, (timeline.n, columns, 1))
    for number, colour in ((1, one_port), (2, two_ports)):
        has_number = ports == number
        for r in range(timeline.n):
            is_of_rank = has_number & (rank == r)
            share = covered(start[is_of_rank], end[is_of_rank], edges)
            picture[r] += share[:, None] * (colour - idle)
    extent = (0.0, 1e3 * timeline.time, timeline.n - 0.5, -0.5)
    ax.imshow(picture.clip(0, 1), extent=extent, aspect="auto", interpolation="nearest")


def covered(start: np.ndarray, end: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The share of each interval between edges that stretches of time cover."""
    if not len(start):
        return np.zeros(len(edges) - 1)
    times = np.stack([start, end], axis=1).ravel()
    sums = np.cumsum(np.stack([np.zeros(len(start)), end - start], axis=1))
    share: np.ndarray = np.diff(np.interp(edges, times, sums)) / np.diff(edges)
    return share
