"""Three components, each of which gets what the other two have, in one call."""

import numpy as np
from mpi4py import MPI

import isthmus

world = MPI.COMM_WORLD
names = ["ocean", "atmosphere", "ice"]
coupling = isthmus.couple(world, names[world.rank % 3])

others = world.size - coupling.comm.size
field = np.full(1000, float(world.rank))
theirs = np.empty((others, 1000))
coupling.Allgather(field, theirs)

line = f"{names[world.rank % 3]} {coupling.comm.rank}: blocks of world ranks"
lines = world.gather(f"{line} {theirs[:, 0].astype(int)}")
if world.rank == 0:
    print("\n".join(lines))
coupling.Free()
