"""A program that starts two helpers: mpiexec -n 2 python -m mpi4py spawn.py"""

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

line = f"{inter.rank} has the numbers of ranks {theirs} of the others"
if isthmus.Intracomm.Get_parent() != MPI.COMM_NULL:
    inter.send(f"helper {line}", dest=inter.rank)  # rank 0 prints: lines do not mix
else:
    pairs = world.gather((f"parent {line}", inter.recv(source=inter.rank)))
    if world.rank == 0:
        for lines in zip(*pairs, strict=True):
            print("\n".join(lines))

inter.Disconnect()
