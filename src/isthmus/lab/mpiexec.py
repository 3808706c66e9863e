"""The mpiexec that there is, and whether one started this process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# What a launch on a small machine needs; no library minds the variables of another.
QUIET = {
    # Ranks share few cores, so none of them may start threads of its own.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
#: variables in which process managers tell a process its rank
RANKS = (
    "PMI_RANK",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
)


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
