"""Figures 3 to 5 of Moody, Ahn, de Supinski 2011, and the counts behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .moody2011 import (
    CHENG_SORTS,
    COLOR_LENGTHS,
    DAWN,
    FEW_GROUPS,
    SIERRA,
    SORTS,
    SPLITS,
    PeakMemory,
    SplitPoint,
)
from .moody2011_claims import SORT_LABELS, as_assumed, pick
from .output import legend, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PINKS = "#F0C4DC", "#DD9BC1", "#C06BA0", "#8A3C6F"
#: colour and marker; the colours survive colour blindness
SPLIT_STYLES: dict[str, tuple[str, str]] = {
    "allgather_group": ("#000000", "s"),
    "allgather_mpi": ("#999999", "D"),
    "gather_scatter": ("#E69F00", "^"),
    **dict(zip(CHENG_SORTS, zip(_PINKS, "<>hd", strict=True), strict=True)),
    "bitonic": ("#0072B2", "o"),
    "radix": ("#009E73", "v"),
    "radix_full": ("#B9D8A1", "v"),
    "hash": ("#D55E00", "P"),
    "hash64": ("#56B4E9", "X"),
}
Value = Callable[[SplitPoint], float]


def _milliseconds(p: SplitPoint) -> float:
    return 1e3 * p.seconds


def _curve(
    ax: Axes, curve_points: Sequence[tuple[int, float]], name: str, suffix: str = ""
) -> None:
    """Draw a value of an algorithm by number of processes; dashed with a suffix."""
    colour, marker = SPLIT_STYLES[name]
    xs, ys = zip(*sorted(curve_points), strict=True)
    style = "--" if suffix else "-"
    label = SORT_LABELS[name] + suffix
    ax.plot(xs, ys, color=colour, marker=marker, linestyle=style, label=label)


def _draw(
    ax: Axes, points: Sequence[SplitPoint], name: str, value: Value, suffix: str = ""
) -> None:
    _curve(ax, [(p.n, value(p)) for p in points], name, suffix)


def _short(n: int) -> str:
    return f"{n >> 10}K" if n >= 1024 else str(n)


def _axis(ax: Axes, title: str, sizes: Sequence[int]) -> None:
    ticks = sorted(set(sizes))[::2] if len(set(sizes)) > 4 else sorted(set(sizes))
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(ticks, [_short(n) for n in ticks])
    ax.set_title(title, fontsize=10)
    ax.set_xlabel("processes")
    ax.grid(True, linewidth=0.4, alpha=0.5)


def reorder(points: Sequence[SplitPoint]) -> Figure:
    """Figure 3: reordering without a split, by keys of 32 bits."""
    figure, axes = panels((11, 5.2), 1, 2, sharey=True)
    for ax, machine in zip(axes, (DAWN, SIERRA), strict=True):
        machine_points = [p for p in points if p.machine == machine]
        for name in SORTS:
            sort_points = pick(machine_points, name, figure=3, machine=machine)
            _draw(ax, sort_points, name, _milliseconds)
        _axis(ax, machine, [p.n for p in machine_points])
    few_bits = [p for p in as_assumed(points) if p.figure == 3 and p.bits < 32]
    _draw(axes[0], few_bits, "radix", _milliseconds, ", keys below N")
    axes[0].set_ylabel("time in ms, under the model")
    legend(figure, axes[0], loc="outside right upper", ncols=1, fontsize=9)
    return figure


def splits(points: Sequence[SplitPoint], number: int) -> Figure:
    """Figures 4 and 5: a split of strings, with many groups and with few."""
    figure, axes = panels((9, 4.4), 1, 2, sharey=True)
    titles = "(a) N/2 groups", f"(b) {FEW_GROUPS} groups"
    for ax, title, has_many_groups in zip(axes, titles, (True, False), strict=True):
        for length in COLOR_LENGTHS:
            suffix = f", {length} characters" if length == COLOR_LENGTHS[1] else ""
            for name in SPLITS:
                length_points = pick(points, name, figure=number, length=length)
                group_points = [
                    p
                    for p in length_points
                    if p.groups == (p.n // 2 if has_many_groups else FEW_GROUPS)
                ]
                _draw(ax, group_points, name, _milliseconds, suffix)
        _axis(ax, title, [p.n for p in points])
    axes[0].set_ylabel("time in ms, under the model")
    legend(figure, axes[0], ncols=2, fontsize=9)
    return figure


def counts(points: Sequence[SplitPoint]) -> Figure:
    """Rounds, messages and bytes of a process, when reordering and when splitting."""
    figure, axes = panels((10, 6.4), 2, 3, sharey="col")
    values: dict[str, Value] = {
        "rounds": lambda p: p.rounds,
        "messages, average of a process": lambda p: p.messages / p.n,
        "bytes, of the process that sends most": lambda p: p.busiest,
    }
    for row, names, words in (
        (axes[0], SORTS, "reorder"),
        (axes[1], SPLITS, f"split, {FEW_GROUPS} groups, {COLOR_LENGTHS[0]} characters"),
    ):
        for ax, (title, value) in zip(row, values.items(), strict=True):
            for name in names:
                algorithm_points = pick(points, name, figure=3)
                if names is SPLITS:
                    split_place = {
                        "figure": 4,
                        "groups": FEW_GROUPS,
                        "length": COLOR_LENGTHS[0],
                    }
                    algorithm_points = pick(points, name, **split_place)
                _draw(ax, algorithm_points, name, value)
            _axis(ax, title, [p.n for p in points])
        row[0].set_ylabel(words)
    legend(figure, axes[0][0], axes[1][0], ncols=6, fontsize=9)
    return figure


def memory(weighed: Sequence[PeakMemory]) -> Figure:
    """The peak memory of a process, by algorithm and number of groups."""
    figure, axes = panels((10, 4.2), 1, 3, sharey=True)
    kinds: dict[str, Callable[[PeakMemory], bool]] = {
        "reorder": lambda m: m.groups == 0,
        f"split, {FEW_GROUPS} groups": lambda m: m.groups == FEW_GROUPS,
        "split, N/2 groups": lambda m: m.groups == m.n // 2,
    }
    for ax, (title, is_of_kind) in zip(axes, kinds.items(), strict=True):
        kind_peaks = [m for m in weighed if is_of_kind(m)]
        for name in dict.fromkeys(m.algorithm for m in kind_peaks):
            _curve(ax, [(m.n, m.peak) for m in kind_peaks if m.algorithm == name], name)
        _axis(ax, title, [m.n for m in weighed])
    axes[0].set_ylabel("bytes")
    legend(figure, *axes, ncols=6, fontsize=9)
    return figure
