"""Times of two contenders as bars, each pair to its own scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .palette import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# inches
PAIR, BAR, LEFT, RIGHT, TOP, BOTTOM, FULL = 0.62, 0.2, 1.45, 1.0, 0.8, 0.2, 4.6
NATIVE, OURS = "#b9b9b9", "#e6550d"


@dataclass(frozen=True)
class Pair:
    """What was done, both times in words, and how many times faster ours is."""

    label: str
    native: str
    ours: str
    ratio: float


def _bar(axes: Any, y: float, length: float, colour: str, words: str) -> None:
    """A bar with its time written in it, or after it where it is short."""
    axes.barh(y, length, BAR, left=LEFT, color=colour)
    inside = length > 1.25
    x = LEFT + length + (-0.08 if inside else 0.08)
    side = "right" if inside else "left"
    axes.text(x, y, words, fontsize=7.5, color=INK, ha=side, va="center_baseline")


def figure(title: str, subtitle: str, pairs: list[Pair]) -> Figure:
    """For every pair, the longer time takes the full width."""
    from matplotlib.figure import Figure

    width, height = LEFT + FULL + RIGHT, TOP + BOTTOM + PAIR * len(pairs)
    picture = Figure(figsize=(width, height))
    axes = picture.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    axes.text(0.25, height - 0.3, title, fontsize=11, weight="bold", va="center")
    axes.text(0.25, height - 0.52, subtitle, fontsize=8, color=FAINT, va="center")
    for i, pair in enumerate(pairs):
        y = height - TOP - (i + 0.5) * PAIR
        longest = max(1.0, 1 / pair.ratio)
        at: dict[str, Any] = {"ha": "right", "va": "center", "color": INK}
        axes.text(LEFT - 0.12, y, pair.label, fontsize=8, **at)
        _bar(axes, y + BAR / 2 + 0.01, FULL / longest, NATIVE, f"native {pair.native}")
        ours = FULL / longest / pair.ratio
        _bar(axes, y - BAR / 2 - 0.01, ours, OURS, f"isthmus {pair.ours}")
        ratio = f"{pair.ratio:.2f}×"
        bold: dict[str, Any] = {"fontsize": 11, "weight": "bold", "va": "center"}
        axes.text(LEFT + FULL + 0.15, y, ratio, color=INK, **bold)
    return picture
