"""An exchange that goes on while its owner computes."""

import numpy as np
from mpi4py import MPI

import isthmus

world = isthmus.Intracomm(MPI.COMM_WORLD)
half = world.size // 2
first = world.rank < half
local = world.Split(0 if first else 1, world.rank)
inter = local.Create_intercomm(0, world, half if first else 0)

mine = np.full(50_000, float(world.rank))
theirs = np.empty((inter.remote_size, 50_000))
request = inter.Iallgather(mine, theirs)

total = sum(x * x for x in range(100_000))  # something to do meanwhile

# It is an MPI request: it may wait among others.
token = np.zeros(1)
others = [
    world.Irecv(token, source=(world.rank - 1) % world.size),
    world.Isend(np.ones(1), dest=(world.rank + 1) % world.size),
]
MPI.Request.Waitall([request, *others])

lines = world.gather(
    f"rank {world.rank}: {total} meanwhile; blocks of ranks {theirs[:, -1].astype(int)}"
)
if world.rank == 0:
    print("\n".join(lines))

inter.Free()
local.Free()
