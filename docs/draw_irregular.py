"""An irregular problem as a regular one on a cluster, after Träff et al. 2008.

Left the ranks with their unequal blocks, right the nodes they stand for: in each as
many processes as the rank's block has pieces, with a piece each. A ring goes over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from isthmus.draw.palette import EMPTY, FAINT, INK, Colour, colours, groups_of, on

# inches
ROW, TALL, PIECE, GAP = 0.72, 0.3, 0.62, 0.12
TITLE = 1.9
LEFT, BETWEEN, RIGHT, TOP, BOTTOM = 0.95, 1.75, 0.75, 0.85, 0.42


def pieces(count: int, size: int) -> list[int]:
    """The pieces of a block, the last one partial or empty."""
    full, rest = divmod(count, size)
    return [size] * full + [rest] * (rest > 0 or not full)


def _node_width(count: int, size: int) -> float:
    return len(pieces(count, size)) * (PIECE + GAP) + GAP


def figure(counts: Sequence[int], size: int) -> Figure:
    """The blocks of all ranks, and the cluster of pieces of at most `size` elements."""
    wide = PIECE * max(max(counts) / size, 2)
    node = max(TITLE, *(_node_width(count, size) for count in counts))
    width = LEFT + wide + BETWEEN + node + RIGHT
    height = TOP + len(counts) * ROW + BOTTOM
    picture = Figure(figsize=(width, height))
    axes = picture.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    paint = colours(groups_of([range(len(counts))]))
    rows = [height - TOP - (i + 0.5) * ROW for i in range(len(counts))]
    beside = LEFT + wide + BETWEEN
    for i, (count, y) in enumerate(zip(counts, rows, strict=True)):
        _rank(axes, i, y, pieces(count, size), size, paint[i])
        _node(axes, i, (beside, y), pieces(count, size), size, paint[i])
    ends = [beside + _node_width(count, size) for count in counts]
    _ring(axes, rows, beside + GAP + PIECE / 2, [*ends, beside + node + 0.35])
    _headings(axes, height, (LEFT, beside), (wide, node), rows)
    return picture


def _text(axes: Any, x: float, y: float, words: str, size: float, **style: Any) -> None:
    style = {"ha": "center", "va": "center", "color": INK} | style
    axes.text(x, y, words, fontsize=size, **style)


def _box(axes: Any, x: float, y: float, wide: float, colour: Any, **style: Any) -> None:
    look: dict[str, Any] = {"facecolor": colour, "lw": 0} | style
    axes.add_patch(Rectangle((x, y - TALL / 2), wide, TALL, **look))


def _named(i: int, found: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Every piece's length and name."""
    for k, length in enumerate(found):
        yield length, f"{i}.{k}" if len(found) > 1 else f"{i}"


def _rank(
    axes: Any, i: int, y: float, found: Sequence[int], size: int, colour: Colour
) -> None:
    """A rank's block in one row, cut into pieces."""
    _text(axes, LEFT - 0.12, y, f"process {i}", 9, ha="right")
    if not any(found):
        _text(axes, LEFT, y, "nothing", 8, ha="left", color=FAINT, style="italic")
    for k, (length, _) in enumerate(_named(i, found)):
        wide, x = PIECE * length / size, LEFT + k * PIECE
        _box(axes, x, y, wide, colour)
        if k:
            axes.plot(
                [x, x], [y - TALL / 2 - 0.07, y + TALL / 2 + 0.07], color=INK, lw=1
            )


def _node(
    axes: Any,
    i: int,
    corner: tuple[float, float],
    found: Sequence[int],
    size: int,
    colour: Colour,
) -> None:
    """A node with a process for every piece."""
    x, y = corner
    whole = _node_width(sum(found), size)
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": FAINT, "lw": 1.2}
    shape = "round,pad=0,rounding_size=0.08"
    frame = (x, y - TALL / 2 - 0.11), whole, TALL + 0.22
    axes.add_patch(FancyBboxPatch(*frame, boxstyle=shape, **look))
    _text(axes, x - 0.12, y, f"node {i}", 9, ha="right")
    for k, (length, name) in enumerate(_named(i, found)):
        at = x + GAP + k * (PIECE + GAP)
        _box(axes, at, y, PIECE, EMPTY)
        _box(axes, at, y, PIECE * length / size, colour)
        dark = on(colour) if 2 * length > size else INK
        _text(axes, at + PIECE / 2, y - 0.01, name, 8, color=dark)


def _ring(axes: Any, rows: Sequence[float], x: float, ends: Sequence[float]) -> None:
    """The ring over the nodes: down from each to the next, and back to the first.

    `x` is where it goes down, `ends` the right edges of the nodes, then of the ring.
    """
    arrow: dict[str, Any] = {"arrowstyle": "-|>", "color": INK, "lw": 1.2}
    arrow |= {"shrinkA": 0, "shrinkB": 0}
    edge = TALL / 2 + 0.11
    for y, below in pairwise(rows):
        axes.annotate("", (x, below + edge), (x, y - edge), arrowprops=arrow)
    if len(rows) > 1:
        first, *_, last, far = ends
        axes.plot([last, far, far], [rows[-1], rows[-1], rows[0]], color=INK, lw=1.2)
        axes.annotate("", (first, rows[0]), (far, rows[0]), arrowprops=arrow)


def _headings(
    axes: Any,
    height: float,
    left: tuple[float, float],
    wide: tuple[float, float],
    rows: Sequence[float],
) -> None:
    """What both sides are, and what leads from one to the other."""
    words = (
        ("An irregular problem", "on processes"),
        ("A regular problem", "on the nodes of a cluster"),
    )
    for x, (title, below) in zip(left, words, strict=True):
        bold: dict[str, Any] = {"ha": "left", "weight": "bold"}
        _text(axes, x, height - 0.26, title, 10.5, **bold)
        _text(axes, x, height - 0.5, below, 9, ha="left", color=FAINT)
    y = (rows[0] + rows[-1]) / 2
    begin, end = left[0] + wide[0] + 0.2, left[1] - 0.72
    arrow: dict[str, Any] = {"arrowstyle": "simple", "color": FAINT}
    axes.annotate("", (end, y), (begin, y), arrowprops=arrow)
    _text(axes, (begin + end) / 2, y + 0.22, "cut by B", 9)
    note = "Right, every small box is a process with a block of at most B elements."
    _text(axes, left[0], 0.2, note, 8, ha="left", color=FAINT)
