"""Two groups that meet at a port: mpiexec -n 8 python -m mpi4py connect.py

The two would be programs of their own, and the name of the port would travel in a file.
"""

import numpy as np
from mpi4py import MPI

import isthmus

world = isthmus.Intracomm(MPI.COMM_WORLD)
serves = world.rank < world.size // 2
local = world.Split(0 if serves else 1, world.rank)

port = MPI.Open_port() if world.rank == 0 else None
port = world.bcast(port)
inter = local.Accept(port) if serves else local.Connect(port)
assert isinstance(inter, isthmus.Intercomm)

mine = np.array([world.rank], "i4")
theirs = np.empty(inter.remote_size, "i4")
inter.Allgather(mine, theirs)

lines = world.gather(f"rank {world.rank} has the numbers of ranks {theirs}")
if world.rank == 0:
    print("\n".join(lines))

inter.Disconnect()
if world.rank == 0:
    MPI.Close_port(port)
local.Free()
