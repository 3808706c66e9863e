"""Measuring on many ranks: in place under the user's mpiexec, or in processes of our
own, whose rank 0 writes what it tells to a file.

What all ranks do is a function of a job and of `tell`, which passes on what is found to
the one process that shows it.
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
from .outcome import Progress

POLL = 0.05
TAIL = 12
#: what each process prints at length, and what is to be done
REASONS = {
    "cannot load MPI library": "mpi4py finds no MPI library: pip install "
    '"isthmus[mpich]", or load the module of your site',
    "suspicious MPI execution environment": "mpiexec is of another MPI library than "
    "mpi4py's: put the one that belongs to it first on the PATH",
}
#: seconds without a word after which processes of our own are ended
LIMIT = 600.0
#: seconds between two words about the progress
PAUSE = 0.25

Tell = Callable[[Any], None]
#: what every rank does with a job; a function of a module, which others can import
Work = Callable[[Any, Tell], None]


def _lines(process: subprocess.Popen[Any], path: Path, limit: float) -> Iterator[bytes]:
    """What rank 0 appends to a file, until mpiexec ends or nothing comes any more."""
    deadline, unread = time.monotonic() + limit, b""
    with open(path, "rb") as results:
        while True:
            # Asked before reading: what an ended launch wrote is all in the file.
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
            time.sleep(POLL)


def _reason(said: str, status: int) -> str:
    """Why processes ended, of all that they said."""
    for words, reason in REASONS.items():
        if words in said:
            return reason
    last = "\n".join(said.split("\n")[-TAIL:])
    return f"mpiexec returned {status}\n{last}"


def launch(
    work: Work, job: Any, size: int, limit: float = LIMIT, start: Start = Here
) -> Generator[Any, None, None]:
    """Let so many ranks do a job; what rank 0 tells, as it comes."""
    with TemporaryDirectory(prefix="isthmus-") as name:
        todo, results, log = (Path(name, x) for x in ("job", "results", "log"))
        todo.write_bytes(pickle.dumps((work, job)))
        results.touch()
        # mpi4py's runner ends all ranks when one fails.
        python = [sys.executable, "-m", "mpi4py", "-m", "isthmus.bench.launch"]
        with log.open("wb") as output:
            running = start([*python, str(todo), str(results)], size, output)
        with running:
            for line in _lines(running.process, results, limit):
                yield pickle.loads(b64decode(line))
        if running.process.returncode:
            said = log.read_text(encoding="utf-8", errors="replace").strip()
            raise LaunchError(_reason(said, running.process.returncode))


def run(
    work: Work,
    job: Any,
    size: int,
    tell: Tell,
    limit: float = LIMIT,
    start: Start = Here,
) -> None:
    """Do a job here if mpiexec started this process, else in processes of our own."""
    if own_rank() is not None:
        _in_place(work, job, size, tell)
        return
    # Closed at once, whatever happens: that ends the processes.
    with closing(launch(work, job, size, limit, start)) as found:
        for one in found:
            if isinstance(one, LaunchError):
                raise one
            tell(one)


def _in_place(work: Work, job: Any, size: int, tell: Tell) -> None:
    """Do a job in this process and those that were started with it."""
    from .stand import abort, world_size

    if size != world_size():
        raise ValueError(f"{size} processes are needed; there are {world_size()}")
    try:
        work(job, tell if own_rank() == 0 else lambda found: None)
    except LaunchError:  # on all ranks alike
        raise
    except BaseException as error:
        abort(error)


def _main(job: str, results: str) -> None:
    """What every rank of our own does."""
    said = 0.0

    def tell(found: Any) -> None:
        nonlocal said
        if isinstance(found, Progress):
            if time.monotonic() < said + PAUSE:
                return
            said = time.monotonic()
        if own_rank() == 0:
            # in one write, which is read whole
            with open(results, "ab", buffering=0) as file:
                file.write(b64encode(pickle.dumps(found)) + b"\n")

    work, todo = pickle.loads(Path(job).read_bytes())
    try:
        work(todo, tell)
    except LaunchError as error:  # on all ranks alike
        tell(error)


if __name__ == "__main__":
    _main(*sys.argv[1:])
