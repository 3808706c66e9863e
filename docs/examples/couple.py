"""Components that find each other by name, and exchange what they have."""

import numpy as np
from mpi4py import MPI

import isthmus

world = MPI.COMM_WORLD
names = ["ocean", "atmosphere", "ice"]
mine = names[world.rank % 3]

inside, others = isthmus.couple(world, mine)
for name, other in others.items():
    field = np.full(1000, float(world.rank))
    theirs = np.empty(1000 * other.remote_size)
    other.Allgather(field, theirs)
    assert set(theirs) == set(range(names.index(name), world.size, 3))
