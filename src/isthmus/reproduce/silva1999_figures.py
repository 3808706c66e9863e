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
    """For each rank, the number of messages inside its group to the leader."""
    group = np.array([g for g, _ in pattern.seats])
    inside = group[events.source] == group[events.target]
    pairs = np.stack((events.source, events.target), 1)[inside].tolist()
    leaders = {int(np.flatnonzero(group == g)[0]) for g in set(group.tolist())}
    depth = np.full(len(group), -1)
    depth[list(leaders)] = 0
    while (depth < 0).any() and pairs:
        before = depth.copy()
        for a, b in pairs:
            for reached, unreached in ((a, b), (b, a)):
                if before[reached] >= 0 and before[unreached] < 0:
                    depth[unreached] = before[reached] + 1
        if (before == depth).all():
            break
    non_negative: np.ndarray = np.maximum(depth, 0)
    return non_negative


def _places(pattern: Pattern, events: Events) -> dict[tuple[int, int], np.ndarray]:
    """The position of each process in a picture.

    Leaders face each other; ranks further from their leader lie further out, in rank
    order.
    """
    depth = _depths(pattern, events)
    depth_of = dict(zip(pattern.seats, depth.tolist(), strict=True))
    depth_of |= dict.fromkeys(pattern.passive, 0)
    sizes = [1 + max(i for h, i in depth_of if h == g) for g in (0, 1)]
    largest_group = max(sizes)
    places = {}
    for (g, i), distance in depth_of.items():
        step = largest_group / sizes[g]
        x = (-1.0 - distance) if g == 0 else (1.0 + distance)
        places[g, i] = np.array((x, -(i + 0.5) * step))
    return places


def _circle(ax: Axes, place: np.ndarray, text: str, is_passive: bool) -> None:
    face, edge = (EMPTY, FAINT) if is_passive else ("white", INK)
    ax.text(
        place[0],
        place[1],
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
    """Draw the messages of some rounds, each with the number of its step."""
    places = _places(pattern, events)
    rank_places = [places[seat] for seat in pattern.seats]
    for source, target, start, k in zip(
        events.source, events.target, events.start, events.round, strict=True
    ):
        if k not in rounds:
            continue
        step = round(float(start))
        # Arrows of the second group bend the other way for a symmetric picture.
        bend = -0.12 if pattern.seats[source][0] else 0.12
        colour = STEP_COLOURS[step % len(STEP_COLOURS)]
        ax.annotate(
            "",
            rank_places[target],
            rank_places[source],
            arrowprops={
                "arrowstyle": "-|>",
                "color": colour,
                "shrinkA": 10,
                "shrinkB": 10,
                "connectionstyle": f"arc3,rad={bend}",
                "linewidth": 1.3,
            },
        )
        a, b = rank_places[source], rank_places[target]
        offset = np.array(((b - a)[1], (a - b)[0])) * bend * 0.5
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        x, y = a + 0.6 * (b - a) + offset
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
    """A pattern; the number at a message is its step, if every message takes one step.

    An operation of two phases has a panel for each.
    """
    timeline = pattern.schedule.simulate(AlphaBeta(1.0, 0.0), record=True)
    assert timeline.events is not None
    last = timeline.rounds - 1
    phases = {"": range(last + 1)}
    if len(pattern.schedule.groups) == 2 and not pattern.passive:
        phases = {
            ": counts and sums": range(last),
            ": the scatters": range(last, last + 1),
        }
    tall = 0.36 * max(sum(g == h for h, _ in pattern.seats) for g in (0, 1))
    figure, axes = panels((5.6 * len(phases), max(tall, 2.8)), 1, len(phases))
    for ax, (words, rounds) in zip(np.ravel(axes), phases.items(), strict=True):
        _panel(ax, pattern, timeline.events, rounds, pattern.title + words)
    return figure


def times(
    process_times: Sequence[ProcessTimes], operation: str, place_words: str
) -> Figure:
    """Figures 4 and 5: the mean over all processes against the size."""
    figure, ax = panels((6.4, 4.4))
    for label, (colour, marker, line_style) in TIMED_STYLES.items():
        label_times = [
            x for x in process_times if (x.operation, x.label) == (operation, label)
        ]
        sizes = [x.nbytes for x in label_times]
        means = [1e3 * x.mean for x in label_times]
        style = {"color": colour, "marker": marker, "linestyle": line_style}
        ax.plot(sizes, means, label=label, **style)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ticks = sorted({x.nbytes for x in process_times if x.operation == operation})
    names = [f"{n >> 20}M" if n >> 20 else f"{n >> 10}K" for n in ticks]
    ax.set_xticks(ticks, names)
    ax.minorticks_off()
    ax.grid(True, linewidth=0.4, alpha=0.5)
    ax.set_xlabel("bytes of the vector")
    ax.set_ylabel("mean time of the processes in ms")
    ax.set_title(f"{operation.capitalize()} of 8 processes, {place_words}", fontsize=10)
    ax.legend()
    return figure
