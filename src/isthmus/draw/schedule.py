"""A schedule as a picture: ranks are rows, steps are columns, colours are owners.

Where ranks share the memory of their nodes, a node is a box around its ranks and a row
for that memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..schedules.names import described
from ..schedules.schedule import Schedule
from ..verify.marks import Memory, blank
from .palette import EMPTY, FAINT, INK, RankGroup, RankNode, groups_of, nodes_of, on
from .sheet import (
    MEETING_WIDTH,
    NODE_BOX_MARGIN,
    SCRATCH_BAR,
    SHEET_BAR,
    SHEET_LEFT,
    SHEET_ROW,
    SHEET_TOP,
    Sheet,
    blank_sheet,
    combined,
    runs,
)
from .steps import MessagePicture, Moved, StepPicture, steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: columns of steps; of more steps, those in the middle are left out
MAX_STEP_COLUMNS = 10
SWATCH_INCHES = 0.3


def _arrow(
    sheet: Sheet,
    column: int,
    rows: tuple[float, float],
    data: np.ndarray,
    dots: tuple[bool, bool] = (False, False),
    **style: Any,
) -> None:
    """An arrow to a column, in the colour of its data if these are of one rank.

    `dots` says whether its start and its end have a dot.
    """
    from matplotlib.patches import FancyArrowPatch

    owners = np.unique(data["lo"])
    colour: Any = sheet.paint[owners[0]] if len(owners) == 1 else FAINT
    right = sheet.x(column) - 0.04
    ends = (right - sheet.gutter + 0.04 + sheet.lead, rows[0]), (right, rows[1])
    style |= {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 4 * dots[1]}
    style |= {"color": colour, "mutation_scale": 4 + 3 * style["lw"]}
    sheet.axes.add_patch(FancyArrowPatch(*ends, **style))
    for (x, y), dot in zip(ends, dots, strict=True):
        if dot:
            sheet.axes.plot([x], [y], marker="o", ms=4.5, color=colour, mew=0)


def _message(sheet: Sheet, column: int, message: MessagePicture, width: float) -> None:
    """A message from rank to rank; a dot at an end that lies in shared memory."""
    rows = sheet.y(message.source), sheet.y(message.target)
    dots = message.from_node, message.to_node
    _arrow(sheet, column, rows, message.data, dots, lw=width)


def _moved(sheet: Sheet, column: int, moved: Sequence[Moved]) -> None:
    """Arrows for copies and reductions into node memory and out of it.

    A rank has one arrow each way, however many steps it took.
    """
    node_of_rank = {r: k for k, node in enumerate(sheet.nodes) for r in node.ranks}
    data_of_arrow: dict[tuple[float, float], list[np.ndarray]] = {}
    for x in moved:
        ends = (
            sheet.y_shared(node_of_rank[x.rank]) if buf == "node" else sheet.y(x.rank)
            for buf in (x.src, x.dst)
        )
        start, end = ends
        data_of_arrow.setdefault((start, end), []).append(x.data)
    for rows, data in data_of_arrow.items():
        dashes: dict[str, Any] = {"linestyle": (0, (2.5, 1.5)), "lw": 0.9}
        _arrow(sheet, column, rows, np.concatenate(data), **dashes)


def _meeting(sheet: Sheet, column: int, k: int) -> None:
    """A line after a column, across the ranks of a node that met there."""
    x = sheet.x(column) + sheet.cell + MEETING_WIDTH / 2
    low, top = sheet.frame(k)
    sheet.axes.plot((x, x), (low + 0.04, top - 0.04), color=INK, lw=2.4)


def _library(sheet: Sheet, column: int, base: int, n: int) -> None:
    """A group that leaves a step to the MPI library."""
    x = sheet.x(column) - sheet.gutter / 2
    rows = [sheet.y(rank) for rank in range(base, base + n)]
    top, low = max(rows) + SHEET_BAR / 2, min(rows) - SHEET_BAR / 2
    middle = (top + low) / 2
    sheet.box(x - 0.09, middle, 0.18, top - low, EMPTY)
    words = "MPI library" if n > 2 else "MPI"
    sheet.text(x, middle, words, 6.5, rotation=90)


def _news(
    sheet: Sheet, x: float, y: float, old: np.ndarray, new: np.ndarray, scale: float
) -> None:
    """A line under the elements that this step changed."""
    for start, end, changed in runs(old != new):
        if changed:
            ends = x + start * scale, x + end * scale
            sheet.axes.plot(ends, (y, y), color=INK, lw=1.1, solid_capstyle="butt")


def _bar(sheet: Sheet, column: int, y: float, old: np.ndarray, new: np.ndarray) -> None:
    """A buffer after a step, its new elements underlined."""
    x, scale = sheet.x(column), sheet.cell / max(len(new), 1)
    sheet.bar(x, y, new, scale)
    _news(sheet, x, y - SHEET_BAR / 2 - 0.025, old, new, scale)


def _column(sheet: Sheet, column: int, step: StepPicture, before: StepPicture) -> None:
    """The messages of a step, and the buffers of every rank after it."""
    width = 1.1 if len(step.messages) <= 2 * len(step.memory) else 0.5
    if sheet.arrows:
        _moved(sheet, column, step.moved)
        for message in step.messages:
            _message(sheet, column, message, width)
    for base, n in step.library:
        _library(sheet, column, base, n)
    for rank, memory in enumerate(step.memory):
        y = sheet.y(rank)
        _bar(sheet, column, y, before.memory[rank]["recv"], memory["recv"])
        if len(tmp := memory["tmp"]):
            below = y - SHEET_BAR / 2 - 0.085
            sheet.bar(sheet.x(column), below, tmp, sheet.cell / len(tmp), SCRATCH_BAR)
    for k in sheet.rows.shared:
        _bar(sheet, column, sheet.y_shared(k), before.shared[k], step.shared[k])
    for k in step.meetings if sheet.nodes else ():
        _meeting(sheet, column, k)


def _contributions(sheet: Sheet, contributions: list[np.ndarray]) -> None:
    """The contributions of all ranks, on one scale."""
    scale = sheet.cell / max(1, *map(len, contributions))
    for rank, marks in enumerate(contributions):
        y = sheet.y(rank)
        sheet.text(SHEET_LEFT - 0.1, y, sheet.label(rank), 8, ha="right")
        sheet.bar(SHEET_LEFT, y, marks, scale)
        if not len(marks):
            sheet.text(SHEET_LEFT, y, "nothing", 6.5, ha="left", color=FAINT)
    for k in sheet.rows.shared:
        sheet.text(SHEET_LEFT - 0.1, sheet.y_shared(k), "shared", 7, ha="right")


def _legend(
    sheet: Sheet, scratch: bool, sums: bool, taken: Sequence[StepPicture]
) -> None:
    """A swatch for every rank, and the signs that the picture has."""
    y = sheet.bottom - 0.32
    for group in sheet.groups:
        # rows by node do not say which group a rank is of
        name = group.name if sheet.nodes else f"from {group.short}"
        sheet.text(SHEET_LEFT - 0.1, y, name, 7.5, ha="right")
        each = min(SWATCH_INCHES, 4.8 / len(group.ranks))
        for i, rank in enumerate(group.ranks):
            x, colour = SHEET_LEFT + i * each, sheet.paint[rank]
            sheet.box(x, y, each * 0.95, 0.16, colour)
            if each == SWATCH_INCHES:
                sheet.text(x + each / 2, y, group.label(rank), 6.5, color=on(colour))
        if each < SWATCH_INCHES:
            ends = " to ".join(
                group.label(r) for r in group.ranks[:: len(group.ranks) - 1]
            )
            sheet.text(SHEET_LEFT + 4.9, y, ends, 7.5, ha="left")
        y -= 0.22
    words = ["grey bar: nothing yet", "underlined: came in this step"]
    if sheet.arrows:
        words += ["grey arrow: data of several ranks"]
    else:
        words += ["arrows are left out: there are too many"]
    if scratch:
        words += ["thin bar: scratch memory"]
    if sums:
        words += ["Σ3: of three ranks, combined"]
    sheet.text(SHEET_LEFT, y, ";  ".join(words), 7.5, ha="left")
    if sheet.nodes:
        sheet.text(
            SHEET_LEFT, y - 0.17, ";  ".join(_node_words(sheet, taken)), 7.5, ha="left"
        )


def _node_words(sheet: Sheet, taken: Sequence[StepPicture]) -> list[str]:
    """The signs for nodes that the picture has."""
    words = ["box: a node"]
    words += ["black line: its ranks meet"] * any(step.meetings for step in taken)
    words += ["shared: its memory"] * bool(sheet.rows.shared)
    if sheet.arrows:
        words += ["dashed: copied or combined"] * any(step.moved for step in taken)
        messages = [m for step in taken for m in step.messages]
        dots = any(m.from_node or m.to_node for m in messages)
        words += ["dot: end of a message in shared memory"] * dots
    return words


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def _size(group: RankGroup, contributions: list[np.ndarray]) -> str:
    """The number of a group's ranks and of the elements they contribute, as text."""
    counts = sorted({len(contributions[r]) for r in group.ranks})
    amount = f"{_count(counts[-1], 'element')}"
    amount = f"{amount} each" if len(counts) == 1 else f"{counts[0]} to {amount}"
    return f"{group.short}: {_count(len(group.ranks), 'rank')}, {amount}"


