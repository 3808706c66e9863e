"""Each rank sends 1 MB to the rank half-way round, and gets as much: a link's time."""

import socket
from time import perf_counter

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
half = world.size // 2
to, frm = (world.rank + half) % world.size, (world.rank - half) % world.size
mine, theirs = np.zeros(10**6, "b"), np.empty(10**6, "b")

for _ in range(2):  # the first time connects
    world.Barrier()
    start = perf_counter()
    world.Sendrecv(mine, to, 0, theirs, frm, 0)
    seconds = world.reduce(perf_counter() - start, MPI.MAX)

hosts = world.gather(socket.gethostname())
if world.rank == 0:
    print(f"{world.size} ranks on {hosts[0]} to {hosts[-1]}: {seconds:.3f} s")
