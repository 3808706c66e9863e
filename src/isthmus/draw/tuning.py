"""Predicted against measured times: dots are measured, lines are predicted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Protocol

from .bench import COLOURS, NATIVE, plain, sheet
from .palette import FAINT

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Point(Protocol):
    """A way to do something of some size: seconds as measured and as predicted."""

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


def _size(n: int) -> str:
    """A power of two, in its unit."""
    for name, unit in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= unit:
            return f"{n / unit:.3g} {name}"
    return f"{n} B"


def _colours(points: Sequence[Point]) -> dict[str, str]:
    """Of each algorithm, the same in all panels."""
    names = [n for n in dict.fromkeys(p.algorithm for p in points) if n != "native"]
    return {"native": NATIVE} | dict(zip(names, cycle(COLOURS), strict=False))


def _panel(axes: Any, points: Sequence[Point], colours: dict[str, str]) -> None:
    """The algorithms of one kind."""
    for name in dict.fromkeys(point.algorithm for point in points):
        colour = colours[name]
        here = sorted((p for p in points if p.algorithm == name), key=lambda p: p.size)
        xs = [p.size for p in here]
        style: dict[str, Any] = {"color": colour, "ms": 4, "alpha": 0.85}
        axes.plot(xs, [p.measured for p in here], "o", label=name, **style)
        known = [(p.size, p.predicted) for p in here if p.predicted is not None]
        if known:
            axes.plot(*zip(*known, strict=True), "-", color=colour, lw=1.2)
    sizes = sorted({p.size for p in points})
    axes.set(xscale="log", yscale="log", xlabel="block of a rank")
    axes.set_xticks(sizes[::2], [_size(n) for n in sizes[::2]])
    axes.set_xticks([], minor=True)
    axes.set_title(points[0].kind, fontsize=8, loc="left")
    axes.xaxis.label.set_fontsize(7)
    axes.legend(fontsize=6.5, frameon=False)
    plain(axes)


def figure(points: Sequence[Point], subtitle: str) -> Figure:
    """A panel for each kind."""
    kinds = list(dict.fromkeys(point.kind for point in points))
    picture, grid = sheet(3.1 * len(kinds), 2.9, 1, len(kinds))
    for kind, axes in zip(kinds, grid.flat, strict=True):
        here = [point for point in points if point.kind == kind]
        _panel(axes, here, _colours(points))
    grid[0, 0].set_ylabel("seconds", fontsize=7)
    height = picture.get_figheight()
    at: dict[str, Any] = {"x": 0.012, "ha": "left", "va": "top"}
    title = "Measured (dots) and predicted (lines)"
    picture.text(y=1 - 0.1 / height, s=title, fontsize=11, weight="bold", **at)
    picture.text(y=1 - 0.34 / height, s=subtitle, fontsize=8, color=FAINT, **at)
    found: Figure = picture
    return found
