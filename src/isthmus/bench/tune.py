"""Measuring what messages cost, and where one algorithm overtakes another."""

from __future__ import annotations

from dataclasses import dataclass

from ..choose.tuning import Tuning
from ..units import show_bytes
from . import crossovers
from .compare import compare
from .launch import Tell
from .outcome import Outcome, Progress

#: the share of the whole that messages take, roughly
MESSAGES = 0.1


@dataclass(frozen=True)
class Measured:
    """What came out: the tuning, and the cases that it was refined by."""

    tuning: Tuning
    outcomes: tuple[Outcome, ...]


def measure(seconds: float, tell: Tell) -> None:
    """Measure on all ranks of the world, each case about so long."""
    from ..mpi.costs.links import measured
    from ..mpi.costs.tuning import using
    from .stand import Stand, world

    comm = world()
    tell(Progress("messages", 0.0))
    tuning = measured(comm)
    todo = crossovers.todo(comm.size, tuning.widest, seconds)
    total = sum(len(job.cases) for job in todo)
    outcomes: list[Outcome] = []
    with using(tuning):
        for job in todo:
            stand = Stand(job.groups)
            for case in job.cases:
                part = MESSAGES + (1 - MESSAGES) * len(outcomes) / total
                words = f"{crossovers.kind(case)}, {show_bytes(case.each)}"
                tell(Progress(words, part))
                outcomes.append(compare(stand, case, job))
            stand.free()
    comm.Free()
    tell(Measured(crossovers.conclude(tuning, outcomes), tuple(outcomes)))
