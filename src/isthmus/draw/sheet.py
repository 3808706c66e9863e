"""The sheet of a schedule's picture: places of rows and columns, bars, words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .palette import EMPTY, INK, Colour, RankGroup, RankNode, colours, on

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: the most ranks in a picture with arrows; more arrows would hide each other
MAX_RANKS_WITH_ARROWS = 16

# inches
SHEET_ROW, SHEET_BAR, SCRATCH_BAR, SHEET_GAP = 0.36, 0.2, 0.06, 0.3
SHEET_LEFT, SHEET_TOP, SHEET_BOTTOM, SHEET_RIGHT = 0.8, 0.95, 1.0, 0.3
#: the margin of the box around a node, and the width of a meeting after a column
NODE_BOX_MARGIN, MEETING_WIDTH = 0.06, 0.18
#: above the number of ranks in any picture
MAX_COMBINED_RANKS = 1 << 20
#: the least width of a part with the owner's name
MIN_NAMED_WIDTH = 0.19


@dataclass(frozen=True)
class RowPlaces:
    """The tops of rows, in inches below the first row."""

    ranks: dict[int, float]
    #: of node memory, by the number of the node
    shared: dict[int, float]
    #: the top and the bottom of each node
    frames: list[tuple[float, float]]
    total: float


def rows_of(
    blocks: Sequence[Sequence[int]],
    row: float,
    begin: float = 0.0,
    node_memory: Sequence[bool] = (),
    between: float = SHEET_GAP,
) -> RowPlaces:
    """The places of blocks of ranks, from top to bottom, with rows of node memory."""
    ranks: dict[int, float] = {}
    shared: dict[int, float] = {}
    frames, y = [], begin
    for k, block in enumerate(blocks):
        first = y
        for rank in block:
            ranks[rank], y = y, y + row
        if k < len(node_memory) and node_memory[k]:
            shared[k], y = y, y + SHEET_ROW
        frames.append((first, y))
        y += between
    return RowPlaces(ranks, shared, frames, y - between)


@dataclass(frozen=True)
class Sheet:
    """A figure with its places, in inches from the lower left corner."""

    figure: Figure
    axes: Any
    groups: list[RankGroup]
    #: nodes with a box; empty if no nodes are drawn
    nodes: list[RankNode]
    paint: list[Colour]
    cell: float
    gutter: float
    rows: RowPlaces
    bottom: float
    height: float

    @property
    def arrows(self) -> bool:
        """Whether the picture has arrows: too many would hide each other."""
        return len(self.paint) <= MAX_RANKS_WITH_ARROWS

    def x(self, column: int) -> float:
        """The left edge of a column's bars; column 0 has the contributions."""
        return SHEET_LEFT + column * (self.cell + self.gutter)

    def y(self, rank: int) -> float:
        """The middle of a rank's bar."""
        return self.height - SHEET_TOP - self.rows.ranks[rank] - SHEET_ROW / 2

    def y_shared(self, k: int) -> float:
        """The middle of the bar of node k's memory."""
        return self.height - SHEET_TOP - self.rows.shared[k] - SHEET_ROW / 2

    def frame(self, k: int) -> tuple[float, float]:
        """The lower and the upper edge of the rows of node k."""
        top, end = self.rows.frames[k]
        return self.height - SHEET_TOP - end, self.height - SHEET_TOP - top

    @property
    def lead(self) -> float:
        """The distance between the bars of a column and the arrows of the next."""
        return 0.04 + MEETING_WIDTH * bool(self.nodes)

    def label(self, rank: int) -> str:
        """The name of a rank."""
        return next(g.label(rank) for g in self.groups if rank in g.ranks)

    def box(self, x: float, y: float, w: float, h: float, colour: Any) -> None:
        """Draw a filled rectangle from the middle of its left edge."""
        from matplotlib.patches import Rectangle

        self.axes.add_patch(Rectangle((x, y - h / 2), w, h, facecolor=colour, lw=0))

    def text(self, x: float, y: float, words: str, size: float, **style: Any) -> None:
        """Write words, centred unless the style says differently."""
        style = {"ha": "center", "va": "center", "color": INK} | style
        self.axes.text(x, y, words, fontsize=size, **style)

    def bar(
        self,
        x: float,
        y: float,
        marks: np.ndarray,
        scale: float,
        thickness: float = SHEET_BAR,
    ) -> None:
        """Draw a buffer, each part in the colour of the rank of origin."""
        if (marks["lo"] < 0).any():
            self.box(x, y, len(marks) * scale, thickness, EMPTY)
        for start, end, key in runs(_keys(marks)):
            owner, combined = divmod(key, MAX_COMBINED_RANKS)
            if owner < 0:
                continue
            left, width = x + start * scale, (end - start) * scale
            gap, colour = min(0.012, width / 8), self.paint[owner]
            self.box(left + gap, y, width - 2 * gap, thickness, colour)
            if thickness == SHEET_BAR and width > MIN_NAMED_WIDTH:
                name = f"Σ{combined}" if combined > 1 else self.label(owner)
                self.text(left + width / 2, y - 0.005, name, 6.5, color=on(colour))


