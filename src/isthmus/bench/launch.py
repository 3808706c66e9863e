"""Starting this Python under mpiexec, and reading what its ranks write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from ..lab.mpiexec import QUIET, LaunchError, find_mpiexec, is_open_mpi

OPEN_MPI = {
    # As in a container, and with more ranks than cores.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",  # before Open MPI 5
    # The transports inside one machine; naming them saves a second of probing. Vader is
    # shared memory: its only name before Open MPI 5, and known there too.
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,vader",
}
POLL = 0.05
PATIENCE = 5.0
TAIL = 12


def environment(mpiexec: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The user's environment, and what the user did not set."""
    more = QUIET | OPEN_MPI if is_open_mpi(mpiexec) else QUIET
    return more | dict(environ)


class Running(Protocol):
    """A program on many ranks, all of them ended at the end of a `with`."""

    process: subprocess.Popen[Any]

    def __enter__(self) -> Running: ...

    def __exit__(self, *error: object) -> None: ...


#: starts a program on so many ranks, which writes to a file
Start = Callable[[Sequence[str], int, Any], Running]


class Here:
    """A program under an mpiexec on this host."""

    def __init__(self, command: Sequence[str], n: int, output: Any) -> None:
        mpiexec = find_mpiexec()
        self.process = subprocess.Popen(
            [mpiexec, "-n", str(n), *command],
            env=environment(mpiexec, os.environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *error: object) -> None:
        """End the process group of mpiexec, which ends its ranks if asked politely."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                os.killpg(self.process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(PATIENCE)


def _lines(process: subprocess.Popen[Any], path: Path, limit: float) -> Iterator[str]:
    """What rank 0 appends to a file, until mpiexec ends or nothing comes any more."""
    deadline, unread = time.monotonic() + limit, ""
    with open(path, encoding="utf-8") as results:
        while True:
            # Asked before reading: what an ended launch wrote is all in the file.
            ended = process.poll() is not None
            unread += results.read()
            *whole, unread = unread.split("\n")
            yield from whole
            if ended:
                return
            if whole:
                deadline = time.monotonic() + limit
            if time.monotonic() > deadline:
                raise LaunchError(f"nothing heard of the processes for {limit:g} s")
            time.sleep(POLL)


def launch(
    module: str, size: int, text: str, limit: float, start: Start = Here
) -> Generator[str, None, None]:
    """Run a module on so many ranks; the lines it writes to its results, as they come.

    The module is called with the paths of a file that holds `text` and of its results.
    """
    with TemporaryDirectory(prefix="isthmus-") as name:
        job, results, log = (Path(name, x) for x in ("job", "results", "log"))
        job.write_text(text, encoding="utf-8")
        results.touch()
        # mpi4py's runner ends all ranks when one fails.
        python = [sys.executable, "-m", "mpi4py", "-m", module]
        with log.open("wb") as output:
            running = start([*python, str(job), str(results)], size, output)
        with running:
            yield from _lines(running.process, results, limit)
        if running.process.returncode:
            said = log.read_text(encoding="utf-8", errors="replace").strip()
            last = "\n".join(said.split("\n")[-TAIL:])
            raise LaunchError(f"mpiexec returned {running.process.returncode}\n{last}")
