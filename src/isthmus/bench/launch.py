"""Starting this Python under mpiexec, and reading what its ranks write."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

# What a launch on a small machine needs; no library minds the variables of another.
QUIET = {
    # Ranks share few cores, so none of them may start threads of its own.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
OPEN_MPI = {
    # As in a container, and with more ranks than cores.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    # The transports inside one machine; naming them saves a second of probing.
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,sm",
}
#: variables in which process managers tell a process its rank
RANKS = (
    "PMI_RANK",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
)

POLL = 0.05
PATIENCE = 5.0
TAIL = 12


class LaunchError(Exception):
    """The processes could not be started, or did not end well."""


def own_rank(environ: Mapping[str, str] | None = None) -> int | None:
    """This process's rank if an mpiexec started it, else None."""
    environ = os.environ if environ is None else environ
    found = (environ[name] for name in RANKS if environ.get(name, "").isdigit())
    return next(map(int, found), None)


def find_mpiexec() -> str:
    """The mpiexec beside this Python, else the one on the PATH."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
    if found is None:
        raise LaunchError('there is no mpiexec: pip install "isthmus[mpich]"')
    return found


def is_open_mpi(mpiexec: str) -> bool:
    """Whether an mpiexec belongs to Open MPI."""
    command = [mpiexec, "--version"]
    answer = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    return "Open MPI" in answer.stdout or "OpenRTE" in answer.stdout


def environment(mpiexec: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The user's environment, and what the user did not set."""
    more = QUIET | OPEN_MPI if is_open_mpi(mpiexec) else QUIET
    return more | dict(environ)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process group of mpiexec, which ends its ranks when asked politely."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, kind)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                continue


def _lines(process: subprocess.Popen[bytes], path: Path, limit: float) -> Iterator[str]:
    """What rank 0 appends to a file, until mpiexec ends."""
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
            if time.monotonic() > deadline:
                raise LaunchError(f"not over within its time limit of {limit:g} s")
            time.sleep(POLL)


def launch(module: str, size: int, text: str, limit: float) -> Iterator[str]:
    """Run a module on so many ranks; the lines it writes to its results, as they come.

    The module is called with the paths of a file that holds `text` and of its results.
    """
    mpiexec = find_mpiexec()
    with TemporaryDirectory(prefix="isthmus-") as name:
        job, results, log = (Path(name, x) for x in ("job", "results", "log"))
        job.write_text(text, encoding="utf-8")
        results.touch()
        # mpi4py's runner ends all ranks when one fails.
        python = [sys.executable, "-m", "mpi4py", "-m", module]
        files = [str(job), str(results)]
        command = [mpiexec, "-n", str(size), *python, *files]
        with open(log, "wb") as output:
            process = subprocess.Popen(
                command,
                env=environment(mpiexec, os.environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield from _lines(process, results, limit)
        finally:
            _stop(process)
        if process.returncode:
            said = log.read_text(encoding="utf-8", errors="replace").strip()
            last = "\n".join(said.split("\n")[-TAIL:])
            raise LaunchError(f"mpiexec returned {process.returncode}\n{last}")
