"""Finding mpiexec, giving it what it needs, and one launch from start to end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# What a launch on a small machine needs; no library minds the variables of another.
ENVIRONMENT = {
    # Ranks share few cores, so none of them may start threads of its own.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # What a user has tuned must not decide what is tested.
    "ISTHMUS_TUNING": "none",
    # what is chosen must not depend on the time of day
    "ISTHMUS_TRIAL": "0",
    # Sets must have the same order on every rank.
    "PYTHONHASHSEED": "0",
    # Open MPI: allow root, as in a container, and more ranks than cores; and naming
    # the transports saves a second of probing at every start. Vader is shared memory:
    # its only name before Open MPI 5, and known there too.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,vader,tcp",
    # It gives way where ranks share cores; also let it where something else runs there.
    "OMPI_MCA_mpi_yield_when_idle": "1",
}

# MPICH's ranks must give way while they wait: they share cores with each other, or with
# what is tested beside them. An Allreduce of two ranks on two busy cores takes 0.15 ms
# with this, and 4.4 ms without (5.0).
GIVE_WAY = ("-genv", "MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")

# Of Open MPI since 5.
WITHOUT_LOST = ("--with-ft", "ulfm")

# A process group of its own, if possible in the session of who starts it: where Linux
# schedules by sessions, one of two that share cores was seen to get no time for minutes
# (6.18).
OWN_GROUP: dict[str, Any] = (
    {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
)

# Processes that spawn others, with the argument "native" without isthmus.
SPAWNED = Path(__file__).parents[1] / "mpi" / "spawned.py"
SECONDS_TO_SPAWN = 30.0  # what hangs is not waited for longer

POLL = 0.02  # seconds between two looks at the results
PATIENCE = 5.0  # seconds given to a launch that was asked to end
SHORTEST = 1e-9  # seconds of a sleep, which the kernel stretches to about 6e-5


def find_mpiexec() -> str | None:
    """The mpiexec beside this Python, else the one on the PATH."""
    beside = str(Path(sys.executable).parent)
    return shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")


@cache
def library_of(mpiexec: str) -> str:
    """Which MPI an mpiexec belongs to: "mpich", "openmpi" or "unknown"."""
    if not mpiexec:
        return "unknown"
    answer = subprocess.run(
        [mpiexec, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if "Open MPI" in answer.stdout or "OpenRTE" in answer.stdout:
        return "openmpi"
    return "mpich" if "HYDRA" in answer.stdout else "unknown"


@cache
def surviving(mpiexec: str) -> tuple[str, ...]:
    """The arguments with which an mpiexec lets a program go on without lost processes;
    none where the MPI library cannot, as Open MPI before 5."""
    if library_of(mpiexec) != "openmpi":
        return ()
    asked = [mpiexec, *WITHOUT_LOST, "--version"]
    answer = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True)
    return () if answer.returncode else WITHOUT_LOST


def obstacle() -> str | None:
    """Why nothing can be launched here, or None."""
    if find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    if find_mpiexec() is None:
        return "there is no mpiexec beside this Python or on the PATH"
    return None


def command(mpiexec: str, size: int, *arguments: str) -> list[str]:
    """Run this Python with mpi4py's runner, which ends all ranks when one fails."""
    more = GIVE_WAY if size > 1 and library_of(mpiexec) == "mpich" else ()
    python = [sys.executable, "-m", "mpi4py"]
    return [mpiexec, *more, "-n", str(size), *python, *arguments]


def give_way() -> None:
    """Let this rank sleep where isthmus would only offer its processor to others.

    Ranks share few cores. MPICH gives each a session of its own, and where Linux
    schedules by sessions (sched_autogroup_enabled), `sched_yield` passes a processor on
    within the session only: a rank that waits takes it from the others for its slice of
    some milliseconds. An Allgather of 8 bytes in node memory by 5 ranks on two busy
    cores takes 3.4 ms so, and 9.0 ms without (MPICH 5.0); under Open MPI 5.0, whose
    ranks share a session, 7.9 and 78 ms. Called before isthmus is imported, which takes
    the function from `os`.
    """
    os.sched_yield = lambda: time.sleep(SHORTEST)


class Launch:
    """One mpiexec that appends JSON lines to a file while it runs."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, folder: Path
    ) -> None:
        self.folder = folder
        (folder / "results").touch()
        self._results = open(folder / "results", encoding="utf-8")  # noqa: SIM115
        self._unread = ""
        with open(folder / "launcher", "wb") as output:
            self._process = subprocess.Popen(
                argv,
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                **OWN_GROUP,
            )

    def next(self, seconds: float) -> dict[str, Any] | None:
        """The next line, or None once the launch ended or the seconds are over."""
        deadline = time.monotonic() + seconds
        while True:
            # Asked before reading: what an ended launch wrote is all in the file.
            ended = self._process.poll() is not None
            self._unread += self._results.read()
            line, newline, rest = self._unread.partition("\n")
            if newline:
                self._unread = rest
                answer: dict[str, Any] = json.loads(line)
                return answer
            if ended or time.monotonic() > deadline:
                return None
            time.sleep(POLL)

    def wait(self, seconds: float) -> int | None:
        """The exit status of mpiexec, or None if it is still running by then."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        """End mpiexec and with it the ranks, and forget the results."""
        self._results.close()
        # mpiexec ends its ranks, which have process groups of their own, when it
        # is asked politely; killed at once it could leave them behind.
        for kind in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                os.killpg(self._process.pid, kind)
                self.wait(PATIENCE)


@cache
def spawns(mpiexec: str) -> bool:
    """Whether the processes of an mpiexec can spawn others: not all builds can."""
    argv = command(mpiexec, 2, str(SPAWNED), "native")
    with TemporaryDirectory() as name:
        folder = Path(name)
        launch = Launch(argv, {**os.environ, **ENVIRONMENT}, folder, folder)
        status = launch.wait(SECONDS_TO_SPAWN)
        launch.close()
    return status == 0
