"""An exchange that goes on while the program computes."""

import numpy as np
from mpi4py import MPI

import isthmus

world = MPI.COMM_WORLD
name = "ocean" if world.rank < world.size // 2 else "atmosphere"
group, others = isthmus.couple(world, name)
(inter,) = others.values()

mine = np.full(50_000, float(world.rank))
theirs = np.empty((inter.remote_size, 50_000))

request = inter.Iallgather(mine, theirs)
work = np.sin(np.arange(100_000.0)).sum()  # touches neither `mine` nor `theirs`
request.Wait()

line = f"{name} {group.rank}: work {work:.3f}, blocks of {theirs[:, 0].astype(int)}"
lines = world.gather(line)
if world.rank == 0:
    print("\n".join(lines))
