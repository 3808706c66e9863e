"""The results of a benchmark as a table that grows while a job runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..units import show_time, time_unit
from .bootstrap import Interval
from .job import BenchJob
from .outcome import Line, is_native

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Column:
    """The heading of a column, its width, and whether cells are aligned left."""

    heading: str
    width: int
    left: bool = False


def show_ratio(ratio: float) -> str:
    """A ratio in colour: green from 5 % faster on, red from 5 % slower on."""
    colour = "green" if ratio >= 1.05 else "red" if ratio <= 0.95 else "yellow"
    return f"[bold {colour}]{ratio:.2f}×[/]"


class PrintedTable:
    """A table whose rows are printed at once, so that each is seen early, also in a
    pipe."""

    def __init__(self, console: Console, columns: list[Column]) -> None:
        self.console, self.columns = console, columns
        self.row([f"[bold]{c.heading}[/]" for c in columns])
        rule = "  ".join("─" * c.width for c in columns)
        self.console.print(rule, style="dim", soft_wrap=True)

    def row(self, cells: list[str]) -> None:
        """Print a row of cells, which may have rich's markup."""
        from rich.text import Text

        line = Text()
        for column, cell in zip(self.columns, cells, strict=True):
            text = Text.from_markup(cell)
            width = max(column.width, text.cell_len)  # rather out of line than cut
            text.align("left" if column.left else "right", width)
            line.append(text).append("  ")
        line.rstrip()
        self.console.print(line, soft_wrap=True)


def _show_interval(interval: Interval, unit: float = 1.0) -> str:
    """The ends of an interval, with three digits or all before the point."""
    ends = [end / unit for end in interval]
    return "–".join(f"{end:.3g}" if end < 1000 else f"{end:.0f}" for end in ends)


class Comparison:
    """The table of a benchmark, with a row for each contender of each case."""

    def __init__(self, console: Console, job: BenchJob) -> None:
        label = max(len("block"), *(len(case.label) for case in job.cases))
        name = max(len(contender.name) for contender in job.contenders)
        self.table = PrintedTable(
            console,
            [
                Column("block", label),
                Column("", name, left=True),
                Column("time", 8),
                Column("95 %", 11),
                Column("ratio", 7),
                Column("95 %", 11),
                Column("limit", 6),
                Column("taken", 10, left=True),
            ],
        )

    def add(self, lines: Sequence[Line]) -> None:
        """Print the results of one case."""
        for k, line in enumerate(lines):
            time = show_time(line.seconds)
            interval = _show_interval(line.interval, time_unit(line.seconds))
            ratio = "", ""
            if not is_native(line):
                ratio = show_ratio(line.ratio), _show_interval(line.ratio_interval)
            multiple = "" if line.multiple is None else f"{line.multiple:.2f}"
            label = line.case.label if k == 0 else ""
            row = [label, line.contender, time, interval, *ratio, multiple, line.taken]
            self.table.row(row)
