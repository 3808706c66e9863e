"""The paper a schedule is drawn on: where rows and columns lie, bars, words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .palette import EMPTY, INK, Colour, Group, colours, on

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: with more ranks than this, arrows would hide each other
ARROWS = 16

# inches
ROW, BAR, SCRATCH, BETWEEN = 0.36, 0.2, 0.06, 0.3
LEFT, TOP, BOTTOM, RIGHT = 0.8, 0.95, 1.0, 0.3
#: more ranks than any picture has
COMBINED = 1 << 20
#: the least width of a part that has its owner's name in it
NAMED = 0.19


@dataclass(frozen=True)
class Sheet:
    """Where things lie, in inches from the lower left corner."""

    figure: Figure
    axes: Any
    groups: list[Group]
    paint: list[Colour]
    cell: float
    gutter: float
    row: float
    height: float

    @property
    def arrows(self) -> bool:
        """Whether there is room for arrows."""
        return len(self.paint) <= ARROWS

    def x(self, column: int) -> float:
        """The left edge of a column's bars; column 0 is what ranks contribute."""
        return LEFT + column * (self.cell + self.gutter)

    def y(self, rank: int) -> float:
        """The middle of a rank's bar."""
        second = len(self.groups) > 1 and rank >= self.groups[1].ranks.start
        return self.height - TOP - rank * self.row - ROW / 2 - BETWEEN * second

    def label(self, rank: int) -> str:
        """What a rank is called."""
        return next(g.label(rank) for g in self.groups if rank in g.ranks)

    def box(self, x: float, y: float, w: float, h: float, colour: Any) -> None:
        """A filled rectangle from the middle of its left edge."""
        from matplotlib.patches import Rectangle

        self.axes.add_patch(Rectangle((x, y - h / 2), w, h, facecolor=colour, lw=0))

    def text(self, x: float, y: float, words: str, size: float, **style: Any) -> None:
        """Words, centred unless told otherwise."""
        style = {"ha": "center", "va": "center", "color": INK} | style
        self.axes.text(x, y, words, fontsize=size, **style)

    def bar(
        self, x: float, y: float, marks: np.ndarray, scale: float, thick: float = BAR
    ) -> None:
        """A buffer, each part in the colour of the rank it is from."""
        if (marks["lo"] < 0).any():
            self.box(x, y, len(marks) * scale, thick, EMPTY)
        for start, end, key in runs(_keys(marks)):
            owner, combined = divmod(key, COMBINED)
            if owner < 0:
                continue
            left, width = x + start * scale, (end - start) * scale
            gap, colour = min(0.012, width / 8), self.paint[owner]
            self.box(left + gap, y, width - 2 * gap, thick, colour)
            if thick == BAR and width > NAMED:
                name = f"Σ{combined}" if combined > 1 else self.label(owner)
                self.text(left + width / 2, y - 0.005, name, 6.5, color=on(colour))


def combined(marks: np.ndarray) -> np.ndarray:
    """How many ranks' contributions each element is of."""
    if "who" not in (marks.dtype.names or ()):
        return np.asarray(marks["hi"] - marks["lo"])
    who = marks["who"]
    octets = who.view(np.uint8).reshape(len(marks), 8 * who.shape[1])
    return np.asarray(np.unpackbits(octets, axis=1).sum(axis=1, dtype=np.int64))


def _keys(marks: np.ndarray) -> np.ndarray:
    """The lowest rank and how many, as one number."""
    return np.asarray(marks["lo"].astype(np.int64) * COMBINED + combined(marks))


def runs(values: np.ndarray) -> Iterator[tuple[int, int, Any]]:
    """Start, end and value of every stretch of equal values."""
    if len(values) == 0:
        return
    edges = np.flatnonzero(values[1:] != values[:-1]) + 1
    bounds = [0, *edges.tolist(), len(values)]
    for start, end in pairwise(bounds):
        yield start, end, values[start].item()


def blank_sheet(groups: list[Group], columns: int, scratch: bool) -> Sheet:
    """A sheet for so many columns beside the contributions, with nothing on it."""
    from matplotlib.figure import Figure

    n = sum(len(g.ranks) for g in groups)
    row = ROW + 0.12 * scratch
    cell = min(max(15 / (columns + 1) - 0.7, 0.95), 1.9)
    gutter = min(max(0.55, 0.075 * n), 1.1) if n <= ARROWS else 0.5
    width = max(LEFT + RIGHT + (columns + 1) * cell + columns * gutter, 7.0)
    height = TOP + n * row + BETWEEN * (len(groups) - 1) + BOTTOM
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return Sheet(figure, axes, groups, colours(groups), cell, gutter, row, height)
