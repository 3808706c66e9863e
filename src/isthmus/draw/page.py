"""A page of processes side by side: boxes with words, and arrows between them."""

from __future__ import annotations

from typing import Any

from .palette import FAINT, INK, on

# inches
STEP, ROW, BOX_W, BOX_H, LEFT, TOP = 1.18, 0.92, 0.86, 0.3, 1.25, 0.95


class Page:
    """A blank page on which things lie in inches from the upper left corner."""

    def __init__(self, n: int, height: float, title: str) -> None:
        """A page for n processes, with their names on top."""
        from matplotlib.figure import Figure

        width = x_of(n - 1) + STEP / 2 + 0.2
        self.figure = Figure(figsize=(width, height))
        self.axes = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self.axes.set(xlim=(0, width), ylim=(height, 0))
        self.axes.axis("off")
        self.text(0.25, 0.32, title, 11, ha="left", weight="bold")
        for r in range(n):
            self.text(x_of(r), TOP - 0.22, f"P{r}", 8, color=FAINT)

    def label(self, y: float, words: str) -> None:
        """What a row is."""
        self.text(0.25, y, words, 8.5, ha="left")

    def text(self, x: float, y: float, words: str, size: float, **style: Any) -> None:
        """Words, centred unless told otherwise."""
        style = {"ha": "center", "va": "center", "color": INK} | style
        self.axes.text(x, y, words, fontsize=size, **style)

    def box(
        self, x: float, y: float, words: str, colour: Any, h: float = BOX_H
    ) -> None:
        """A process, with words in it."""
        from matplotlib.patches import FancyBboxPatch

        corner = (x - BOX_W / 2, y - h / 2)
        style = "round,pad=0,rounding_size=0.05"
        self.axes.add_patch(
            FancyBboxPatch(corner, BOX_W, h, boxstyle=style, facecolor=colour, lw=0)
        )
        ink = INK if isinstance(colour, str) else on(colour)
        self.text(x, y, words, 8.5, color=ink)

    def arrow(
        self, a: tuple[float, float], b: tuple[float, float], **style: Any
    ) -> None:
        """A line from a to b, with a head unless told otherwise."""
        style = {"arrowstyle": "-|>", "color": INK, "lw": 1.0, "shrinkA": 0} | style
        self.axes.annotate("", b, a, arrowprops={"shrinkB": 0, **style})


def x_of(process: int) -> float:
    """The middle of a process's column."""
    return LEFT + BOX_W / 2 + process * STEP
