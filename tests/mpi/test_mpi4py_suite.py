"""mpi4py's own tests of intercommunicators, with our class in place of its own.

They come from the source distribution of the installed version, fetched when needed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

from launcher.mpirun import ENVIRONMENT, Launch, command, find_mpiexec, obstacle

HERE = Path(__file__).parent
STORE = Path(sys.prefix) / "mpi4py-source"


@pytest.fixture(scope="session")
def suite():
    """The folder of mpi4py's tests."""
    if obstacle():
        pytest.skip(obstacle())
    release = version("mpi4py")
    folder = STORE / f"mpi4py-{release}" / "test"
    if not folder.exists():
        STORE.mkdir(exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        fetch = [*pip, "--no-binary", "mpi4py", "-d", str(STORE), f"mpi4py=={release}"]
        got = subprocess.run(fetch, capture_output=True, text=True, timeout=300)
        if got.returncode:
            reason = got.stderr.strip().splitlines()[-1:]
            pytest.skip(f"mpi4py's source cannot be fetched: {reason}")
        with tarfile.open(next(STORE.glob("mpi4py-*.tar.gz"))) as archive:
            archive.extractall(STORE, filter="data")
    return folder


CASES = [(2, "auto"), (3, "auto"), (4, "auto"), (5, "auto"), (5, "balanced")]


@pytest.mark.parametrize(("size", "algorithm"), CASES)
def test_inter_tests_of_mpi4py(suite, tmp_path, size, algorithm):
    script = [str(HERE / "swapped.py"), str(suite / "main.py"), "-i", "inter", "-q"]
    env = {**os.environ, **ENVIRONMENT, "ISTHMUS_ALLGATHER": algorithm}
    launch = Launch(command(find_mpiexec(), size, *script), env, suite, tmp_path)
    status = launch.wait(120)
    launch.close()
    said = (tmp_path / "launcher").read_text()
    assert status == 0, f"ended with {status} (None: not in time)\n{said[-4000:]}"
    counts = [int(n) for n in re.findall(r"Ran (\d+) tests?", said)]
    assert len(counts) == size and min(counts) >= 81, said[-2000:]
    called = re.findall(r"'(\w+)': (\d+)", said)
    assert {name for name, _ in called} >= {"Allgather", "Allgatherv", "allgather"}
