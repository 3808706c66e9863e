"""Figures 1 to 6 of Kang, Träff et al. 2019."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..collectives.records import schedule
from .kang2019 import CLUSTERS, SETTINGS, ClusterShape, ExchangePoint, Setting
from .output import legend, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: label, colour and marker of each algorithm; the colours survive colour blindness
EXCHANGE_STYLES: dict[str, tuple[str, str, str]] = {
    "root_gathering_sequential": ("Root gathering", "#999999", "s"),
    "two_step+ring": ("EuroMPI", "#E69F00", "^"),
    "segmented+ring": ("Algorithm 1", "#0072B2", "o"),
    "balanced+ring": ("Algorithm 2", "#0072B2", "o"),
    "node_aware": ("Node-aware", "#009E73", "D"),
}
#: a colour and a marker for each setting
SETTING_MARKS: tuple[tuple[str, str], ...] = (
    ("#000000", "o"),
    ("#E69F00", "s"),
    ("#56B4E9", "^"),
    ("#009E73", "v"),
    ("#F0E442", "D"),
    ("#0072B2", "P"),
    ("#D55E00", "X"),
    ("#CC79A7", "*"),
)


def exchanges() -> Iterator[tuple[str, Any]]:
    """Figures 1 to 3 as schedules: the examples of Algorithms 1 and 2."""
    yield (
        "figure1",
        schedule("inter_allgather", "segmented+ring", p=6, q=2, ka=6, kb=6),
    )
    yield (
        "figure2",
        schedule("inter_allgather", "segmented+ring", p=8, q=3, ka=6, kb=6),
    )
    # a_3 and a_4 have two receivers each, and b_1 and b_2 two senders each
    a, b = [3, 3, 4, 5, 4, 5], [7, 5, 8, 4]
    yield "figure3", schedule("inter_allgatherv", "balanced+ring", a=a, b=b)


def _curve(
    points: Sequence[ExchangePoint], setting: Setting, cluster: ClusterShape, name: str
) -> tuple[list[int], list[float]]:
    curve_points = sorted(
        (p.per_node, p.seconds)
        for p in points
        if (p.setting, p.cluster, p.algorithm) == (setting.number, cluster.name, name)
    )
    return [x for x, _ in curve_points], [y for _, y in curve_points]


def _axis(ax: Axes) -> None:
    """Show bytes per node on the axis, in powers of two, as people read sizes."""
    ticks = [1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 23]
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, ["64K", "256K", "1M", "4M", "8M"])
    ax.minorticks_off()
    ax.grid(True, linewidth=0.4, alpha=0.5)


def times(points: Sequence[ExchangePoint], settings: Sequence[Setting]) -> Figure:
    """Figures 4 and 5: completion time against message size."""
    figure, axes = panels((13, 9), len(CLUSTERS), len(settings), sharex=True)
    for row, cluster in zip(axes, CLUSTERS, strict=True):
        for ax, setting in zip(row, settings, strict=True):
            for name, (label, colour, marker) in EXCHANGE_STYLES.items():
                x, y = _curve(points, setting, cluster, name)
                if x:
                    ms = [1e3 * t for t in y]
                    # Otherwise the curve of Algorithm 1 would often hide EuroMPI's.
                    is_above = name.startswith("two_step")
                    ax.plot(
                        x,
                        ms,
                        color=colour,
                        marker=marker,
                        markersize=3 if is_above else 6,
                        linewidth=1.2 if is_above else 2,
                        linestyle="--" if is_above else "-",
                        zorder=3 if is_above else 2,
                        label=label,
                    )
            ax.set_title(f"{cluster.n} ({setting.number})", fontsize=10)
            ax.set_yscale("log")
            _axis(ax)
        row[0].set_ylabel(f"{cluster.name} processes\nsimulated time in ms")
    for ax in axes[-1]:
        ax.set_xlabel("largest message of a node in bytes")
    for ax, setting in zip(axes[0], settings, strict=True):
        ax.set_title(f"{setting.text}\n{ax.get_title()}", fontsize=10)
    legend(figure, axes[-1][0])  # the last row has all algorithms
    return figure


def improvements(points: Sequence[ExchangePoint]) -> Figure:
    """Figure 6: how many times faster than root gathering."""
    figure, axes = panels((13, 4.8), 1, len(CLUSTERS), sharey=True)
    for ax, cluster in zip(axes, CLUSTERS, strict=True):
        for setting, (colour, marker) in zip(SETTINGS, SETTING_MARKS, strict=True):
            x, library_seconds = _curve(
                points, setting, cluster, "root_gathering_sequential"
            )
            _, paper_seconds = _curve(
                points, setting, cluster, f"{setting.paper_algorithm}+ring"
            )
            gains = [a / b for a, b in zip(library_seconds, paper_seconds, strict=True)]
            operation = "Allgatherv" if setting.irregular else "Allgather"
            ax.plot(
                x,
                gains,
                color=colour,
                marker=marker,
                markersize=5,
                markeredgecolor="black",
                markeredgewidth=0.4,
                label=f"{setting.number}: {operation}, {setting.text}",
            )
        for expected in sorted({s.expected for s in SETTINGS}):
            ax.axhline(expected, color="grey", linestyle=":", linewidth=0.8, zorder=0)
        ax.set_title(f"{cluster.n} processes, {cluster.name}")
        ax.set_xlabel("largest message of a node in bytes")
        _axis(ax)
    axes[0].set_ylabel("simulated: times faster than root gathering")
    axes[0].lines[-1].set_label("expected, Eq. (5)")
    legend(figure, axes[0], ncols=3, fontsize=9)
    return figure