def _headings(
    sheet: Sheet, schedule: Schedule, contributions: list[np.ndarray]
) -> None:
    """The title, and the names of the groups."""
    sizes = "     ".join(_size(group, contributions) for group in sheet.groups)
    title = f"{described(schedule.collective)}, {schedule.algorithm}"
    top = sheet.height
    sheet.text(SHEET_LEFT, top - 0.22, title, 11, ha="left", weight="bold")
    sheet.text(SHEET_LEFT, top - 0.42, sizes, 8, ha="left")
    for k in range(len(sheet.nodes)):
        _frame(sheet, k)
    for group in () if sheet.nodes else sheet.groups:
        middle = (sheet.y(group.ranks[0]) + sheet.y(group.ranks[-1])) / 2
        sheet.text(0.22, middle, group.name, 8.5, rotation=90, weight="bold")


def _frame(sheet: Sheet, k: int) -> None:
    """The box around a node, and its name."""
    from matplotlib.patches import FancyBboxPatch

    low, top = sheet.frame(k)
    width = sheet.figure.get_figwidth()
    style: dict[str, Any] = {"facecolor": "none", "edgecolor": FAINT, "lw": 0.9}
    shape = f"round,pad=0,rounding_size={NODE_BOX_MARGIN}"
    corner, size = (
        (0.08, low - NODE_BOX_MARGIN),
        (width - 0.16, top - low + 2 * NODE_BOX_MARGIN),
    )
    sheet.axes.add_patch(FancyBboxPatch(corner, *size, boxstyle=shape, **style))
    tall = top - low > 1.5 * SHEET_ROW
    words: dict[str, Any] = {"rotation": 90 * tall, "weight": "bold"}
    name = sheet.nodes[k].name
    sheet.text(
        0.22 if tall else 0.3, (low + top) / 2, name, 8.5 if tall else 6, **words
    )


