"""How long an Allgather takes, by the MPI library's own call and by isthmus."""

import numpy as np
from mpi4py import MPI

import isthmus

world = MPI.COMM_WORLD
name = "ocean" if world.rank < world.size // 2 else "atmosphere"
group, others = isthmus.couple(world, name)  # groups by name
(inter,) = others.values()  # an isthmus.Intercomm to the one other group

mine = np.full(50_000, float(world.rank))
theirs = np.empty((inter.remote_size, 50_000))


def seconds(algorithm):
    """The median time of a call, on the slowest process."""
    times = []
    for _ in range(30):
        world.Barrier()
        start = MPI.Wtime()
        inter.Allgather(mine, theirs, algorithm=algorithm)
        times.append(world.allreduce(MPI.Wtime() - start, MPI.MAX))
    return np.median(times)


native, ours = seconds("native"), seconds("auto")
if world.rank == 0:
    print(f"native {native * 1e3:.2f} ms, isthmus {ours * 1e3:.2f} ms")
