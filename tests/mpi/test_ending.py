"""Programs of their own: how they end, and processes of several worlds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launcher.mpirun import ENVIRONMENT, Launch, command, find_mpiexec, obstacle

HERE = Path(__file__).parent
#: seconds for what the library itself does within two, if it does not hang
NATIVE = 8


def ends_well(folder, program, size, *arguments, limit=120):
    """Whether a program ends with status 0, and what its processes said.

    Lines of several processes may run into each other: whitespace does not count.
    """
    if obstacle():
        pytest.skip(obstacle())
    script = [str(HERE / program), *arguments]
    folder.mkdir()
    argv = command(find_mpiexec(), size, *script)
    launch = Launch(argv, {**os.environ, **ENVIRONMENT}, folder, folder)
    status = launch.wait(limit)
    launch.close()
    return status == 0, "".join((folder / "launcher").read_text().split())


@pytest.mark.parametrize("what", ["idle", "started", "under_way", "complete"])
def test_finalize_whatever_requests_do(tmp_path, what):
    """Status 0, the data of what was started, and no message."""
    well, said = ends_well(tmp_path / what, "ending.py", 3, what)
    assert well and said == "ended" * 3, said


@pytest.mark.parametrize(("program", "processes"), [("spawned", 4), ("worlds", 3)])
def test_spawned_processes(tmp_path, program, processes):
    """In a group of their own, and in one with a process that was there before."""
    file = f"{program}.py"
    well, said = ends_well(tmp_path / "native", file, 2, "native", limit=NATIVE)
    if not well:
        pytest.skip("the MPI library itself cannot spawn or merge such processes")
    well, said = ends_well(tmp_path / "ours", file, 2, "ours")
    assert well and said == "ended" * processes, said
