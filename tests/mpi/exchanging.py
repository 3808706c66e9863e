"""Two halves of the world exchange blocks for so many seconds, and look at each."""

import os
import sys
import time

import numpy as np
from mpi4py import MPI

import isthmus


def say(*words: object) -> None:
    """A line in one piece, whoever else writes."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


world = MPI.COMM_WORLD
half = world.size // 2
first = world.rank < half
local = world.Split(0 if first else 1, world.rank)
inter = isthmus.Intercomm(local.Create_intercomm(0, world, half if first else 0))
others = np.arange(half, world.size) if first else np.arange(half)

mine = np.empty(20_000)
theirs = np.empty((inter.remote_size, 20_000))
say("begun", world.rank, os.getpid())
deadline, step = time.monotonic() + float(sys.argv[1]), 0
while world.allreduce(time.monotonic() < deadline, MPI.LAND):
    step += 1
    mine[:] = 1000 * step + world.rank
    theirs[:] = -1
    inter.Allgather(mine, theirs)
    if not (theirs == (1000 * step + others)[:, None]).all():
        say("wrong", world.rank, step)
say("finished", world.rank, step)
