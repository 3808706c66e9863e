"""Where the ranks of a node cannot share memory, messages take its place."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from between import OPERATIONS, Kit, call
from groups import pair
from isthmus.mpi.buffers import node_memory
from isthmus.mpi.context import context
from launcher.mpirun import ENVIRONMENT, Launch, command, find_mpiexec, obstacle
from support import agree, forms, once, once_too

HERE = Path(__file__).parent


def _may_unshare() -> bool:
    """Whether this process may have mounts of its own."""
    if shutil.which("unshare") is None:
        return False
    test = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(test, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("kind", "warnings", "shares"),
    [
        pytest.param("small", 1, False, marks=once),
        pytest.param("read-only", 1, False, marks=once_too),
        pytest.param("later", 1, True, marks=once_too),
        pytest.param("absent", 0, True, marks=once),
    ],
)
def test_what_the_system_refuses_is_said_once(tmp_path, kind, warnings, shares):
    """For real, in mounts of its own; the temporary folder serves where there is no
    place for memory."""
    if obstacle():
        pytest.skip(obstacle())
    if not _may_unshare():
        pytest.skip("only root may mount")
    path = f"{HERE.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    env = {**os.environ, **ENVIRONMENT, "PYTHONPATH": path}
    line = command(find_mpiexec(), 3, str(HERE / "full.py"), kind, str(tmp_path))
    launch = Launch(["unshare", "--mount", *line], env, tmp_path, tmp_path)
    status = launch.wait(60)
    launch.close()
    output = (tmp_path / "launcher").read_text()
    assert status == 0, output
    said = [(tmp_path / f"said-{r}").read_text() for r in range(3)]
    assert said == [f"[] {warnings} {shares}"] * 3, (said, output)


@pytest.mark.mpi(5)
@pytest.mark.parametrize("per_node", [0, 2])
def test_a_persistent_call_for_which_one_rank_gets_none(comm, monkeypatch, per_node):
    """The communicator has its memory; all ranks of all nodes go on by messages."""
    monkeypatch.setenv("ISTHMUS_PER_NODE", str(per_node))
    context._tell_once.cache_clear()
    said = []
    watch = logging.Filter()
    watch.filter = lambda record: bool(said.append(record))
    logging.getLogger("isthmus").addFilter(watch)

    def refuse(*_):
        raise OSError("no room")

    groups, wrong = pair(comm, 2), []
    groups.ours.Barrier()
    with monkeypatch.context() as patch:
        if comm.rank == comm.size - 2:
            patch.setattr(node_memory, "_mapped", refuse)
        for op in OPERATIONS:
            case = call(Kit(groups), op, "some", root=0)
            for form in forms(groups.ours, op, case.args, "node_aware"):
                wrong += [f"{op} {form}: {case.fault}"] if case.fault else []
    logging.getLogger("isthmus").removeFilter(watch)
    told = [str(record.msg) for record in said]
    agree(comm, not wrong and len(told) <= 2, f"{wrong[:1]} {told}")
    agree(comm, comm.allreduce(len(told)) > 0)
    groups.free()


KILLED = """
import os, signal
import numpy as np, isthmus
from mpi4py import MPI
world = MPI.COMM_WORLD
comm = isthmus.Intracomm(world)
x, y = np.ones(1000), np.empty(1000)
comm.Allreduce(x, y, algorithm="node_aware")
request = comm.Allreduce_init(x, y, algorithm="node_aware")
request.Start()
request.Wait()
with open(f"pid-{world.rank}", "w") as file:
    file.write(str(os.getpid()))
world.Barrier()
if world.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    comm.Allreduce(x, y, algorithm="node_aware")
"""


def test_a_killed_process_leaves_no_file(tmp_path):
    if obstacle():
        pytest.skip(obstacle())
    script = tmp_path / "program.py"
    script.write_text(KILLED)
    line = command(find_mpiexec(), 3, str(script))
    launch = Launch(line, {**os.environ, **ENVIRONMENT}, tmp_path, tmp_path)
    launch.wait(60)
    launch.close()
    pids = [(tmp_path / f"pid-{r}").read_text() for r in range(3)]
    left = os.listdir(node_memory._SHARED_FOLDER)
    assert not [x for x in left for pid in pids if x.startswith(f"isthmus-{pid}-")]
