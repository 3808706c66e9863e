"""The results of a benchmark as a table that grows while a job runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ..units import show_bytes, show_time, time_unit
from .bootstrap import Interval
from .job import BenchJob
from .outcome import Line, is_native
from .regret import Regret, mean, regrets, worst

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

    def end(self) -> None:
        """Print nothing more: all rows are printed."""


#: regrets up to which a case is green, and up to which yellow
GOOD_REGRET, FAIR_REGRET = 1.05, 1.3
#: the rows of the worst cases
WORST_CASES = 10


def _show_regret(ratio: float) -> str:
    """A regret in colour."""
    is_good, is_fair = ratio <= GOOD_REGRET, ratio <= FAIR_REGRET
    colour = "green" if is_good else "yellow" if is_fair else "bold red"
    return f"[{colour}]{ratio:.2f}[/]"


class RegretTable:
    """The table of the regret of "auto", with a row for each operation and a column for
    each size; then the worst cases."""

    def __init__(self, console: Console, job: BenchJob) -> None:
        self.console, self.job = console, job
        #: of the operation under measurement, and of all
        self.row: list[Regret] = []
        self.regrets: list[Regret] = []
        self.sizes = sorted({case.each for case in job.cases})
        columns = [Column("", max(len(case.op) for case in job.cases), left=True)]
        columns += [
            Column(show_bytes(n).replace(" ", "").removesuffix("iB"), 4)
            for n in self.sizes
        ]
        self.table = PrintedTable(
            console, [*columns, Column("mean", 4), Column("worst", 5)]
        )

    def add(self, lines: Sequence[Line]) -> None:
        """Add a case; print a row after the last case of an operation."""
        self.row += regrets(lines)
        op = self.row[0].case.op
        if len(self.row) < sum(case.op == op for case in self.job.cases):
            return
        ratios = {regret.case.each: regret.ratio for regret in self.row}
        cells = [_show_regret(ratios[n]) if n in ratios else "" for n in self.sizes]
        summary = mean(self.row), max(ratios.values())
        self.table.row([op, *cells, *map(_show_regret, summary)])
        self.regrets += self.row
        self.row = []

    def end(self) -> None:
        """Print the mean of all cases, and the worst cases."""
        print_words = partial(self.console.print, highlight=False, soft_wrap=True)
        print_words(f"\nmean {mean(self.regrets):.3f} of {len(self.regrets)} cases")
        worst_cases = [x for x in worst(self.regrets, WORST_CASES) if x.ratio > 1]
        if not worst_cases:
            return
        print_words("the worst:\n")
        columns = [
            Column("", max(len(regret.case.label) for regret in worst_cases), True),
            Column("regret", 6),
            Column("95 %", 11),
            Column("auto", 8),
            Column("took", max(len(regret.taken) for regret in worst_cases), True),
            Column("best", 8),
            Column("by", 10, left=True),
        ]
        table = PrintedTable(self.console, columns)
        for regret in worst_cases:
            table.row(
                [
                    regret.case.label,
                    _show_regret(regret.ratio),
                    _show_interval(regret.interval),
                    show_time(regret.auto_seconds),
                    regret.taken,
                    show_time(regret.best_seconds),
                    regret.best,
                ]
            )
