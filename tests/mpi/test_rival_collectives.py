"""Collectives between groups that hang or go wrong in MPI libraries, each by its name.

Ours must be right; of the installed library it is recorded whether it still fails
(`pytest -rP` shows it).
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from launcher.mpirun import ENVIRONMENT, Launch, command, find_mpiexec, obstacle

HERE = Path(__file__).parent
CASES = [
    "ibcast_then_ibarrier",
    "ibcast_then_iallgather",
    "ibcast_from_two_roots",
    "ibcast_from_root_1",
    "bcast_init_from_root_1",
    "ireduce_then_iallreduce",
    "reduce_init_then_ibarrier",
    "persistent_after_one_from_nobody",
    "gatherv_of_equal_signatures",
    "scatterv_of_equal_signatures",
]
#: seconds for a call of the library and its start; one that hangs ends itself sooner
PATIENCE = 20


def said(folder: Path, seconds: float, whose: str, *names: str) -> str:
    """What a launch said, or that it did not end in time."""
    if obstacle():
        pytest.skip(obstacle())
    env = {**os.environ, **ENVIRONMENT, "PYTHONPATH": _path()}
    script = [str(HERE / "rival.py"), whose, *names]
    launch = Launch(command(find_mpiexec(), 5, *script), env, HERE, folder)
    status = launch.wait(seconds)
    launch.close()
    text = (folder / "launcher").read_text()
    return "hangs" if status is None or "Timeout" in text else text


def _path() -> str:
    found = [str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(filter(None, found))


def test_ours_are_right_where_libraries_are_not(tmp_path):
    text = said(tmp_path, 60, "ours", *CASES)
    assert "all right" in text, text[-2000:]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_whether_the_library_still_fails(tmp_path, record_property, case):
    text = said(tmp_path, PATIENCE, "native", case)
    lines = [x for x in text.splitlines() if "Error" in x or "rror:" in x]
    verdict = "right" if "all right" in text else (lines or [text.strip()])[0]
    record_property("library", verdict)
    print(f"{case}: {verdict[:120]}")


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2"])
def test_whether_sums_that_overflow_depend_on_the_place(dtype):
    """Open MPI on x86-64 (its component op/avx) gives the largest value in full vectors
    of the processor, and wraps in the rest. MPI leaves it open: no test may need it."""
    most = np.iinfo(dtype).max
    x, y = np.full(65, most, dtype), np.full(65, 2, dtype)
    MPI.SUM.Reduce_local(x, y)
    wrapped = np.array([most + 2]).astype(dtype)[0]
    if (y == wrapped).all():
        pytest.skip("sums that overflow wrap in this library on this processor")
    assert MPI.get_vendor()[0] == "Open MPI"
    assert set(y.tolist()) == {int(most), int(wrapped)}
