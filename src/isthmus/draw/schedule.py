"""A schedule as a picture: ranks are rows, steps are columns, colours are owners.

Where ranks share memory, a node is a box around the ranks and a row for node memory.
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
    in_words,
    runs,
)
from .steps import MessagePicture, NodeMemoryStep, StepPicture, steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: the most columns of steps; of a longer schedule, steps in the middle are left out
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
    """Draw an arrow to a column, in the colour of the data's owner; grey for several.

    `dots` says whether the start and the end have a dot.
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
    """Draw a message from rank to rank; a dot marks an end in node memory."""
    rows = sheet.y(message.source), sheet.y(message.target)
    dots = message.from_node, message.to_node
    _arrow(sheet, column, rows, message.data, dots, lw=width)


def _node_steps(
    sheet: Sheet, column: int, node_steps: Sequence[NodeMemoryStep]
) -> None:
    """Draw arrows for copies and reductions into node memory and out of node memory.

    A rank has a single arrow each way, since arrows of several steps would lie on top
    of each other.
    """
    node_of_rank = {r: k for k, node in enumerate(sheet.nodes) for r in node.ranks}
    data_of_arrow: dict[tuple[float, float], list[np.ndarray]] = {}
    for x in node_steps:
        start, end = (
            sheet.y_shared(node_of_rank[x.rank]) if buf == "node" else sheet.y(x.rank)
            for buf in (x.src, x.dst)
        )
        data_of_arrow.setdefault((start, end), []).append(x.data)
    for rows, data in data_of_arrow.items():
        dashes: dict[str, Any] = {"linestyle": (0, (2.5, 1.5)), "lw": 0.9}
        _arrow(sheet, column, rows, np.concatenate(data), **dashes)


def _meeting(sheet: Sheet, column: int, k: int) -> None:
    """Draw a line after a column, across the ranks of a node that met."""
    x = sheet.x(column) + sheet.cell + MEETING_WIDTH / 2
    low, top = sheet.frame(k)
    sheet.axes.plot((x, x), (low + 0.04, top - 0.04), color=INK, lw=2.4)


def _library(sheet: Sheet, column: int, base: int, n: int) -> None:
    """Draw a box over a group that calls the MPI library."""
    x = sheet.x(column) - sheet.gutter / 2
    rows = [sheet.y(rank) for rank in range(base, base + n)]
    top, low = max(rows) + SHEET_BAR / 2, min(rows) - SHEET_BAR / 2
    middle = (top + low) / 2
    sheet.box(x - 0.09, middle, 0.18, top - low, EMPTY)
    words = "MPI library" if n > 2 else "MPI"
    sheet.text(x, middle, words, 6.5, rotation=90)


def _underline_changes(
    sheet: Sheet, x: float, y: float, old: np.ndarray, new: np.ndarray, scale: float
) -> None:
    """Draw a line under the elements changed by a step."""
    for start, end, changed in runs(old != new):
        if changed:
            ends = x + start * scale, x + end * scale
            sheet.axes.plot(ends, (y, y), color=INK, lw=1.1, solid_capstyle="butt")


def _bar(sheet: Sheet, column: int, y: float, old: np.ndarray, new: np.ndarray) -> None:
    """Draw a buffer after a step, new elements underlined."""
    x, scale = sheet.x(column), sheet.cell / max(len(new), 1)
    sheet.bar(x, y, new, scale)
    _underline_changes(sheet, x, y - SHEET_BAR / 2 - 0.025, old, new, scale)


def _column(sheet: Sheet, column: int, step: StepPicture, before: StepPicture) -> None:
    """Draw the messages of a step, and the buffers of every rank afterwards."""
    width = 1.1 if len(step.messages) <= 2 * len(step.memory) else 0.5
    if sheet.arrows:
        _node_steps(sheet, column, step.node_steps)
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
    """Draw the contributions of all ranks, on a common scale."""
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
    sheet: Sheet, scratch: bool, sums: bool, all_steps: Sequence[StepPicture]
) -> None:
    """Draw a swatch for every rank, and explain the signs in the picture."""
    y = sheet.bottom - 0.32
    for group in sheet.groups:
        # rows by node do not say which group a rank is of
        name = group.name if sheet.nodes else f"from {group.short}"
        sheet.text(SHEET_LEFT - 0.1, y, name, 7.5, ha="right")
        width = min(SWATCH_INCHES, 4.8 / len(group.ranks))
        for i, rank in enumerate(group.ranks):
            x, colour = SHEET_LEFT + i * width, sheet.paint[rank]
            sheet.box(x, y, width * 0.95, 0.16, colour)
            if width == SWATCH_INCHES:
                sheet.text(x + width / 2, y, group.label(rank), 6.5, color=on(colour))
        if width < SWATCH_INCHES:
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
        node_words = ";  ".join(_node_words(sheet, all_steps))
        sheet.text(SHEET_LEFT, y - 0.17, node_words, 7.5, ha="left")


