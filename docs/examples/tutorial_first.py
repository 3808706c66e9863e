"""Two groups; every process gets the data of the other group."""

import numpy as np
from mpi4py import MPI

import isthmus

world = MPI.COMM_WORLD
half = world.size // 2
is_ocean = world.rank < half

group = world.Split(color=int(is_ocean), key=world.rank)
inter = group.Create_intercomm(0, world, half if is_ocean else 0)
inter = isthmus.Intercomm(inter)  # the one line

mine = np.full(1000, float(world.rank))
theirs = np.empty((inter.remote_size, 1000))
inter.Allgather(mine, theirs)

name = "ocean" if is_ocean else "atmosphere"
line = f"{name} {group.rank} has blocks of world ranks {theirs[:, 0].astype(int)}"
lines = world.gather(line)  # rank 0 prints, so that lines do not mix
if world.rank == 0:
    print("\n".join(lines))

inter.Free()
group.Free()
