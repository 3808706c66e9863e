"""A schedule as a picture: ranks are rows, steps are columns, colours are owners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..marks import Memory
from ..schedules import Schedule
from .palette import EMPTY, FAINT, INK, Group, groups_of, on
from .sheet import BAR, BOTTOM, LEFT, SCRATCH, TOP, Sheet, blank_sheet, combined, runs
from .steps import Message, Step, steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: of more steps than this, those in the middle are left out
COLUMNS = 10
SWATCH = 0.3


def _arrow(sheet: Sheet, column: int, message: Message, width: float) -> None:
    """A message, in the colour of its data where that is of one rank."""
    from matplotlib.patches import FancyArrowPatch

    owners = np.unique(message.data["lo"])
    colour: Any = sheet.paint[owners[0]] if len(owners) == 1 else FAINT
    end = sheet.x(column) - 0.04
    start = end - sheet.gutter + 0.08
    ends = (start, sheet.y(message.source)), (end, sheet.y(message.target))
    style: dict[str, Any] = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}
    style |= {"color": colour, "lw": width, "mutation_scale": 4 + 3 * width}
    sheet.axes.add_patch(FancyArrowPatch(*ends, **style))


def _library(sheet: Sheet, column: int, base: int, n: int) -> None:
    """A group that leaves a step to the MPI library."""
    x = sheet.x(column) - sheet.gutter / 2
    top, low = sheet.y(base) + BAR / 2, sheet.y(base + n - 1) - BAR / 2
    middle = (top + low) / 2
    sheet.box(x - 0.09, middle, 0.18, top - low, EMPTY)
    words = "MPI library" if n > 2 else "MPI"
    sheet.text(x, middle, words, 6.5, rotation=90)


def _news(
    sheet: Sheet, x: float, y: float, old: np.ndarray, new: np.ndarray, scale: float
) -> None:
    """A line under what came in this step."""
    for start, end, changed in runs(old != new):
        if changed:
            ends = x + start * scale, x + end * scale
            sheet.axes.plot(ends, (y, y), color=INK, lw=1.1, solid_capstyle="butt")


def _column(sheet: Sheet, column: int, step: Step, before: Sequence[Memory]) -> None:
    """The messages of a step and what everyone holds after it."""
    width = 1.1 if len(step.messages) <= 2 * len(step.memory) else 0.5
    for message in step.messages if sheet.arrows else ():
        _arrow(sheet, column, message, width)
    for base, n in step.library:
        _library(sheet, column, base, n)
    x = sheet.x(column)
    for rank, memory in enumerate(step.memory):
        y, old, new = sheet.y(rank), before[rank]["recv"], memory["recv"]
        scale = sheet.cell / max(len(new), 1)
        sheet.bar(x, y, new, scale)
        _news(sheet, x, y - BAR / 2 - 0.025, old, new, scale)
        if len(tmp := memory["tmp"]):
            below = y - BAR / 2 - 0.085
            sheet.bar(x, below, tmp, sheet.cell / len(tmp), SCRATCH)


def _contributions(sheet: Sheet, given: list[np.ndarray]) -> None:
    """What every rank brings, to a common scale."""
    scale = sheet.cell / max(1, *map(len, given))
    for rank, marks in enumerate(given):
        y = sheet.y(rank)
        sheet.text(LEFT - 0.1, y, sheet.label(rank), 8, ha="right")
        sheet.bar(LEFT, y, marks, scale)
        if not len(marks):
            sheet.text(LEFT, y, "nothing", 6.5, ha="left", color=FAINT)


def _legend(sheet: Sheet, scratch: bool, sums: bool) -> None:
    """A swatch for every rank, and what else there is to see."""
    y = BOTTOM - 0.32
    for group in sheet.groups:
        sheet.text(LEFT - 0.1, y, f"from {group.short}", 7.5, ha="right")
        each = min(SWATCH, 4.8 / len(group.ranks))
        for i, rank in enumerate(group.ranks):
            x, colour = LEFT + i * each, sheet.paint[rank]
            sheet.box(x, y, each * 0.95, 0.16, colour)
            if each == SWATCH:
                sheet.text(x + each / 2, y, group.label(rank), 6.5, color=on(colour))
        if each < SWATCH:
            ends = " to ".join(
                group.label(r) for r in group.ranks[:: len(group.ranks) - 1]
            )
            sheet.text(LEFT + 4.9, y, ends, 7.5, ha="left")
        y -= 0.22
    words = ["grey bar: nothing yet", "underlined: came in this step"]
    if sheet.arrows:
        words += ["grey arrow: data of several ranks"]
    if scratch:
        words += ["thin bar: scratch memory"]
    if sums:
        words += ["Σ3: of three ranks, combined"]
    sheet.text(LEFT, y, ";  ".join(words), 7.5, ha="left")


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def _size(group: Group, given: list[np.ndarray]) -> str:
    """How many ranks a group has, and what they contribute."""
    counts = sorted({len(given[r]) for r in group.ranks})
    each = f"{_count(counts[-1], 'element')}"
    each = f"{each} each" if len(counts) == 1 else f"{counts[0]} to {each}"
    return f"{group.short}: {_count(len(group.ranks), 'rank')}, {each}"


def _headings(sheet: Sheet, schedule: Schedule, given: list[np.ndarray]) -> None:
    """The title, and the names of the groups."""
    sizes = "     ".join(_size(group, given) for group in sheet.groups)
    title, top = f"{schedule.collective}, {schedule.algorithm}", sheet.height
    sheet.text(LEFT, top - 0.22, title, 11, ha="left", weight="bold")
    sheet.text(LEFT, top - 0.42, sizes, 8, ha="left")
    for group in sheet.groups:
        middle = (sheet.y(group.ranks[0]) + sheet.y(group.ranks[-1])) / 2
        sheet.text(0.22, middle, group.name, 8.5, rotation=90, weight="bold")


def _heading(step: Step) -> str:
    """How many messages a step has, and how long they are."""
    if not step.messages:
        return "the MPI library"
    longest = max(len(m.data) for m in step.messages)
    return f"{_count(len(step.messages), 'message')}, longest {longest}"


def _shown(n: int) -> list[int | None]:
    """The steps that get a column; None stands for those left out."""
    if n <= COLUMNS:
        return list(range(n))
    late = COLUMNS // 2
    return [*range(COLUMNS - late), None, *range(n - late, n)]


def _given(before: Memory) -> np.ndarray:
    """What a rank contributes: its send buffer, or its place in the common one."""
    recv = before["recv"]
    return before.get("send", recv[recv["lo"] >= 0])


def figure(schedule: Schedule) -> Figure:
    """What every rank holds after every step, and the messages that brought it."""
    groups = groups_of(list(schedule.groups))
    start = [schedule.contract.before(r) for r in range(schedule.n)]
    taken = list(steps(schedule))
    scratch = any(len(memory["tmp"]) for step in taken[:1] for memory in step.memory)
    shown = _shown(len(taken))
    sheet = blank_sheet(groups, len(shown), scratch)
    given = [_given(memory) for memory in start]
    _headings(sheet, schedule, given)
    _contributions(sheet, given)
    head = sheet.height - TOP + 0.12
    sheet.text(sheet.x(0) + sheet.cell / 2, head + 0.07, "contributes", 8)
    for column, k in enumerate(shown, 1):
        middle = sheet.x(column) + sheet.cell / 2
        if k is None:
            left_out = _count(len(taken) - COLUMNS, "step")
            sheet.text(middle, head + 0.07, f"… {left_out} …", 8, color=FAINT)
            continue
        _column(sheet, column, taken[k], taken[k - 1].memory if k else start)
        sheet.text(middle, head + 0.07, f"step {k + 1}", 8)
        sheet.text(middle, head - 0.07, _heading(taken[k]), 6.5, color=FAINT)
    sums = any((combined(m["recv"]) > 1).any() for s in taken for m in s.memory)
    _legend(sheet, scratch, sums)
    return sheet.figure
