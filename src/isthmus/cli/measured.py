"""A running measurement on the terminal: progress, and a table of results."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from ..bench import worker
from ..bench.environment import Software
from ..bench.job import BenchJob
from ..bench.launch import MAX_SILENT_SECONDS, Start, Work, run
from ..bench.outcome import Outcome, ProgressReport
from ..bench.place import Place
from ..bench.record import Record
from ..bench.table import Comparison, RegretTable
from .terminal import ProgressDisplay


def results_of(
    work: Work,
    job: Any,
    n: int,
    progress: ProgressDisplay,
    start: Start,
    limit: float = MAX_SILENT_SECONDS,
) -> list[Any]:
    """The results of work on n ranks, in the only process that collects results."""
    results: list[Any] = []

    def receive(message: Any) -> None:
        if isinstance(message, ProgressReport):
            progress(*message)
        else:
            results.append(message)

    run(work, job, n, receive, limit, start)
    return results


class LiveRecord(Record):
    """A record that prints each result at once."""

    comparison: Comparison | RegretTable

    def __init__(self, place: Place, title: str, table: bool) -> None:
        super().__init__(place)
        self.console, self.title, self.table = Console(), title, table
        self.progress_display = ProgressDisplay(self.console)

    def run(self, bench_jobs: list[BenchJob], launches: int) -> None:
        """Measure all jobs, in their order."""
        with self.progress_display:
            for k, job in enumerate(bench_jobs):
                self.jobs.append(job)
                self.share = k / len(bench_jobs), 1 / len(bench_jobs)
                worker.repeat(job, self, launches, self.place.start)
        if self.table and self.outcomes:
            self.comparison.end()

    def heading(self) -> str:
        """The title with the sizes of the groups, between or inside."""
        groups = self.jobs[-1].groups
        preposition = "inside" if len(groups) == 1 else "between"
        return f"{self.title} {preposition} {' and '.join(map(str, groups))} processes"

    def head(self) -> list[str]:
        """Lines with title, library and place, and the warning of the place."""
        words = [self.heading(), self.software.library]
        head = ", ".join([*words, *filter(None, [self.place.words])])
        return [head, *([f"warning: {self.place.warning}"] * bool(self.place.warning))]

    def about(self, software: Software) -> None:
        """Print the head, and begin the table."""
        super().about(software)
        if not self.table:
            return
        self.console.print("\n".join(self.head()), highlight=False, soft_wrap=True)
        job = self.jobs[-1]
        limit = "what the links let through" if self.place.on_lab else "a copy"
        words = (
            "ratio: how many times faster than native; limit: multiple of the time of "
            + limit
        )
        if job.all_candidates:
            words = "how many times longer auto takes than the fastest of all"
        self.console.print(f"{words}\n", style="dim", soft_wrap=True)
        table = RegretTable if job.all_candidates else Comparison
        self.comparison = table(self.console, job)

    def progress(self, label: str, part: float) -> None:
        """Report the progress of a job as progress of all jobs."""
        start, width = self.share
        self.progress_display(label, start + width * part)

    def outcome(self, outcome: Outcome) -> None:
        """Add the lines of a case to the table."""
        super().outcome(outcome)
        if self.table:
            self.comparison.add(self.lines[-len(outcome.results) :])
