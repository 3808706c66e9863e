"""Real runs of one algorithm, recorded message by message."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..cost.recorded import End, Log
from ..lab.mpiexec import LaunchError, own_rank
from .job import Case, Contender, read_case
from .launch import Here, Start, launch

#: seconds without a word after which processes of our own are ended
LIMIT = 120.0


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


#: all runs: the logs of all ranks of each, and the MPI library they ran on
Runs = list[list[Log]]
Tell = Callable[[Runs, str], None]


def measure(job: Job, tell: Tell) -> None:
    """Run on all ranks of the world; rank 0 tells."""
    from ..mpi.costs.tuning import library
    from ..mpi.measure.measure import Stand
    from ..mpi.measure.recorder import recording

    stand = Stand(job.groups)
    with recording(stand.ours) as record:
        trial = stand.prepare(job.case, Contender(job.algorithm))
        for _ in range(job.runs):
            trial.wipe()
            stand.barrier()
            trial.run()
            if stand.worst([float(not trial.right())]) != [0.0]:
                raise LaunchError(f"wrong data from {job.algorithm}")
        runs = record.everyone()
    if stand.rank == 0:
        tell(runs, library())
    stand.free()


def run(job: Job, tell: Tell, start: Start = Here) -> None:
    """Run here if mpiexec started this process, else in processes of our own."""
    if own_rank() is not None:
        measure(job, tell)
        return
    text = json.dumps(asdict(job))
    module, n = "isthmus.bench.timelines", sum(job.groups)
    with closing(launch(module, n, text, LIMIT, start)) as lines:
        for line in lines:
            found = json.loads(line)
            tell([[_log(x) for x in logs] for logs in found["runs"]], found["library"])


def _log(data: dict[str, Any]) -> Log:
    ends = tuple(End(**end) for end in data["ends"])
    return Log(data["begin"], data["end"], ends)


def _main(text: str, results: str) -> None:
    """What every rank of our own does."""
    data = json.loads(Path(text).read_text("utf-8"))
    job = Job(read_case(data["case"]), data["algorithm"], data["runs"])

    def tell(runs: Runs, library: str) -> None:
        found = {"runs": [[asdict(x) for x in logs] for logs in runs]}
        line = json.dumps(found | {"library": library})
        Path(results).write_text(line + "\n", encoding="utf-8")

    measure(job, tell)


if __name__ == "__main__":
    _main(*sys.argv[1:])
