"""Running a job: in place under the user's mpiexec, or in processes of our own."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from . import field
from .compare import WrongData, compare
from .job import Job, Outcome, read_job, read_outcome, to_json
from .launch import LaunchError, launch, own_rank

if TYPE_CHECKING:
    from ..mpi.measure import Stand

#: seconds after which processes of our own are ended
LIMIT = 600.0


class Display:
    """What a job tells as it runs, in the one process that shows it."""

    def about(self, library: str) -> None:
        """The MPI library it runs on."""

    def outcome(self, found: Outcome) -> None:
        """A case is measured."""


def _stand(job: Job) -> Stand:
    """The processes of this world in the groups of the job."""
    from ..mpi import measure as mpi

    content = field.content if job.content == "field" else mpi.random_bytes
    return mpi.Stand(job.groups, content)


def measure(job: Job, stand: Stand, display: Display) -> None:
    """Run a job on all ranks; rank 0 displays."""
    from ..mpi import measure as mpi

    if stand.rank == 0:
        display.about(mpi.library())
    for case in job.cases:
        found = compare(stand, case, job)
        if stand.rank == 0:
            display.outcome(found)
    stand.free()


def _in_place(job: Job, display: Display) -> None:
    """Run a job in this process and those that were started with it."""
    from ..mpi.measure import abort

    stand = _stand(job)
    try:
        measure(job, stand, display)
    except WrongData as error:  # on all ranks alike
        raise LaunchError(str(error)) from None
    except BaseException as error:
        abort(error)


def run(job: Job, display: Display, limit: float = LIMIT) -> None:
    """Run a job here if mpiexec started this process, else in processes of our own."""
    if own_rank() is not None:
        _in_place(job, display)
        return
    for line in launch("isthmus.bench.worker", sum(job.groups), to_json(job), limit):
        data = json.loads(line)
        if "error" in data:
            raise LaunchError(data["error"])
        if "library" in data:
            display.about(data["library"])
        else:
            display.outcome(read_outcome(data))


class _Writer(Display):
    """Writes what happens for the parent process, in single writes."""

    def __init__(self, path: str) -> None:
        self.path = path

    def _write(self, line: str) -> None:
        with open(self.path, "ab", buffering=0) as results:
            results.write(line.encode() + b"\n")

    def about(self, library: str) -> None:
        self._write(json.dumps({"library": library}))

    def outcome(self, found: Outcome) -> None:
        self._write(json.dumps(asdict(found)))

    def error(self, text: str) -> None:
        self._write(json.dumps({"error": text}))


def main(job: str, results: str) -> None:
    """What every rank of our own does."""
    writer = _Writer(results)
    todo = read_job(Path(job).read_text(encoding="utf-8"))
    try:
        measure(todo, _stand(todo), writer)
    except WrongData as error:
        if own_rank() == 0:
            writer.error(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
