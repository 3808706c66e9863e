"""One rank sends too much: ISTHMUS_CHECK=1 mpiexec -n 4 python -m mpi4py mismatch.py"""

import numpy as np
from mpi4py import MPI

import isthmus

world = isthmus.Intracomm(MPI.COMM_WORLD)
half = world.size // 2
first = world.rank < half
local = world.Split(0 if first else 1, world.rank)
inter = local.Create_intercomm(0, world, half if first else 0)

wrong = world.rank == world.size - 1
mine = np.zeros(5 if wrong else 4)
theirs = np.empty(4 * inter.remote_size)
try:
    inter.Allgather(mine, theirs)
except isthmus.MismatchError as error:
    # with ISTHMUS_CHECK every rank prints, else who finds it: each in one piece
    print(f"{error}\n", end="", flush=True)

inter.Free()
local.Free()
