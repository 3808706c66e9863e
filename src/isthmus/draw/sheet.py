"""The paper a schedule is drawn on: where rows and columns lie, bars, words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .palette import EMPTY, INK, Colour, Group, Node, colours, on

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: with more ranks than this, arrows would hide each other
ARROWS = 16

# inches
ROW, BAR, SCRATCH, BETWEEN = 0.36, 0.2, 0.06, 0.3
LEFT, TOP, BOTTOM, RIGHT = 0.8, 0.95, 1.0, 0.3
#: of the box around a node: its margin, and what a meeting takes after a column
MARGIN, MEETING = 0.06, 0.18
#: more ranks than any picture has
COMBINED = 1 << 20
#: the least width of a part that has its owner's name in it
NAMED = 0.19


@dataclass(frozen=True)
class Rows:
    """Where rows begin, in inches below the first: those of the ranks, those of the
    memory that the ranks of a node share, and where each node begins and ends."""

    ranks: dict[int, float]
    shared: dict[int, float]
    frames: list[tuple[float, float]]
    total: float


def rows_of(
    blocks: Sequence[Sequence[int]],
    row: float,
    begin: float = 0.0,
    node_memory: Sequence[bool] = (),
    between: float = BETWEEN,
) -> Rows:
    """Blocks of ranks one below the other; with a row for memory, where there is."""
    ranks: dict[int, float] = {}
    shared: dict[int, float] = {}
    frames, at = [], begin
    for k, block in enumerate(blocks):
        first = at
        for rank in block:
            ranks[rank], at = at, at + row
        if k < len(node_memory) and node_memory[k]:
            shared[k], at = at, at + ROW
        frames.append((first, at))
        at += between
    return Rows(ranks, shared, frames, at - between)


@dataclass(frozen=True)
class Sheet:
    """Where things lie, in inches from the lower left corner."""

    figure: Figure
    axes: Any
    groups: list[Group]
    #: with their boxes, if they are drawn
    nodes: list[Node]
    paint: list[Colour]
    cell: float
    gutter: float
    rows: Rows
    bottom: float
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
        return self.height - TOP - self.rows.ranks[rank] - ROW / 2

    def y_shared(self, k: int) -> float:
        """The middle of the bar of the memory that node k shares."""
        return self.height - TOP - self.rows.shared[k] - ROW / 2

    def frame(self, k: int) -> tuple[float, float]:
        """The lower and the upper edge of the rows of node k."""
        top, end = self.rows.frames[k]
        return self.height - TOP - end, self.height - TOP - top

    @property
    def lead(self) -> float:
        """What lies between the bars of a column and the arrows of the next."""
        return 0.04 + MEETING * bool(self.nodes)

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


def blank_sheet(
    groups: list[Group],
    columns: int,
    scratch: bool,
    nodes: Sequence[Node] = (),
    node_memory: Sequence[bool] = (),
) -> Sheet:
    """A sheet for so many columns beside the contributions, with nothing on it: rows by
    group, or by node, and there, if they have any, with a row for their memory."""
    from matplotlib.figure import Figure

    n = sum(len(g.ranks) for g in groups)
    row, begin = ROW + 0.12 * scratch, 2 * MARGIN * bool(nodes)
    rows = rows_of([x.ranks for x in nodes or groups], row, begin, node_memory)
    cell = min(max(15 / (columns + 1) - 0.7, 0.95), 1.9)
    gutter = min(max(0.55, 0.075 * n), 1.1) if n <= ARROWS else 0.5
    gutter += MEETING * bool(nodes)
    bottom = BOTTOM + 0.19 * bool(nodes)
    width = max(LEFT + RIGHT + (columns + 1) * cell + columns * gutter, 7.0)
    height = TOP + rows.total + bottom
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    paint = colours(groups)
    where = rows, bottom, height
    return Sheet(figure, axes, groups, list(nodes), paint, cell, gutter, *where)
