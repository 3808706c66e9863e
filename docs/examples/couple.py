"""Components that find each other by name, and exchange what they have."""

import numpy as np
from mpi4py import MPI

import isthmus

world = MPI.COMM_WORLD
names = ["ocean", "atmosphere", "ice"]
mine = names[world.rank % 3]

inside, others = isthmus.couple(world, mine)
line = f"{mine} {inside.rank} has"
for name, other in others.items():
    field = np.full(1000, float(world.rank))
    theirs = np.empty((other.remote_size, 1000))
    other.Allgather(field, theirs)
    line += f" {name} {theirs[:, 0].astype(int)}"

lines = world.gather(line)
if world.rank == 0:
    print("\n".join(lines))
