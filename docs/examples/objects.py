"""Any Python objects; the large array in each travels outside of the pickle."""

import numpy as np
from mpi4py import MPI

import isthmus

world = isthmus.Intracomm(MPI.COMM_WORLD)
half = world.size // 2
first = world.rank < half
local = world.Split(0 if first else 1, world.rank)
inter = local.Create_intercomm(0, world, half if first else 0)

mine = {"rank": world.rank, "field": np.full(100_000, float(world.rank))}
theirs = inter.allgather(mine)

fields = {x["rank"]: float(x["field"].mean()) for x in theirs}
lines = world.gather(f"rank {world.rank} has fields with these means: {fields}")
if world.rank == 0:
    print("\n".join(lines))

inter.Free()
local.Free()