def _heading(step: StepPicture) -> str:
    """The number of a step's messages and the longest of them, as text."""
    if step.library and not step.messages:
        return "the MPI library"
    if not step.messages:
        kinds = ["copies"] * any(not x.reduced for x in step.moved)
        kinds += ["sums"] * any(x.reduced for x in step.moved)
        return " and ".join(kinds) or "meeting"
    longest = max(len(m.data) for m in step.messages)
    return f"{_count(len(step.messages), 'message')}, longest {longest}"


def _shown(n: int) -> list[int | None]:
    """The steps that get a column; None stands for those left out."""
    if n <= MAX_STEP_COLUMNS:
        return list(range(n))
    late = MAX_STEP_COLUMNS // 2
    return [*range(MAX_STEP_COLUMNS - late), None, *range(n - late, n)]


def _contribution(before: Memory) -> np.ndarray:
    """A rank's contribution: its send buffer, or its place in the common one."""
    recv = before["recv"]
    return before.get("send", recv[recv["lo"] >= 0])


def _nodes(schedule: Schedule, all_steps: Sequence[StepPicture]) -> list[RankNode]:
    """The nodes, if there are several or a step touches node memory."""
    busy = any(step.moved or step.meetings for step in all_steps)
    return nodes_of(schedule.nodes) if busy or len(set(schedule.nodes)) > 1 else []


def figure(schedule: Schedule) -> Figure:
    """The buffers of every rank after every step, and the messages between them."""
    groups = groups_of(list(schedule.groups))
    start = [schedule.contract.before(r) for r in range(schedule.n)]
    all_steps = list(steps(schedule))
    scratch = any(
        len(memory["tmp"]) for step in all_steps[:1] for memory in step.memory
    )
    shown = _shown(len(all_steps))
    nodes = _nodes(schedule, all_steps)
    shared = all_steps[0].shared if all_steps else ()
    node_memory = [len(buf) > 0 for buf in shared]
    sheet = blank_sheet(groups, len(shown), scratch, nodes, node_memory)
    contributions = [_contribution(memory) for memory in start]
    _headings(sheet, schedule, contributions)
    _contributions(sheet, contributions)
    head = sheet.height - SHEET_TOP + 0.12
    sheet.text(sheet.x(0) + sheet.cell / 2, head + 0.07, "contributes", 8)
    nothing = tuple(blank(len(buf), buf.dtype) for buf in shared)
    first = StepPicture((), (), tuple(start), shared=nothing)
    for column, k in enumerate(shown, 1):
        middle = sheet.x(column) + sheet.cell / 2
        if k is None:
            left_out = _count(len(all_steps) - MAX_STEP_COLUMNS, "step")
            sheet.text(middle, head + 0.07, f"… {left_out} …", 8, color=FAINT)
            continue
        _column(sheet, column, all_steps[k], all_steps[k - 1] if k else first)
        sheet.text(middle, head + 0.07, f"step {k + 1}", 8)
        sheet.text(middle, head - 0.07, _heading(all_steps[k]), 6.5, color=FAINT)
    sums = any((combined(m["recv"]) > 1).any() for s in all_steps for m in s.memory)
    _legend(sheet, scratch, sums, all_steps)
    return sheet.figure
