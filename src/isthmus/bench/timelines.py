"""Real runs of one algorithm, recorded message by message."""

from __future__ import annotations

from dataclasses import dataclass

from ..cost.recorded import Log
from .compare import WrongData
from .job import Case, Contender
from .launch import Tell
from .outcome import Progress


@dataclass(frozen=True)
class Job:
    """A case, the algorithm, and how often; the groups' sizes are those of the case."""

    case: Case
    algorithm: str
    runs: int

    @property
    def groups(self) -> tuple[int, ...]:
        """The sizes of the groups."""
        return tuple(len(x) for x in (self.case.a, self.case.b) if x)


@dataclass(frozen=True)
class Runs:
    """All runs: the logs of all ranks of each, and the MPI library they ran on."""

    logs: list[list[Log]]
    library: str


def measure(job: Job, tell: Tell) -> None:
    """Run on all ranks of the world."""
    from ..mpi.costs.tuning import library
    from .recorder import recording
    from .stand import Stand

    stand = Stand(job.groups)
    with recording(stand.ours) as record:
        trial = stand.prepare(job.case, Contender(job.algorithm))
        for k in range(job.runs):
            tell(Progress(f"run {k + 1} of {job.runs}", k / job.runs))
            trial.wipe()
            stand.barrier()
            trial.run()
            if stand.worst([float(not trial.right())]) != [0.0]:
                raise WrongData(f"wrong data from {job.algorithm}")
        logs = record.everyone()
    tell(Runs(logs, library()))
    stand.free()
