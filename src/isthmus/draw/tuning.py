"""Predicted against measured times: dots are measured, lines are predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..units import show_bytes
from .bench import colours, plain, sheet, titles

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TuningPoint(Protocol):
    """The measured and the predicted seconds of an algorithm at a size."""

    @property
    def kind(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def measured(self) -> float: ...
    @property
    def predicted(self) -> float | None: ...


def _panel(axes: Any, points: Sequence[TuningPoint], paint: dict[str, str]) -> None:
    """Draw the algorithms of a kind."""
    for name in dict.fromkeys(point.algorithm for point in points):
        colour = paint[name]
        line = sorted((p for p in points if p.algorithm == name), key=lambda p: p.size)
        xs = [p.size for p in line]
        style: dict[str, Any] = {"color": colour, "ms": 4, "alpha": 0.85}
        axes.plot(xs, [p.measured for p in line], "o", label=name, **style)
        predicted = [(p.size, p.predicted) for p in line if p.predicted is not None]
        if predicted:
            axes.plot(*zip(*predicted, strict=True), "-", color=colour, lw=1.2)
    sizes = sorted({p.size for p in points})
    axes.set(xscale="log", yscale="log", xlabel="block of a rank")
    axes.set_xticks(sizes[::2], [show_bytes(n) for n in sizes[::2]])
    axes.set_xticks([], minor=True)
    axes.set_title(points[0].kind, fontsize=8, loc="left")
    axes.xaxis.label.set_fontsize(7)
    axes.legend(fontsize=6.5, frameon=False)
    plain(axes)


def figure(points: Sequence[TuningPoint], subtitle: str) -> Figure:
    """A panel for each kind."""
    kinds = list(dict.fromkeys(point.kind for point in points))
    picture, grid = sheet(3.1 * len(kinds), 2.9, 1, len(kinds))
    for kind, axes in zip(kinds, grid.flat, strict=True):
        of_kind = [point for point in points if point.kind == kind]
        _panel(axes, of_kind, colours(point.algorithm for point in points))
    grid[0, 0].set_ylabel("seconds", fontsize=7)
    titles(picture, "Measured (dots) and predicted (lines)", subtitle, 0.012)
    return picture
