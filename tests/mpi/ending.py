"""A program that ends with MPI.Finalize(), whatever its requests do then.

mpiexec -n 3 python ending.py idle|started|under_way|complete
"""

from __future__ import annotations

import sys
import time

import numpy as np
from mpi4py import MPI

import isthmus

world, what = MPI.COMM_WORLD, sys.argv[1]
low = world.rank < 2
local = world.Split(0 if low else 1)
inter = isthmus.Intercomm(local.Create_intercomm(0, world, 2 if low else 0, 11))
send, recv = np.full(100_000, world.rank + 1.0), np.zeros(100_000)
isthmus.Intracomm(world).Allgather(np.ones(1), np.zeros(3), algorithm="ring")
if what in ("idle", "started"):
    request = inter.Allreduce_init(send, recv, algorithm="three_phase")
    request.Start()
    request.Wait()
    recv[:] = 0
    if what == "started":
        MPI.Prequest.Startall([request])  # not noticed by anybody yet
else:
    request = inter.Iallreduce(send, recv, algorithm="three_phase")
    if what == "complete":
        request.Wait()
if what != "complete" and world.rank == 1:
    time.sleep(0.3)  # the other one waits for this in the middle
MPI.Finalize()
time.sleep(0.1)
assert what == "idle" or (recv == 3).all(), recv
print("ended", flush=True)
