"""Work on many ranks: in place under the user's mpiexec, or in processes of our own.

The work of all ranks is a function of a job and of `tell`, which passes results to the
process with the display. Processes of our own cannot return results, and their output
is also the MPI library's, so rank 0 appends each result to a file, and the process that
started them reads the file.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..launch.local import Here as Here, Start as Start
from ..launch.mpiexec import LaunchError, own_rank
from .outcome import ProgressReport

SECONDS_BETWEEN_READS = 0.05
LINES_OF_AN_ERROR = 12
#: what to do about errors that each process would print at length
ADVICE = {
    "cannot load MPI library": "mpi4py finds no MPI library: pip install "
    '"isthmus[mpich]", or load the module of your site',
    "suspicious MPI execution environment": "mpiexec is of another MPI library than "
    "mpi4py's: put the one that belongs to it first on the PATH",
}
#: seconds without a result after which processes of our own are ended
MAX_SILENT_SECONDS = 600.0
SECONDS_BETWEEN_PROGRESS = 0.25

#: shows a result, or the progress
Tell = Callable[[Any], None]
#: the work of all ranks on a job; a function of a module, since it is pickled
Work = Callable[[Any, Tell], None]


def _lines(process: subprocess.Popen[Any], path: Path, limit: float) -> Iterator[bytes]:
    """The lines that rank 0 appends to a file, until mpiexec ends.

    Raises `LaunchError` when no line has come for `limit` seconds.
    """
    deadline, unread = time.monotonic() + limit, b""
    with open(path, "rb") as results:
        while True:
            # Asked before reading: otherwise the last lines of a launch that ends in
            # between would be lost.
            ended = process.poll() is not None
            unread += results.read()
            *whole, unread = unread.split(b"\n")
            yield from whole
            if ended:
                return
            if whole:
                deadline = time.monotonic() + limit
            if time.monotonic() > deadline:
                raise LaunchError(f"nothing heard of the processes for {limit:g} s")
            time.sleep(SECONDS_BETWEEN_READS)


def _cause(output: str, status: int) -> str:
    """The cause for which processes ended, or the last lines of their output."""
    for words, advice in ADVICE.items():
        if words in output:
            return advice
    last_lines = "\n".join(output.split("\n")[-LINES_OF_AN_ERROR:])
    return f"mpiexec returned {status}\n{last_lines}"


def launch(
    work: Work,
    job: Any,
    size: int,
    limit: float = MAX_SILENT_SECONDS,
    start: Start = Here,
) -> Generator[Any, None, None]:
    """The results of a job on `size` ranks, in the order of rank 0."""
    with TemporaryDirectory(prefix="isthmus-") as folder:
        job_file, results, log = (
            Path(folder, name) for name in ("job", "results", "log")
        )
        job_file.write_bytes(pickle.dumps((work, job)))
        results.touch()
        # mpi4py's runner ends all ranks when one fails.
        python = [sys.executable, "-m", "mpi4py", "-m", "isthmus.bench.launch"]
        with log.open("wb") as output:
            running = start([*python, str(job_file), str(results)], size, output)
        with running:
            for line in _lines(running.process, results, limit):
                yield pickle.loads(b64decode(line))
        if running.process.returncode:
            printed = log.read_text(encoding="utf-8", errors="replace").strip()
            raise LaunchError(_cause(printed, running.process.returncode))


def run(
    work: Work,
    job: Any,
    size: int,
    tell: Tell,
    limit: float = MAX_SILENT_SECONDS,
    start: Start = Here,
) -> None:
    """Do a job in place if mpiexec started this process, else in new processes."""
    if own_rank() is not None:
        _run_in_place(work, job, size, tell)
        return
    # Closed at once, whatever happens: that ends the processes.
    with closing(launch(work, job, size, limit, start)) as results:
        for result in results:
            if isinstance(result, LaunchError):
                raise result
            tell(result)


def _run_in_place(work: Work, job: Any, size: int, tell: Tell) -> None:
    """Do a job on the ranks of the world, with this process as a rank."""
    from .stand import abort, world_size

    if size != world_size():
        raise ValueError(f"{size} processes are needed; there are {world_size()}")
    try:
        work(job, tell if own_rank() == 0 else lambda result: None)
    except LaunchError:  # on all ranks alike
        raise
    except BaseException as error:
        abort(error)


def _main(job_file: str, results: str) -> None:
    """The program of a process of our own."""
    last_progress = 0.0

    def tell(result: Any) -> None:
        nonlocal last_progress
        if isinstance(result, ProgressReport):
            if time.monotonic() < last_progress + SECONDS_BETWEEN_PROGRESS:
                return
            last_progress = time.monotonic()
        if own_rank() == 0:
            # in one write, so that a reader never sees a part of a result alone
            with open(results, "ab", buffering=0) as file:
                file.write(b64encode(pickle.dumps(result)) + b"\n")

    work, job = pickle.loads(Path(job_file).read_bytes())
    try:
        work(job, tell)
    except LaunchError as error:  # on all ranks alike
        tell(error)


if __name__ == "__main__":
    _main(*sys.argv[1:])
