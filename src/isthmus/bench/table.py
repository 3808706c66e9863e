"""Results as a table that grows while a job runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .job import NATIVE, Contender, Outcome
from .units import show_time

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Column:
    """A heading, how wide it is, and on which side its words lie."""

    heading: str
    width: int
    left: bool = False


def show_ratio(ratio: float) -> str:
    """How many times faster, in colour: green from 5 % faster, red from 5 % slower."""
    colour = "green" if ratio >= 1.05 else "red" if ratio <= 0.95 else "yellow"
    return f"[bold {colour}]{ratio:.2f}×[/]"


class Table:
    """Rows printed one by one, so that they are seen at once and also in a pipe."""

    def __init__(self, console: Console, columns: list[Column]) -> None:
        self.console, self.columns = console, columns
        self.row([f"[bold]{c.heading}[/]" for c in columns])
        self.console.print("  ".join("─" * c.width for c in columns), style="dim")

    def row(self, cells: list[str]) -> None:
        """Print one row."""
        from rich.text import Text

        line = Text()
        for column, cell in zip(self.columns, cells, strict=True):
            text = Text.from_markup(cell)
            text.align("left" if column.left else "right", column.width)
            line.append(text).append("  ")
        line.rstrip()
        self.console.print(line, soft_wrap=True)


class Comparison:
    """The results of a benchmark: a row for each case, or, where contenders are too
    many for the width of the console, for each contender."""

    def __init__(self, console: Console, contenders: tuple[Contender, ...]) -> None:
        self.others = [c for c in contenders if c != NATIVE]
        wide = [Column("per rank", 9), Column("native", 8)]
        for other in self.others:
            wide += [Column(other.name, max(len(other.name), 8)), Column("ratio", 7)]
        self.wide = sum(c.width + 2 for c in wide) <= max(console.width, 80)
        name = max((len(c.name) for c in contenders), default=6)
        long = [
            Column("per rank", 9),
            Column("", name, left=True),
            Column("time", 8),
            Column("ratio", 7),
        ]
        self.table = Table(console, wide if self.wide else long)

    def add(self, found: Outcome) -> None:
        """Print the results of one case."""
        label, native = found.case.label, show_time(found.seconds(NATIVE))
        rows = [
            (c.name, show_time(found.seconds(c)), show_ratio(found.ratio(c)))
            for c in self.others
        ]
        if self.wide:
            cells = [cell for row in rows for cell in row[1:]]
            self.table.row([label, native, *cells])
            return
        self.table.row([label, "native", native, ""])
        for row in rows:
            self.table.row(["", *row])
