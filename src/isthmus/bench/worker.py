"""Running a job: in place under the user's mpiexec, or in processes of our own."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from ..lab.mpiexec import LaunchError, own_rank
from . import field
from .compare import WrongData, compare
from .environment import Software
from .job import Job, read_job, to_json
from .launch import Here, Start, launch
from .outcome import Outcome, read_outcome

if TYPE_CHECKING:
    from ..mpi.measure.measure import Stand

#: seconds without a word after which processes of our own are ended
LIMIT = 600.0
#: seconds between two words about the progress
PAUSE = 0.25


class Display:
    """What a job tells as it runs, in the one process that shows it."""

    def about(self, software: Software) -> None:
        """What it runs on."""

    def progress(self, label: str, part: float) -> None:
        """So much of a case is done."""

    def outcome(self, found: Outcome) -> None:
        """A case is measured."""


def _stand(job: Job) -> Stand:
    """The processes of this world in the groups of the job."""
    from ..mpi.measure import measure as mpi

    content = field.content if job.content == "field" else mpi.random_bytes
    return mpi.Stand(job.groups, content, job.same_arrays)


def measure(job: Job, stand: Stand, display: Display) -> None:
    """Run a job on all ranks; rank 0 displays."""
    from ..mpi.measure import measure as mpi

    if stand.rank:
        display = Display()
    display.about(Software.here(mpi.library()))
    for case in job.cases:
        display.progress(case.label, 0.0)
        display.outcome(
            compare(stand, case, job, partial(display.progress, case.label))
        )
    stand.free()


def _in_place(job: Job, display: Display) -> None:
    """Run a job in this process and those that were started with it."""
    from ..mpi.measure.measure import abort

    stand = _stand(job)
    try:
        measure(job, stand, display)
    except WrongData as error:  # on all ranks alike
        raise LaunchError(str(error)) from None
    except BaseException as error:
        abort(error)


def run(job: Job, display: Display, limit: float = LIMIT, start: Start = Here) -> None:
    """Run a job here if mpiexec started this process, else in processes of our own."""
    if own_rank() is not None:
        _in_place(job, display)
        return
    size = sum(job.groups)
    # Closed at once, whatever happens: that ends the processes.
    with closing(
        launch("isthmus.bench.worker", size, to_json(job), limit, start)
    ) as lines:
        for line in lines:
            _tell(display, json.loads(line))


def _tell(display: Display, data: dict[str, object]) -> None:
    """Pass on what a worker wrote."""
    match data:
        case {"error": text}:
            raise LaunchError(str(text))
        case {"library": _}:
            display.about(Software(**data))  # type: ignore[arg-type]
        case {"label": str(label), "part": float(part)}:
            display.progress(label, part)
        case _:
            display.outcome(read_outcome(data))


class _Writer(Display):
    """Writes what happens for the parent process, in single writes."""

    def __init__(self, path: str) -> None:
        self.path, self.last = path, 0.0

    def _write(self, line: str) -> None:
        with open(self.path, "ab", buffering=0) as results:
            results.write(line.encode() + b"\n")

    def about(self, software: Software) -> None:
        self._write(json.dumps(asdict(software)))

    def progress(self, label: str, part: float) -> None:
        if monotonic() > self.last + PAUSE:
            self.last = monotonic()
            self._write(json.dumps({"label": label, "part": part}))

    def outcome(self, found: Outcome) -> None:
        self._write(to_json(found))

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
