"""Times of two contenders as pairs of bars, each pair to a scale of its own.

Pairs have no common scale, because measurements differ by orders of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .palette import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# inches
SPEED_ROW = 0.62
SPEED_BAR = 0.2
SPEED_LEFT = 1.45
SPEED_RIGHT = 1.0
SPEED_TOP = 0.8
SPEED_BOTTOM = 0.2
SPEED_LONGEST_BAR = 4.6
LIBRARY_COLOUR, OUR_COLOUR = "#b9b9b9", "#e6550d"


@dataclass(frozen=True)
class SpeedRow:
    """A measurement: a name, two times as text, and the ratio of the times."""

    label: str
    native: str
    ours: str
    ratio: float


def _bar(axes: Any, y: float, length: float, colour: str, words: str) -> None:
    """Draw a bar with the time inside, or behind a short bar."""
    axes.barh(y, length, SPEED_BAR, left=SPEED_LEFT, color=colour)
    is_inside = length > 1.25
    x = SPEED_LEFT + length + (-0.08 if is_inside else 0.08)
    side = "right" if is_inside else "left"
    axes.text(x, y, words, fontsize=7.5, color=INK, ha=side, va="center_baseline")


def figure(title: str, subtitle: str, pairs: list[SpeedRow]) -> Figure:
    """A row of two bars for each measurement; the longer time takes the full width."""
    from matplotlib.figure import Figure

    width = SPEED_LEFT + SPEED_LONGEST_BAR + SPEED_RIGHT
    height = SPEED_TOP + SPEED_BOTTOM + SPEED_ROW * len(pairs)
    picture = Figure(figsize=(width, height))
    axes = picture.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    axes.text(0.25, height - 0.3, title, fontsize=11, weight="bold", va="center")
    axes.text(0.25, height - 0.52, subtitle, fontsize=8, color=FAINT, va="center")
    for i, pair in enumerate(pairs):
        y = height - SPEED_TOP - (i + 0.5) * SPEED_ROW
        longest = max(1.0, 1 / pair.ratio)
        at: dict[str, Any] = {"ha": "right", "va": "center", "color": INK}
        axes.text(SPEED_LEFT - 0.12, y, pair.label, fontsize=8, **at)
        _bar(
            axes,
            y + SPEED_BAR / 2 + 0.01,
            SPEED_LONGEST_BAR / longest,
            LIBRARY_COLOUR,
            f"native {pair.native}",
        )
        ours = SPEED_LONGEST_BAR / longest / pair.ratio
        _bar(axes, y - SPEED_BAR / 2 - 0.01, ours, OUR_COLOUR, f"isthmus {pair.ours}")
        ratio = f"{pair.ratio:.2f}×"
        bold: dict[str, Any] = {"fontsize": 11, "weight": "bold", "va": "center"}
        axes.text(SPEED_LEFT + SPEED_LONGEST_BAR + 0.15, y, ratio, color=INK, **bold)
    return picture
