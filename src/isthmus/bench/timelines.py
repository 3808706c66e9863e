"""Real runs of one algorithm, recorded message by message."""

from __future__ import annotations

from dataclasses import dataclass

from ..cost.recorded import Log
from .compare import WrongData
from .job import BenchCase, Contender
from .launch import Tell
from .outcome import ProgressReport


@dataclass(frozen=True)
class RecordingJob:
    """A case, an algorithm, and the number of runs to record."""

    case: BenchCase
    algorithm: str
    runs: int

    @property
    def groups(self) -> tuple[int, ...]:
        """The sizes of the groups of the case."""
        return tuple(len(blocks) for blocks in (self.case.a, self.case.b) if blocks)


@dataclass(frozen=True)
class RecordedRuns:
    """The logs of all ranks for each run, and the name of the MPI library."""

    logs: list[list[Log]]
    library: str


def measure(job: RecordingJob, tell: Tell) -> None:
    """Record the runs of a job on all ranks of the world."""
    from ..mpi.costs.tuning import library
    from .recorder import recording
    from .stand import Stand

    stand = Stand(job.groups)
    with recording(stand.ours) as record:
        trial = stand.prepare(job.case, Contender(job.algorithm))
        for k in range(job.runs):
            tell(ProgressReport(f"run {k + 1} of {job.runs}", k / job.runs))
            trial.wipe()
            stand.barrier()
            trial.run()
            if stand.worst([float(not trial.right())]) != [0.0]:
                raise WrongData(f"wrong data from {job.algorithm}")
        logs = record.logs_by_call()
    tell(RecordedRuns(logs, library()))
    stand.free()
