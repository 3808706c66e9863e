"""Measured times: as lines against the size, a panel for each kind, or as bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

from ..units import BINARY_UNITS, DECIMAL_UNITS, show_bytes
from .palette import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIBRARY_BAR_COLOUR, LIMIT_COLOUR = "#8a8a8a", "#222222"
ALGORITHM_COLOURS = ("#e6550d", "#3182bd", "#31a354", "#756bb1", "#c51b8a", "#a6761d")
CHARTS_IN_A_ROW = 4


@dataclass(frozen=True)
class Dot:
    """The median time of a contender at a size, with an interval, in seconds."""

    kind: str
    contender: str
    size: int
    seconds: float
    low: float
    high: float
    limit: float | None = None


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each contender; `native` is always grey, to avoid mistakes between
    pictures."""
    algorithms = [name for name in dict.fromkeys(names) if name != "native"]
    return {"native": LIBRARY_BAR_COLOUR} | dict(
        zip(algorithms, cycle(ALGORITHM_COLOURS), strict=False)
    )


def figure(title: str, subtitle: str, dots: Sequence[Dot]) -> Figure:
    """Lines if a kind has several sizes, else bars."""
    sizes = {(dot.kind, dot.size) for dot in dots}
    kinds = list(dict.fromkeys(dot.kind for dot in dots))
    if len(sizes) > len(kinds):
        picture: Figure = _lines(kinds, dots, title)
    else:
        picture = _bars(kinds, dots)
    titles(picture, title, subtitle, 0.12 / picture.get_figwidth())
    return picture


def titles(picture: Figure, title: str, subtitle: str, left: float) -> None:
    """Write the two titles above a figure, `left` of the width from the left edge."""
    height = picture.get_figheight()
    at: dict[str, Any] = {"x": left, "ha": "left", "va": "top"}
    picture.text(y=1 - 0.1 / height, s=title, fontsize=11, weight="bold", **at)
    picture.text(y=1 - 0.34 / height, s=subtitle, fontsize=8, color=FAINT, **at)


def sheet(width: float, height: float, rows: int, columns: int) -> tuple[Figure, Any]:
    """A figure with space for titles, and the axes of a grid."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(width, height + 0.6), layout="constrained")
    engine: Any = picture.get_layout_engine()
    engine.set(rect=(0, 0, 1, height / (height + 0.6)))
    return picture, picture.subplots(rows, columns, squeeze=False, sharey=True)


def plain(axes: Any) -> None:
    """Hide the upper and the right border; small ticks."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(which="both", labelsize=7, colors=INK)


def units_of(sizes: Sequence[int]) -> Mapping[str, int]:
    """Powers of 1000 if all sizes are multiples of 1000, else powers of 1024."""
    return DECIMAL_UNITS if all(n % 1000 == 0 for n in sizes) else BINARY_UNITS


def _lines(kinds: list[str], dots: Sequence[Dot], title: str) -> Any:
    """Time against size, both on logarithmic axes."""
    columns = min(len(kinds), CHARTS_IN_A_ROW)
    rows = -(-len(kinds) // columns)
    picture, grid = sheet(max(2.6 * columns, 5.0), 2.4 * rows, rows, columns)
    for axes in grid.flat[len(kinds) :]:
        axes.set_visible(False)
    for kind, axes in zip(kinds, grid.flat, strict=False):
        panel = [dot for dot in dots if dot.kind == kind]
        for name, colour in colours(d.contender for d in dots).items():
            line = sorted(
                (d for d in panel if d.contender == name), key=lambda d: d.size
            )
            xs = [dot.size for dot in line]
            axes.plot(
                xs, [d.seconds for d in line], "o-", ms=3, color=colour, label=name
            )
            bounds = [dot.low for dot in line], [dot.high for dot in line]
            axes.fill_between(xs, *bounds, color=colour, alpha=0.25, lw=0)
        limits = sorted({(d.size, d.limit) for d in panel if d.limit is not None})
        if limits:
            axes.plot(
                *zip(*limits, strict=True),
                "--",
                color=LIMIT_COLOUR,
                lw=1,
                marker="_",
                label="limit",
            )
        sizes = sorted({dot.size for dot in panel})
        axes.set(xscale="log", yscale="log")
        axes.set_xticks(sizes, [show_bytes(n, units_of(sizes)) for n in sizes])
        axes.set_xticks([], minor=True)
        if len(kinds) > 1 or kind not in title.lower():
            axes.set_title(kind, fontsize=8, loc="left")
        plain(axes)
    for axes in grid[-1]:
        axes.set_xlabel("block of a rank", fontsize=7)
    for axes in grid[:, 0]:
        axes.set_ylabel("seconds", fontsize=7)
    grid[0, 0].legend(fontsize=7, frameon=False)
    return picture


def _bars(kinds: list[str], dots: Sequence[Dot]) -> Any:
    """A group of bars for each kind, all on a common scale."""
    picture, ((axes,),) = sheet(max(1.5 + 0.75 * len(kinds), 5.0), 3.0, 1, 1)
    paint = colours(d.contender for d in dots)
    width = 0.8 / len(paint)
    for k, (name, colour) in enumerate(paint.items()):
        bars = [(kinds.index(d.kind), d) for d in dots if d.contender == name]
        xs = [i + (k - (len(paint) - 1) / 2) * width for i, _ in bars]
        times = [dot.seconds for _, dot in bars]
        errors = [
            [d.seconds - d.low for _, d in bars],
            [d.high - d.seconds for _, d in bars],
        ]
        style: dict[str, Any] = {"color": colour, "label": name, "ecolor": INK}
        axes.bar(xs, times, width * 0.92, yerr=errors, error_kw={"lw": 0.8}, **style)
    limits = {kinds.index(d.kind): d.limit for d in dots if d.limit is not None}
    for n, (i, limit) in enumerate(sorted(limits.items())):
        label = "limit" if n == 0 else None
        axes.plot(
            [i - 0.45, i + 0.45],
            [limit] * 2,
            "--",
            color=LIMIT_COLOUR,
            lw=1,
            label=label,
        )
    axes.set(xticks=range(len(kinds)))
    tilt: dict[str, Any] = {"rotation": 30, "ha": "right"} if len(kinds) > 8 else {}
    axes.set_xticklabels([kind or "all" for kind in kinds], **tilt)
    axes.set_ylabel("seconds", fontsize=7)
    plain(axes)
    above: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1)}
    axes.legend(fontsize=7, frameon=False, ncols=4, **above)
    return picture
