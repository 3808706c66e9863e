"""Two groups of half of the processes each, as many as were started.

mpiexec -n 256 python many.py

Every operation between the groups and inside one, and groups by a value, once; the
first process says what that took.
"""

from __future__ import annotations

import time

import numpy as np
from mpi4py import MPI

import isthmus

world = MPI.COMM_WORLD
half = world.size // 2
low = world.rank < half
begin = time.perf_counter()
local = world.Split(0 if low else 1)
inter = isthmus.Intercomm(local.Create_intercomm(0, world, half if low else 0, 11))
theirs = range(half, world.size) if low else range(half)
n = len(theirs)
mine = np.full(8, world.rank, "i8")

blocks = np.empty((n, 8), "i8")
inter.Allgather(mine, blocks)
assert (blocks == np.array(theirs)[:, None]).all()
inter.Ialltoall(np.full(n, world.rank, "i8"), found := np.empty(n, "i8")).Wait()
assert (found == np.array(theirs)).all()
total = np.empty(8, "i8")
request = inter.Allreduce_init(mine, total)
request.Start()
request.Wait()
request.Free()
assert (total == sum(theirs)).all()
root = 0 if not low else MPI.ROOT if world.rank == 0 else MPI.PROC_NULL
inter.Bcast(word := np.full(3, 7 if world.rank == 0 else 0), root)
assert (word == 7).all() or (low and world.rank)
inter.Barrier()
part = isthmus.split(world, world.rank % 5, world.rank)
assert part.size == len(range(world.rank % 5, world.size, 5))
took = world.allreduce(time.perf_counter() - begin, MPI.MAX)
if world.rank == 0:
    print(f"{world.size} processes, {took:.1f} s")
