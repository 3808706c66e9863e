"""A measurement as it is seen while it runs: how far it is, and its table."""

from __future__ import annotations

from rich.console import Console

from ..bench import worker
from ..bench.environment import Software
from ..bench.job import BenchJob
from ..bench.outcome import Outcome
from ..bench.place import Place
from ..bench.record import Record
from ..bench.table import Comparison
from .terminal import Steps


class Shown(Record):
    """Prints results as they come."""

    def __init__(self, where: Place, title: str, table: bool) -> None:
        super().__init__(where)
        self.console, self.title, self.table = Console(), title, table
        self.steps = Steps(self.console)

    def run(self, todo: list[BenchJob], launches: int) -> None:
        """Measure all jobs, one after the other."""
        with self.steps:
            for k, job in enumerate(todo):
                self.jobs.append(job)
                self.share = k / len(todo), 1 / len(todo)
                worker.repeat(job, self, launches, self.place.start)

    def heading(self) -> str:
        """What is measured, between or inside which groups."""
        groups = self.jobs[-1].groups
        where = "inside" if len(groups) == 1 else "between"
        return f"{self.title} {where} {' and '.join(map(str, groups))} processes"

    def head(self) -> list[str]:
        """What is measured and where, in a few words, and what is wrong there."""
        words = [self.heading(), self.software.library]
        head = ", ".join([*words, *filter(None, [self.place.words])])
        return [head, *([f"warning: {self.place.warning}"] * bool(self.place.warning))]

    def about(self, software: Software) -> None:
        """Say what is being compared, and begin the table."""
        super().about(software)
        if not self.table:
            return
        self.console.print("\n".join(self.head()), highlight=False, soft_wrap=True)
        limit = "what the links let through" if self.place.on_lab else "a copy"
        said = (
            "ratio: how many times faster than native; limit: multiple of the time of"
        )
        self.console.print(f"{said} {limit}\n", style="dim", soft_wrap=True)
        self.comparison = Comparison(self.console, self.jobs[-1])

    def progress(self, label: str, part: float) -> None:
        """How far the whole is."""
        begin, width = self.share
        self.steps(label, begin + width * part)

    def outcome(self, found: Outcome) -> None:
        """Print a case."""
        super().outcome(found)
        if self.table:
            self.comparison.add(self.lines[-len(found.results) :])
