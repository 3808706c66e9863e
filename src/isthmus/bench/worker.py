"""Measuring the cases of a job, one after the other."""

from __future__ import annotations

from typing import Any

from . import field
from .compare import compare
from .environment import Software
from .job import Job
from .launch import LIMIT, Here, Start, Tell, run as on_all_ranks
from .outcome import Outcome, Progress


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
    from ..mpi.measure import measure as mpi

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
