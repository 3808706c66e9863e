"""Several fresh launches of one job, as one measurement.

A launch is a factor of its own: where ranks and buffers happen to lie stays the same
until its end (Hunold and Carpen-Amarie 2016).
"""

from __future__ import annotations

from dataclasses import replace

from ..lab.mpiexec import own_rank
from . import worker
from .environment import Software
from .job import Job
from .launch import Here, Start
from .outcome import Outcome, merge


class Collected(worker.Display):
    """Shows each case once, when its last launch is over."""

    def __init__(self, job: Job, display: worker.Display, launches: int) -> None:
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


def measure(
    job: Job, display: worker.Display, launches: int, start: Start = Here
) -> None:
    """Run a job so many times; once only where the user's mpiexec started us."""
    launches = 1 if own_rank() is not None else launches
    collected = Collected(job, display, launches)
    for k in range(launches):
        worker.run(replace(job, seed=job.seed + k), collected, start=start)
