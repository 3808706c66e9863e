"""mpi4py's own tests of collectives, with our classes in place of its own.

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
from support import has_persistent_collectives, once, once_too

HERE = Path(__file__).parent
TESTS = str(HERE.parent)


@pytest.fixture(scope="session")
def suite(pytestconfig):
    """The folder of mpi4py's tests, kept for all MPI libraries."""
    if obstacle():
        pytest.skip(obstacle())
    release, store = version("mpi4py"), pytestconfig.cache.mkdir("mpi4py-source")
    folder = store / f"mpi4py-{release}" / "test"
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        fetch = [*pip, "--no-binary", "mpi4py", "-d", str(store), f"mpi4py=={release}"]
        got = subprocess.run(fetch, capture_output=True, text=True, timeout=300)
        if got.returncode:
            reason = got.stderr.strip().splitlines()[-1:]
            pytest.skip(f"mpi4py's source cannot be fetched: {reason}")
        with tarfile.open(store / f"mpi4py-{release}.tar.gz") as archive:
            archive.extractall(store, filter="data")
    return folder


def run(suite, folder, size, variables, *arguments):
    """Run some of the tests with our classes; what was said, and what was called."""
    script = [str(HERE / "swapped.py"), str(suite / "main.py"), "-q", *arguments]
    path = os.pathsep.join(filter(None, [TESTS, os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, **ENVIRONMENT, **variables, "PYTHONPATH": path}
    launch = Launch(command(find_mpiexec(), size, *script), env, suite, folder)
    status = launch.wait(180)
    launch.close()
    said = (folder / "launcher").read_text()
    assert status == 0, f"ended with {status} (None: not in time)\n{said[-4000:]}"
    counts = [int(n) for n in re.findall(r"Ran (\d+) tests?", said)]
    assert len(counts) == size, said[-2000:]
    return min(counts), {name for name, _ in re.findall(r"'(\w+)': (\d+)", said)}


BETWEEN = [
    pytest.param(3, "auto", marks=once),
    pytest.param(4, "balanced", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("size", "algorithm"), BETWEEN)
def test_between_groups(suite, tmp_path, size, algorithm):
    variables = {"ISTHMUS_ALLGATHER": algorithm}
    tests, called = run(suite, tmp_path, size, variables, "-i", "inter")
    assert tests >= 79
    assert called >= {"Allgather", "Allgatherv", "allgather"}


#: all of them on one rank; on several, which takes longer, some files each
INSIDE = [
    pytest.param(1, "auto", ["cco"], 300, marks=once_too),
    pytest.param(2, "auto", ["cco_buf", "cco_obj"], 90, marks=once),
    pytest.param(3, "auto", ["cco_buf", "cco_obj"], 90, marks=pytest.mark.long),
    pytest.param(2, "circulant", ["cco_pr_vec"], 60, marks=pytest.mark.long),
]
CALLED = {
    "cco_buf": {"Allgather", "Bcast"},
    "cco_vec": {"Allgatherv"},
    "cco_nb_vec": {"Iallgatherv"},
    "cco_pr_vec": {"Allgatherv_init"},
    "cco_obj": {"allgather"},
    "cco": {"Allgather", "Iallgather", "Allgather_init", "Iallgatherv", "Bcast"},
}


@pytest.mark.parametrize(("size", "algorithm", "files", "least"), INSIDE)
def test_inside_a_group(suite, tmp_path, size, algorithm, files, least):
    variables = {"ISTHMUS_INTRA_ALLGATHER": algorithm}
    only = [x for name in files for x in ("-i", name)]
    without = ["--inside", "-e", "inter", "-e", "ngh"]
    tests, called = run(suite, tmp_path, size, variables, *without, *only)
    assert tests >= least
    wanted = set().union(*(CALLED[name] for name in files))
    if not has_persistent_collectives():  # the suite leaves them out then
        wanted = {name for name in wanted if not name.endswith("_init")}
    assert called >= wanted
