"""One exchange in every step of a simulation, set up once."""

import numpy as np
from mpi4py import MPI

import isthmus

world = isthmus.Intracomm(MPI.COMM_WORLD)
half = world.size // 2
first = world.rank < half
local = world.Split(0 if first else 1, world.rank)
inter = local.Create_intercomm(0, world, half if first else 0)

mine = np.empty(2000)
theirs = np.empty((inter.remote_size, 2000))
exchange = inter.Allgather_init(mine, theirs)

checked = []
for step in range(10):
    mine[:] = step + world.rank
    exchange.Start()
    # work that touches neither `mine` nor `theirs`
    exchange.Wait()
    checked.append(theirs[0, 0] == step + (half if first else 0))

exchange.Free()

lines = world.gather(f"rank {world.rank}: {sum(checked)} of {len(checked)} steps right")
if world.rank == 0:
    print("\n".join(lines))

inter.Free()
local.Free()
