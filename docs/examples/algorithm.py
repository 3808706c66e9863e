"""Every algorithm gives the same bytes."""

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus import registry

world = isthmus.Intracomm(MPI.COMM_WORLD)
half = world.size // 2
first = world.rank < half
local = world.Split(0 if first else 1, world.rank)
inter = local.Create_intercomm(0, world, half if first else 0)

mine = np.arange(300.0) + world.rank
theirs, again = np.empty((2, inter.remote_size, 300))
inter.Allgather(mine, theirs)  # "auto"

names = [entry.name for entry in registry.algorithms("inter_allgather")]
for name in ["native", *names, "segmented+ring", "balanced+library"]:
    again[:] = -1
    inter.Allgather(mine, again, algorithm=name)
    assert (again == theirs).all(), name

inter.Free()
local.Free()
