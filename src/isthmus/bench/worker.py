"""A job in several fresh launches, with its cases in order.

A launch is a factor of its own (Hunold and Carpen-Amarie 2016): the places of ranks and
buffers are chosen anew in each launch, and stay until its end. The repetitions of a
single launch would hide the effect of these places on the times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..launch.mpiexec import own_rank
from . import field
from .compare import compare
from .environment import Software
from .job import BenchJob
from .launch import MAX_SILENT_SECONDS, Here, Start, Tell, run as on_all_ranks
from .outcome import Outcome, ProgressReport, merge


class Display:
    """Receives the results of a job as it runs, in the process with the display."""

    def about(self, software: Software) -> None:
        """Show the software on which the job runs."""

    def progress(self, label: str, part: float) -> None:
        """Show the part of a case that is done."""

    def outcome(self, outcome: Outcome) -> None:
        """Show the outcome of a case."""


def measure(job: BenchJob, tell: Tell) -> None:
    """Measure the cases of a job on all ranks of the world."""
    from . import stand as mpi

    content = field.content if job.content == "field" else mpi.random_bytes
    stand = mpi.Stand(job.groups, content, job.same_arrays)
    tell(Software.here(mpi.library()))
    for case in job.cases:

        def progress(part: float, label: str = case.label) -> None:
            tell(ProgressReport(label, part))

        progress(0.0)
        tell(compare(stand, case, job, progress))
    stand.free()


def run(
    job: BenchJob,
    display: Display,
    limit: float = MAX_SILENT_SECONDS,
    start: Start = Here,
) -> None:
    """Run a job in place if mpiexec started this process, else in a launch."""

    def tell(result: Any) -> None:
        match result:
            case Software():
                display.about(result)
            case ProgressReport():
                display.progress(*result)
            case _:
                display.outcome(result)

    on_all_ranks(measure, job, sum(job.groups), tell, limit, start)


class LaunchMerger(Display):
    """Shows each case once, in the last launch, with the times of all launches."""

    def __init__(self, job: BenchJob, display: Display, launches: int) -> None:
        self.cases, self.display, self.launches = len(job.cases), display, launches
        self.outcomes: list[Outcome] = []

    def about(self, software: Software) -> None:
        """Show the software of the first launch, which is that of all launches."""
        if not self.outcomes:
            self.display.about(software)

    def progress(self, label: str, part: float) -> None:
        """Show the part of all launches that is done."""
        done = (len(self.outcomes) + part) / (self.cases * self.launches)
        if self.launches > 1:
            launch = len(self.outcomes) // self.cases + 1
            label = f"launch {launch} of {self.launches}: {label}"
        self.display.progress(label, done)

    def outcome(self, outcome: Outcome) -> None:
        """Collect an outcome; in the last launch, show those of the case as one."""
        self.outcomes.append(outcome)
        if len(self.outcomes) > self.cases * (self.launches - 1):
            case_number = (len(self.outcomes) - 1) % self.cases
            self.display.outcome(merge(self.outcomes[case_number :: self.cases]))


def repeat(job: BenchJob, display: Display, launches: int, start: Start = Here) -> None:
    """Run a job in several launches.

    Where the user's mpiexec started this process, there is a single launch.
    """
    launches = 1 if own_rank() is not None else launches
    merger = LaunchMerger(job, display, launches)
    for k in range(launches):
        run(replace(job, seed=job.seed + k), merger, start=start)
