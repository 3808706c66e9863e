"""Programs that put classes of isthmus in the place of mpi4py's.

A program of its own, since each process imports isthmus before the names change.
"""

from __future__ import annotations

import sys

import pytest

from isthmus.launch.local import Here
from launcher.mpirun import obstacle
from support import once_too

PROGRAM = """
import numpy as np
from mpi4py import MPI
import isthmus

MPI.Intracomm, MPI.Intercomm = isthmus.Intracomm, isthmus.Intercomm
world = MPI.Intracomm(MPI.COMM_WORLD)
group = world.Split(world.rank % 2)
inter = group.Create_intercomm(0, world, 1 - world.rank % 2)
ones, sums = np.ones(3), np.empty(3)
for comm, size in ((world, 3), (inter, inter.remote_size)):
    for algorithm in ("auto", "native"):
        comm.Allreduce(ones, sums, algorithm=algorithm)
        assert (sums == size).all(), (size, algorithm, sums)
        comm.Iallreduce(ones, sums, algorithm=algorithm).Wait()
        assert (sums == size).all(), (size, algorithm, sums)
"""


@once_too
def test_the_names_of_mpi4py_may_stand_for_our_classes(tmp_path):
    if obstacle():
        pytest.skip(obstacle())
    program, printed = tmp_path / "program.py", tmp_path / "printed"
    program.write_text(PROGRAM)
    with (
        printed.open("w") as output,
        Here([sys.executable, str(program)], 3, output) as running,
    ):
        status = running.process.wait(120)
    assert status == 0, printed.read_text()