def _node_words(sheet: Sheet, all_steps: Sequence[StepPicture]) -> list[str]:
    """The meaning of the signs for nodes in the picture."""
    words = ["box: a node"]
    words += ["black line: its ranks meet"] * any(s.meetings for s in all_steps)
    words += ["shared: its memory"] * bool(sheet.rows.shared)
    if sheet.arrows:
        words += ["dashed: copied or combined"] * any(s.node_steps for s in all_steps)
        messages = [m for step in all_steps for m in step.messages]
        dots = any(m.from_node or m.to_node for m in messages)
        words += ["dot: end of a message in shared memory"] * dots
    return words


def _size(group: RankGroup, contributions: list[np.ndarray]) -> str:
    """The number of a group's ranks, and of the elements of each, as text."""
    counts = sorted({len(contributions[r]) for r in group.ranks})
    amount = f"{in_words(counts[-1], 'element')}"
    amount = f"{amount} each" if len(counts) == 1 else f"{counts[0]} to {amount}"
    return f"{group.short}: {in_words(len(group.ranks), 'rank')}, {amount}"


def _headings(
    sheet: Sheet, schedule: Schedule, contributions: list[np.ndarray]
) -> None:
    """Write the title, and the names of groups or nodes."""
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
    """Draw the box around a node, with the name."""
    from matplotlib.patches import FancyBboxPatch

    low, top = sheet.frame(k)
    width = sheet.figure.get_figwidth()
    style: dict[str, Any] = {"facecolor": "none", "edgecolor": FAINT, "lw": 0.9}
    shape = f"round,pad=0,rounding_size={NODE_BOX_MARGIN}"
    corner = (0.08, low - NODE_BOX_MARGIN)
    size = (width - 0.16, top - low + 2 * NODE_BOX_MARGIN)
    sheet.axes.add_patch(FancyBboxPatch(corner, *size, boxstyle=shape, **style))
    is_tall = top - low > 1.5 * SHEET_ROW
    x, font_size, rotation = (0.22, 8.5, 90) if is_tall else (0.3, 6, 0)
    words: dict[str, Any] = {"rotation": rotation, "weight": "bold"}
    sheet.text(x, (low + top) / 2, sheet.nodes[k].name, font_size, **words)


def _heading(step: StepPicture) -> str:
    """The number of a step's messages, and the length of the longest, as text."""
    if step.library and not step.messages:
        return "the MPI library"
    if not step.messages:
        kinds = ["copies"] * any(not x.is_reduction for x in step.node_steps)
        kinds += ["sums"] * any(x.is_reduction for x in step.node_steps)
        return " and ".join(kinds) or "meeting"
    longest = max(len(m.data) for m in step.messages)
    return f"{in_words(len(step.messages), 'message')}, longest {longest}"


def _steps_with_columns(n: int) -> list[int | None]:
    """The steps with a column; None stands for the steps left out."""
    if n <= MAX_STEP_COLUMNS:
        return list(range(n))
    late = MAX_STEP_COLUMNS // 2
    return [*range(MAX_STEP_COLUMNS - late), None, *range(n - late, n)]


def _contribution(before: Memory) -> np.ndarray:
    """A rank's contribution: in the send buffer, or in place in the receive buffer."""
    recv = before["recv"]
    return before.get("send", recv[recv["lo"] >= 0])


def _nodes(schedule: Schedule, all_steps: Sequence[StepPicture]) -> list[RankNode]:
    """The nodes, if several, or if a step touches node memory."""
    uses_memory = any(step.node_steps or step.meetings for step in all_steps)
    is_drawn = uses_memory or len(set(schedule.nodes)) > 1
    return nodes_of(schedule.nodes) if is_drawn else []


def figure(schedule: Schedule) -> Figure:
    """The buffers of every rank after every step, with the messages between."""
    groups = groups_of(list(schedule.groups))
    start = [schedule.contract.before(r) for r in range(schedule.n)]
    all_steps = list(steps(schedule))
    scratch = any(
        len(memory["tmp"]) for step in all_steps[:1] for memory in step.memory
    )
    columns = _steps_with_columns(len(all_steps))
    nodes = _nodes(schedule, all_steps)
    shared = all_steps[0].shared if all_steps else ()
    node_memory = [len(buf) > 0 for buf in shared]
    sheet = blank_sheet(groups, len(columns), scratch, nodes, node_memory)
    contributions = [_contribution(memory) for memory in start]
    _headings(sheet, schedule, contributions)
    _contributions(sheet, contributions)
    head = sheet.height - SHEET_TOP + 0.12
    sheet.text(sheet.x(0) + sheet.cell / 2, head + 0.07, "contributes", 8)
    blank_shared = tuple(blank(len(buf), buf.dtype) for buf in shared)
    first = StepPicture((), (), tuple(start), shared=blank_shared)
    for column, k in enumerate(columns, 1):
        middle = sheet.x(column) + sheet.cell / 2
        if k is None:
            left_out = in_words(len(all_steps) - MAX_STEP_COLUMNS, "step")
            sheet.text(middle, head + 0.07, f"… {left_out} …", 8, color=FAINT)
            continue
        _column(sheet, column, all_steps[k], all_steps[k - 1] if k else first)
        sheet.text(middle, head + 0.07, f"step {k + 1}", 8)
        sheet.text(middle, head - 0.07, _heading(all_steps[k]), 6.5, color=FAINT)
    sums = any((combined(m["recv"]) > 1).any() for s in all_steps for m in s.memory)
    _legend(sheet, scratch, sums, all_steps)
    return sheet.figure
