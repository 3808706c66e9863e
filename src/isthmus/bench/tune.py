"""The measurement behind `isthmus tune`: the machine, then predictions."""

from __future__ import annotations

from dataclasses import dataclass

from ..choose.tuning import Tuning
from ..units import show_bytes
from . import predictions
from .compare import compare
from .launch import Tell
from .outcome import Outcome, ProgressReport

#: the share of the time of a tuning that the messages take, roughly
SHARE_FOR_MESSAGES = 0.1


@dataclass(frozen=True)
class TuningResult:
    """A tuning, and the outcomes of the cases that it predicts."""

    tuning: Tuning
    outcomes: tuple[Outcome, ...]


def measure(seconds: float, tell: Tell) -> None:
    """Tune on all ranks of the world; each case takes about `seconds`."""
    from ..mpi.costs.links import measure_tuning
    from ..mpi.costs.tuning import using
    from .stand import Stand, world

    comm = world()
    tell(ProgressReport("messages", 0.0))
    tuning = measure_tuning(comm)
    jobs = predictions.tuning_jobs(comm.size, tuning.machine, seconds)
    total = sum(len(job.cases) for job in jobs)
    outcomes: list[Outcome] = []
    with using(tuning):
        for job in jobs:
            stand = Stand(job.groups)
            for case in job.cases:
                part = (
                    SHARE_FOR_MESSAGES
                    + (1 - SHARE_FOR_MESSAGES) * len(outcomes) / total
                )
                words = f"{predictions.kind(case)}, {show_bytes(case.each)}"
                tell(ProgressReport(words, part))
                outcomes.append(compare(stand, case, job))
            stand.free()
    comm.Free()
    tell(TuningResult(tuning, tuple(outcomes)))
