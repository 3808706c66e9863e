"""A program that starts two helpers: mpiexec -n 2 python spawn.py"""

import sys

import numpy as np
from mpi4py import MPI

import isthmus

if isthmus.Intracomm.Get_parent() == MPI.COMM_NULL:
    world = isthmus.Intracomm(MPI.COMM_WORLD)
    inter = world.Spawn(sys.executable, [__file__], maxprocs=2)
else:
    inter = isthmus.Intracomm.Get_parent()
assert isinstance(inter, isthmus.Intercomm)

mine = np.array([inter.rank], "i4")
theirs = np.empty(inter.remote_size, "i4")
inter.Allgather(mine, theirs)
assert theirs.tolist() == list(range(inter.remote_size))

inter.Disconnect()
