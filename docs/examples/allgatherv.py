"""Blocks of different sizes: rank i of its group sends 100 * (i + 1) numbers."""

import numpy as np
from mpi4py import MPI

import isthmus

world = isthmus.Intracomm(MPI.COMM_WORLD)
half = world.size // 2
first = world.rank < half
local = world.Split(0 if first else 1, world.rank)
inter = local.Create_intercomm(0, world, half if first else 0)
assert isinstance(inter, isthmus.Intercomm)

mine = np.full(100 * (inter.rank + 1), float(inter.rank))
counts = [100 * (i + 1) for i in range(inter.remote_size)]

theirs = np.empty(sum(counts))
inter.Allgatherv(mine, [theirs, counts])

# Once more, with room for ten numbers after every block.
places = [sum(counts[:i]) + 10 * i for i in range(len(counts))]
spread = np.zeros(places[-1] + counts[-1])
inter.Allgatherv(mine, [spread, (counts, places), MPI.DOUBLE])

lines = world.gather(
    f"rank {world.rank}: {counts} numbers, the last is {theirs[-1]:g}; "
    f"with gaps they begin at {places}"
)
if world.rank == 0:
    print("\n".join(lines))

inter.Free()
local.Free()