def in_words(n: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{n} {noun}{'s' * (n != 1)}"


def combined(marks: np.ndarray) -> np.ndarray:
    """The number of contributions combined in each element."""
    if "who" not in (marks.dtype.names or ()):
        return np.asarray(marks["hi"] - marks["lo"])
    who = np.ascontiguousarray(marks["who"])
    octets = who.view(np.uint8).reshape(len(marks), 8 * who.shape[1])
    return np.asarray(np.unpackbits(octets, axis=1).sum(axis=1, dtype=np.int64))


def _keys(marks: np.ndarray) -> np.ndarray:
    """The lowest rank and the number of ranks of each element.

    Both are in a single number, so that `runs` compares elements at once.
    """
    return np.asarray(
        marks["lo"].astype(np.int64) * MAX_COMBINED_RANKS + combined(marks)
    )


def runs(values: np.ndarray) -> Iterator[tuple[int, int, Any]]:
    """Start, end and value of every stretch of equal values."""
    if len(values) == 0:
        return
    edges = np.flatnonzero(values[1:] != values[:-1]) + 1
    bounds = [0, *edges.tolist(), len(values)]
    for start, end in pairwise(bounds):
        yield start, end, values[start].item()


def blank_sheet(
    groups: list[RankGroup],
    columns: int,
    scratch: bool,
    nodes: Sequence[RankNode] = (),
    node_memory: Sequence[bool] = (),
) -> Sheet:
    """An empty sheet for a number of columns beside the contributions.

    Rows are by group, or by node with a row for node memory where the node has any.
    """
    from matplotlib.figure import Figure

    n = sum(len(g.ranks) for g in groups)
    row, begin = SHEET_ROW + 0.12 * scratch, 2 * NODE_BOX_MARGIN * bool(nodes)
    rows = rows_of([x.ranks for x in nodes or groups], row, begin, node_memory)
    cell = min(max(15 / (columns + 1) - 0.7, 0.95), 1.9)
    gutter = min(max(0.55, 0.075 * n), 1.1) if n <= MAX_RANKS_WITH_ARROWS else 0.5
    gutter += MEETING_WIDTH * bool(nodes)
    bottom = SHEET_BOTTOM + 0.19 * bool(nodes)
    width = max(SHEET_LEFT + SHEET_RIGHT + (columns + 1) * cell + columns * gutter, 7.0)
    height = SHEET_TOP + rows.total + bottom
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    paint = colours(groups)
    return Sheet(
        figure=figure,
        axes=axes,
        groups=groups,
        nodes=list(nodes),
        paint=paint,
        cell=cell,
        gutter=gutter,
        rows=rows,
        bottom=bottom,
        height=height,
    )
