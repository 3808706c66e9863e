"""A schedule of few ranks as a circle for each step, with an arrow for each message."""

from __future__ import annotations

from math import ceil, cos, pi, sin
from typing import TYPE_CHECKING, Any

import numpy as np

from ..schedules.schedule import Schedule
from .palette import EMPTY, INK, Colour, on, parts as part_colours
from .steps import MessagePicture, StepPicture, steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: the most ranks and parts that a reader can distinguish
MAX_CIRCLE_RANKS, MAX_CIRCLE_PARTS = 24, 8
#: the most steps in a picture; later steps are left out
MAX_PANELS = 12
#: inches of a panel; panels side by side
PANEL_INCHES, PANELS_IN_A_ROW = 3.0, 3
PART_INCHES = 0.085
#: with more ranks than this, the panels are larger
RANKS_IN_NORMAL_PANEL = 12
GREY: Colour = (0.54, 0.54, 0.54)


def _place(rank: int, n: int, radius: float = 1.0) -> tuple[float, float]:
    """The point of a rank on the circle: rank 0 at the top, then clockwise."""
    angle = 2 * pi * rank / n
    return radius * sin(angle), radius * cos(angle)


def _parts(data: np.ndarray, size: int) -> list[int]:
    """The numbers of the parts with at least one of the elements."""
    numbers: list[int] = np.unique(data["index"][data["lo"] >= 0] // size).tolist()
    return numbers


def _arrow(
    axes: Any, message: MessagePicture, n: int, paint: list[Colour], size: int
) -> None:
    """A message as an arrow, labelled with the parts that travel.

    The label is nearer to the sender, because arrows cross less than in the middle.
    """
    from matplotlib.patches import FancyArrowPatch

    ends = _place(message.source, n, 0.86), _place(message.target, n, 0.86)
    parts = _parts(message.data, size)
    colour = paint[parts[0]] if len(parts) == 1 else GREY
    style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 10, "lw": 1.5}
    style |= {"shrinkA": 2, "shrinkB": 2, "connectionstyle": "arc3,rad=0"}
    axes.add_patch(FancyArrowPatch(*ends, color=colour, **style))
    x, y = (0.8 * a + 0.2 * b for a, b in zip(*ends, strict=True))
    box = {"boxstyle": "round,pad=0.15", "facecolor": colour, "edgecolor": "none"}
    words = _words(parts)
    axes.text(
        x, y, words, fontsize=6.5, ha="center", va="center", bbox=box, color=on(colour)
    )


def _words(parts: list[int]) -> str:
    """The numbers of parts as text, a consecutive range by its first and last."""
    if len(parts) > 2 and parts[-1] - parts[0] == len(parts) - 1:
        return f"{parts[0]}–{parts[-1]}"
    return ",".join(map(str, parts))


def _rank(axes: Any, rank: int, n: int, held: list[int], paint: list[Colour]) -> None:
    """A rank's number, and outwards a dot for each part, filled if the rank has it."""
    from matplotlib.patches import Circle

    size = min(1, RANKS_IN_NORMAL_PANEL / n)
    x, y = _place(rank, n)
    axes.add_patch(Circle((x, y), 0.13 * size, facecolor="white", edgecolor=INK))
    axes.text(x, y - 0.01, str(rank), fontsize=8, ha="center", va="center")
    for part, colour in enumerate(paint):
        dot = _place(rank, n, 1.13 + 0.13 * size + part * PART_INCHES)
        fill = colour if part in held else EMPTY
        axes.add_patch(Circle(dot, 0.45 * PART_INCHES, facecolor=fill))


def _panel(
    axes: Any, k: int, step: StepPicture, paint: list[Colour], size: int
) -> None:
    """A step: the messages, and the parts of every rank afterwards."""
    n = len(step.memory)
    far = 1.3 + PART_INCHES * len(paint)
    axes.set(xlim=(-far, far), ylim=(-far, far), aspect="equal")
    axes.axis("off")
    for message in step.messages:
        _arrow(axes, message, n, paint, size)
    for rank, memory in enumerate(step.memory):
        _rank(axes, rank, n, _parts(memory["recv"], size), paint)
    hops = {(m.target - m.source) % n for m in step.messages}
    words = f"step {k + 1}"
    words += f": to the rank {hops.pop()} further on" if len(hops) == 1 else ""
    axes.set_title(words, fontsize=9, color=INK)


def figure(schedule: Schedule, parts: int) -> Figure:
    """Every step of a broadcast in a number of parts, on a circle of ranks."""
    from matplotlib.figure import Figure

    if not 1 <= parts <= MAX_CIRCLE_PARTS or schedule.n > MAX_CIRCLE_RANKS:
        raise ValueError(
            f"a circle has up to {MAX_CIRCLE_RANKS} ranks and {MAX_CIRCLE_PARTS} parts"
        )
    all_steps = list(steps(schedule))[:MAX_PANELS]
    m = max(len(schedule.contract.before(r)["recv"]) for r in range(schedule.n))
    size, paint = max(ceil(m / parts), 1), part_colours(parts)
    panel_rows = ceil(len(all_steps) / PANELS_IN_A_ROW) or 1
    panel = PANEL_INCHES * max(1.0, schedule.n / (RANKS_IN_NORMAL_PANEL + 4))
    picture = Figure(
        figsize=(PANELS_IN_A_ROW * panel, panel_rows * panel), layout="constrained"
    )
    for k, step in enumerate(all_steps):
        _panel(
            picture.add_subplot(panel_rows, PANELS_IN_A_ROW, k + 1),
            k,
            step,
            paint,
            size,
        )
    return picture
