"""A local MPI program, from the start to the end of a `with`."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from .environment import on_one_host
from .mpiexec import find_mpiexec, is_open_mpi

#: the time for mpiexec to end its ranks after a SIGTERM, before a SIGKILL
SECONDS_TO_END_POLITELY = 5.0


class Running(Protocol):
    """A program on many ranks; all ranks end with a `with`."""

    process: subprocess.Popen[Any]

    def __enter__(self) -> Running: ...

    def __exit__(self, *error: object) -> None: ...


#: starts a program on a number of ranks, whose output goes to a file
Start = Callable[[Sequence[str], int, Any], Running]


class Here:
    """A program under a local mpiexec."""

    def __init__(self, command: Sequence[str], n: int, output: Any) -> None:
        mpiexec = find_mpiexec()
        self.process = subprocess.Popen(
            [mpiexec, "-n", str(n), *command],
            env=on_one_host(is_open_mpi(mpiexec), os.environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *error: object) -> None:
        """End the process group of mpiexec, at first by SIGTERM; otherwise mpiexec
        could not end its ranks."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                os.killpg(self.process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(SECONDS_TO_END_POLITELY)
