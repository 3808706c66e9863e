"""The installed mpiexec, and the rank of a process under an mpiexec."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

#: variables in which process managers give a process its rank
RANK_VARIABLES = (
    "PMI_RANK",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
)


class LaunchError(Exception):
    """The processes could not be started, or did not end well."""


def own_rank(environ: Mapping[str, str] | None = None) -> int | None:
    """The rank of this process under an mpiexec, else None."""
    environ = os.environ if environ is None else environ
    ranks = (
        environ[name] for name in RANK_VARIABLES if environ.get(name, "").isdigit()
    )
    return next(map(int, ranks), None)


def find_mpiexec() -> str:
    """The mpiexec beside this Python, else the first on the PATH."""
    beside = str(Path(sys.executable).parent)
    mpiexec = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
    if mpiexec is None:
        raise LaunchError('there is no mpiexec: pip install "isthmus[mpich]"')
    return mpiexec


def is_open_mpi(mpiexec: str) -> bool:
    """Whether an mpiexec belongs to Open MPI."""
    command = [mpiexec, "--version"]
    answer = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    return "Open MPI" in answer.stdout or "OpenRTE" in answer.stdout
