"""Lost processes, where the MPI library goes on without them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launcher.mpirun import (
    ENVIRONMENT,
    Launch,
    command,
    find_mpiexec,
    obstacle,
    surviving,
)
from sampling import LONG

HERE = Path(__file__).parent
CASES = [
    (form, name, victims)
    for form in ("blocking", "nonblocking", "persistent")
    for name in ("three_phase", "node_aware", "native")
    for victims in ("3", "0", "2,3")
]
FEW = [("blocking", "node_aware", "3"), ("nonblocking", "three_phase", "0")]
SURVIVORS = {
    "3": {0: "group B rank 1; 2+1; sum 3", 2: "group B rank 1; 1+2; sum 3"},
    "0": {1: "group A rank 0; 1+2; sum 7", 2: "group A rank 0; 2+1; sum 2"},
    "2,3": {0: "isthmus: group B rank 0, group B rank 1 lost; group B has died out"},
}


@pytest.mark.parametrize(("form", "name", "victims"), CASES if LONG else FEW)
def test_survivors_go_on(tmp_path, form, name, victims):
    if obstacle():
        pytest.skip(obstacle())
    mpiexec = find_mpiexec()
    if not surviving(mpiexec):
        pytest.skip("this MPI library ends all processes when one is lost")
    line = command(mpiexec, 4, str(HERE / "lost.py"), form, name, victims)
    line[1:1] = surviving(mpiexec)
    launch = Launch(line, {**os.environ, **ENVIRONMENT}, tmp_path, tmp_path)
    launch.wait(50)
    launch.close()
    output = (tmp_path / "launcher").read_text()
    for rank, wanted in SURVIVORS[victims].items():
        said = (tmp_path / f"said-{rank}").read_text()
        assert said.startswith("ProcessLost group"), (said, output)
        assert said.endswith(wanted), (said, output)


def left_behind():
    """Files of node memory whose makers are no more."""
    every = Path("/dev/shm").glob("isthmus-*")
    return {x for x in every if not Path("/proc", x.name.split("-")[1]).exists()}


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no /dev/shm")
@pytest.mark.parametrize("victim", ["0", "3"])
def test_a_killed_process_leaves_no_file(tmp_path, victim):
    """Of node memory; mpiexec ends all others."""
    if obstacle():
        pytest.skip(obstacle())
    before = left_behind()
    program = str(HERE / "lost.py"), "blocking", "node_aware", victim
    line = command(find_mpiexec(), 4, *program)
    launch = Launch(line, {**os.environ, **ENVIRONMENT}, tmp_path, tmp_path)
    status = launch.wait(50)
    launch.close()
    assert status not in (0, None), (tmp_path / "launcher").read_text()
    assert left_behind() <= before
