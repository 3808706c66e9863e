"""Figures 1 to 5 of Silva and Silva 1999."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..cost.machine import AlphaBeta
from ..cost.timeline import Events
from ..draw.palette import EMPTY, FAINT, INK
from .output import panels
from .silva1999 import Pattern, ProcessTimes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: a colour for each step of a pattern, and for each way of a measurement
STEP_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
TIMED_STYLES = {
    "inside, the library": ("#999999", "s", "--"),
    "between, the library": ("#E69F00", "^", "-"),
    "between, Silva's": ("#0072B2", "o", "-"),
    "between, isthmus": ("#009E73", "D", "-"),
}


def _depths(pattern: Pattern, events: Events) -> np.ndarray:
    """How many messages inside its group are between a rank and its leader."""
    group = np.array([g for g, _ in pattern.seats])
    inside = group[events.source] == group[events.target]
    pairs = np.stack((events.source, events.target), 1)[inside].tolist()
    leaders = {int(np.flatnonzero(group == g)[0]) for g in set(group.tolist())}
    depth = np.full(len(group), -1)
    depth[list(leaders)] = 0
    while (depth < 0).any() and pairs:
        before = depth.copy()
        for a, b in pairs:
            for near, far in ((a, b), (b, a)):
                if before[near] >= 0 and before[far] < 0:
                    depth[far] = before[near] + 1
        if (before == depth).all():
            break
    found: np.ndarray = np.maximum(depth, 0)
    return found


def _places(pattern: Pattern, events: Events) -> dict[tuple[int, int], np.ndarray]:
    """Where each process is: the leaders face each other, those who are further from
    them lie further out, in rank order."""
    depth = _depths(pattern, events)
    out = dict(zip(pattern.seats, depth.tolist(), strict=True))
    out |= dict.fromkeys(pattern.passive, 0)
    sizes = [1 + max(i for h, i in out if h == g) for g in (0, 1)]
    tallest = max(sizes)
    found = {}
    for (g, i), d in out.items():
        step = tallest / sizes[g]
        x = (-1.0 - d) if g == 0 else (1.0 + d)
        found[g, i] = np.array((x, -(i + 0.5) * step))
    return found


def _circle(ax: Axes, at: np.ndarray, text: str, passive: bool) -> None:
    face, edge = (EMPTY, FAINT) if passive else ("white", INK)
    ax.text(
        at[0],
        at[1],
        text,
        ha="center",
        va="center",
        fontsize=8,
        color=edge,
        zorder=3,
        bbox={"boxstyle": "circle,pad=0.28", "facecolor": face, "edgecolor": edge},
    )


def _panel(
    ax: Axes, pattern: Pattern, events: Events, rounds: range, title: str
) -> None:
    """The messages of some rounds, each with the step in which it goes."""
    places = _places(pattern, events)
    at = [places[seat] for seat in pattern.seats]
    for source, target, when, k in zip(
        events.source, events.target, events.start, events.round, strict=True
    ):
        if k not in rounds:
            continue
        step = round(float(when))
        # those of the second group bend the other way: the picture is symmetric
        bend = -0.12 if pattern.seats[source][0] else 0.12
        colour = STEP_COLOURS[step % len(STEP_COLOURS)]
        ax.annotate(
            "",
            at[target],
            at[source],
            arrowprops={
                "arrowstyle": "-|>",
                "color": colour,
                "shrinkA": 10,
                "shrinkB": 10,
                "connectionstyle": f"arc3,rad={bend}",
                "linewidth": 1.3,
            },
        )
        a, b = at[source], at[target]
        aside = np.array(((b - a)[1], (a - b)[0])) * bend * 0.5
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        x, y = a + 0.6 * (b - a) + aside
        text = ax.text(x, y, str(step + 1), color=colour, fontsize=8, bbox=box)
        text.set(ha="center", va="center")
    for seat, place in places.items():
        _circle(ax, place, str(seat[1]), seat in pattern.passive)
    xs, ys = np.array(list(places.values())).T
    ax.set_xlim(xs.min() - 0.6, xs.max() + 0.6)
    ax.set_ylim(ys.min() - 0.8, max(ys.max() + 0.8, 0.4))
    ax.set_title(title, fontsize=10)
    ax.axis("off")


def pattern_figure(pattern: Pattern) -> Figure:
    """A pattern; the number at a message is the step in which it goes, if every message
    takes one. An operation of two phases has a panel for each."""
    line = pattern.schedule.simulate(AlphaBeta(1.0, 0.0), record=True)
    assert line.events is not None
    last = line.rounds - 1
    phases = {"": range(last + 1)}
    if len(pattern.schedule.groups) == 2 and not pattern.passive:
        phases = {
            ": counts and sums": range(last),
            ": the scatters": range(last, last + 1),
        }
    tall = 0.36 * max(sum(g == h for h, _ in pattern.seats) for g in (0, 1))
    figure, axes = panels((5.6 * len(phases), max(tall, 2.8)), 1, len(phases))
    for ax, (words, rounds) in zip(np.ravel(axes), phases.items(), strict=True):
        _panel(ax, pattern, line.events, rounds, pattern.title + words)
    return figure


def times(found: Sequence[ProcessTimes], operation: str, where: str) -> Figure:
    """Figures 4 and 5: the mean over all processes against the size."""
    figure, ax = panels((6.4, 4.4))
    for label, (colour, marker, line) in TIMED_STYLES.items():
        some = [x for x in found if (x.operation, x.label) == (operation, label)]
        sizes = [x.nbytes for x in some]
        means = [1e3 * x.mean for x in some]
        style = {"color": colour, "marker": marker, "linestyle": line}
        ax.plot(sizes, means, label=label, **style)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ticks = sorted({x.nbytes for x in found if x.operation == operation})
    names = [f"{n >> 20}M" if n >> 20 else f"{n >> 10}K" for n in ticks]
    ax.set_xticks(ticks, names)
    ax.minorticks_off()
    ax.grid(True, linewidth=0.4, alpha=0.5)
    ax.set_xlabel("bytes of the vector")
    ax.set_ylabel("mean time of the processes in ms")
    ax.set_title(f"{operation.capitalize()} of 8 processes, {where}", fontsize=10)
    ax.legend()
    return figure
