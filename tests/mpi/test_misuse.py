"""What happens when a program uses collectives wrongly: a test for each line of the
table in docs/reliability.md, with and without the checked mode."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

import isthmus
from between import Kit, call
from groups import pair
from launcher.mpirun import ENVIRONMENT, Launch, command, find_mpiexec, obstacle
from support import agree

#: seconds of the limit, and until everybody must have heard of it
LIMIT, SOON = 0.3, 5.0


def _allreduce(inter, n=4, op=MPI.SUM, **more):
    return inter.Allreduce(np.ones(n), np.empty(n), op, **more)


def _bcast(inter, root):
    """From rank 0 of group A as group B sees it, or from the root that it names."""
    here = MPI.ROOT if inter._context().number == 0 else MPI.PROC_NULL
    inter.Bcast(np.ones(2), root if inter._context().group_number else here)


#: what all do, and what the last rank does in place of it; and the words of the error
WRONG = {
    "counts": (
        _allreduce,
        partial(_allreduce, n=5),
        "group B rank 1 sends 40 bytes",
    ),
    "roots": (
        partial(_bcast, root=0),
        partial(_bcast, root=1),
        "group B rank 1",
    ),
    "operations": (
        _allreduce,
        lambda x: x.Barrier(),
        "group B rank 1 calls operation 'Barrier'",
    ),
    "forms": (
        _allreduce,
        lambda x: x.Iallreduce(np.ones(4), np.empty(4)),
        "group B rank 1 calls operation 'Iallreduce'",
    ),
    "operators": (
        _allreduce,
        partial(_allreduce, op=MPI.MAX),
        "group B rank 1 combines by MAX, group A rank 0 by SUM",
    ),
    "algorithms": (
        partial(_allreduce, algorithm="three_phase"),
        partial(_allreduce, algorithm="node_aware"),
        "group B rank 1 calls algorithm 'node_aware'",
    ),
    "arguments": (
        _allreduce,
        lambda x: x.Allreduce("no", "buffer"),
        "group B rank 1: TypeError",
    ),
}


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", WRONG)
def test_in_the_checked_mode_all_ranks_hear_who_is_wrong(comm, monkeypatch, name):
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    groups = pair(comm, 1)
    right, wrong, text = WRONG[name]
    with pytest.raises(isthmus.MismatchError) as caught:
        (wrong if comm.rank == 2 else right)(groups.ours)
    agree(comm, text in str(caught.value), str(caught.value))
    # a few lines on each rank: the call, and not what it went through in isthmus
    files = [Path(entry.path).name for entry in caught.traceback]
    is_blocking = name != "forms" or comm.rank != 2
    ends_at_the_call = files[-1] == "collective.py" and "forms.py" not in files
    agree(comm, ends_at_the_call or not is_blocking, str(files))
    _allreduce(groups.ours)  # nothing was sent: it is as good as before
    groups.free()


@pytest.mark.mpi(3)
def test_in_the_checked_mode_who_stays_away_is_named_by_all(comm, monkeypatch):
    """A rank that raises before the call."""
    monkeypatch.setenv("ISTHMUS_CHECK", "1")
    groups = pair(comm, 1)
    _allreduce(groups.ours)
    groups.ours.timeout = LIMIT
    begin, error = time.monotonic(), None
    if comm.rank < 2:
        with pytest.raises(isthmus.Stalled) as caught:
            _allreduce(groups.ours)
        error = caught.value
    took = time.monotonic() - begin
    named = error is None or error.waiting_for == ("group B rank 1",)
    agree(comm, named and took < SOON, f"{took} {error}")
    groups.free()


@pytest.mark.mpi(3)
def test_without_it_a_limit_ends_what_would_wait(comm):
    """A rank that raises before the call, and one that makes another call."""
    for late in (None, lambda x: x.Bcast(np.ones(1), MPI.PROC_NULL)):
        groups = pair(comm, 1)
        _allreduce(groups.ours)
        groups.ours.timeout = LIMIT
        begin, error = time.monotonic(), None
        if comm.rank < 2:
            with pytest.raises(RuntimeError) as caught:
                _allreduce(groups.ours, algorithm="node_aware")
            error = caught.value
        elif late is not None:
            late(groups.ours)
        took = time.monotonic() - begin
        agree(comm, took < SOON, f"{took} {error}")
        groups.free()


@pytest.mark.mpi(3)
@pytest.mark.parametrize("op", ["Bcast", "Reduce", "Gather", "Scatter"])
def test_ranks_stay_in_step_where_some_have_no_part_in_what_is_refused(comm, op):
    """In calls with a root; those cannot know that the others were wrong."""
    groups = pair(comm, 1)
    inter, refused = groups.ours, 0
    case = call(Kit(groups), op, "some", root=2)
    wrong = MPI.PROC_NULL if comm.rank == 1 else 7
    objects = [] if op == "Reduce" else [op.lower()]
    for form in (op, f"I{op.lower()}", f"{op}_init", *objects):
        try:
            if form in objects:
                getattr(inter, form)(None, wrong)
            else:
                name = "auto" if comm.rank == 1 else "none"
                getattr(inter, form)(*case.args, algorithm=name)
        except ValueError:
            refused += 1
        for name in ("node_aware", "three_phase"):
            x = np.empty(4)
            inter.Iallreduce(np.ones(4), x, algorithm=name).Wait()
            inter.Allreduce(np.ones(4), x, algorithm=name)
            request = inter.Allreduce_init(np.ones(4), x, algorithm=name)
            request.Start()
            request.Wait()
            request.Free()
    agree(
        comm, refused == (0 if comm.rank == 1 else 3 + (op != "Reduce")), f"{refused}"
    )
    groups.free()


@pytest.mark.mpi(3)
def test_after_free_nothing_is_called(comm):
    groups = pair(comm, 1)
    inter = groups.ours
    _allreduce(inter)
    inter.Free()
    with pytest.raises(MPI.Exception):
        _allreduce(inter)
    agree(comm, True)
    groups.local.Free()


@pytest.mark.mpi(2)
def test_a_forked_process_is_refused(comm):
    """MPI belongs to the process that started it."""
    groups = pair(comm, 1)
    _allreduce(groups.ours)
    pid = os.fork()
    if pid == 0:
        try:
            _allreduce(groups.ours)
        except RuntimeError as error:
            os._exit(7 if "fork" in str(error) else 8)
        finally:
            os._exit(9)
    deadline = time.monotonic() + SOON
    status = 0, 0
    while status[0] == 0 and time.monotonic() < deadline:
        status = os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)
    if status[0] == 0:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    agree(comm, os.waitstatus_to_exitcode(status[1]) == 7, repr(status))
    _allreduce(groups.ours)
    groups.free()


PROGRAM = """
import atexit, os, sys
import mpi4py
mpi4py.rc.thread_level = sys.argv[1]
from mpi4py import MPI
import numpy as np, isthmus
world = MPI.COMM_WORLD
local = world.Split(world.rank % 2)
inter = isthmus.Intercomm(local.Create_intercomm(0, world, 1 - world.rank % 2, 1))
def end():
    x = np.empty(4)
    inter.Allreduce(np.ones(4), x)
    try:
        inter.Iallreduce(np.ones(4), x, algorithm="three_phase").Wait()
        word = "done"
    except RuntimeError as error:
        word = "refused" if "MPI_THREAD_MULTIPLE" in str(error) else str(error)
    with open(f"said-{world.rank}", "w") as file:
        file.write(word + str(x))
end() if sys.argv[2] == "now" else atexit.register(end)
"""


@pytest.mark.parametrize(
    ("level", "when", "word"),
    [("multiple", "atexit", "done"), ("serialized", "now", "done")],
)
def test_at_exit_and_without_threads(tmp_path, level, when, word):
    if obstacle():
        pytest.skip(obstacle())
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    line = command(find_mpiexec(), 2, str(script), level, when)
    launch = Launch(line, {**os.environ, **ENVIRONMENT}, tmp_path, tmp_path)
    status = launch.wait(60)
    launch.close()
    said = [(tmp_path / f"said-{r}").read_text() for r in range(2)]
    assert status == 0 and said == [word + "[1. 1. 1. 1.]"] * 2, said
