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
assert set(theirs[:, 0]) == {r for r in range(world.size) if (r - world.rank) % 3}
coupling.Free()
