"""Running a job: its cases one after the other, in several fresh launches.

A launch is a factor of its own: where ranks and buffers happen to lie stays the same
until its end (Hunold and Carpen-Amarie 2016).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..launch.mpiexec import own_rank
from . import field
from .compare import compare
from .environment import Software
from .job import Job
from .launch import LIMIT, Here, Start, Tell, run as on_all_ranks
from .outcome import Outcome, Progress, merge


class Display:
    """What a job tells as it runs, in the one process that shows it."""

    def about(self, software: Software) -> None:
        """What it runs on."""

    def progress(self, label: str, part: float) -> None:
        """So much of a case is done."""

    def outcome(self, found: Outcome) -> None:
        """A case is measured."""


def measure(job: Job, tell: Tell) -> None:
    """Run a job on all ranks."""
    from . import stand as mpi

    content = field.content if job.content == "field" else mpi.random_bytes
    stand = mpi.Stand(job.groups, content, job.same_arrays)
    tell(Software.here(mpi.library()))
    for case in job.cases:

        def progress(part: float, label: str = case.label) -> None:
            tell(Progress(label, part))

        progress(0.0)
        tell(compare(stand, case, job, progress))
    stand.free()


def run(job: Job, display: Display, limit: float = LIMIT, start: Start = Here) -> None:
    """Run a job here if mpiexec started this process, else in processes of our own."""

    def tell(found: Any) -> None:
        match found:
            case Software():
                display.about(found)
            case Progress():
                display.progress(*found)
            case _:
                display.outcome(found)

    on_all_ranks(measure, job, sum(job.groups), tell, limit, start)


class Collected(Display):
    """Shows each case once, when its last launch is over."""

    def __init__(self, job: Job, display: Display, launches: int) -> None:
        self.cases, self.display, self.launches = len(job.cases), display, launches
        self.found: list[Outcome] = []

    def about(self, software: Software) -> None:
        """The same for all launches."""
        if not self.found:
            self.display.about(software)

    def progress(self, label: str, part: float) -> None:
        """So much of all launches is done."""
        done = (len(self.found) + part) / (self.cases * self.launches)
        if self.launches > 1:
            launch = len(self.found) // self.cases + 1
            label = f"launch {launch} of {self.launches}: {label}"
        self.display.progress(label, done)

    def outcome(self, found: Outcome) -> None:
        """Keep it; in the last launch, show it with the earlier ones."""
        self.found.append(found)
        if len(self.found) > self.cases * (self.launches - 1):
            same = self.found[(len(self.found) - 1) % self.cases :: self.cases]
            self.display.outcome(merge(same))


def repeat(job: Job, display: Display, launches: int, start: Start = Here) -> None:
    """Run a job so many times; once only where the user's mpiexec started us."""
    launches = 1 if own_rank() is not None else launches
    collected = Collected(job, display, launches)
    for k in range(launches):
        run(replace(job, seed=job.seed + k), collected, start=start)
