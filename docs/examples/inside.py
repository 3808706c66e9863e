"""Gathering blocks of very different sizes inside one group.

mpiexec -n 8 python -m mpi4py inside.py
"""

import numpy as np
from mpi4py import MPI

import isthmus

comm = isthmus.Intracomm(MPI.COMM_WORLD)

# One rank found a thousand times more than the others.
counts = [1000 if i == comm.size - 1 else 1 for i in range(comm.size)]
mine = np.full(counts[comm.rank], comm.rank, dtype="f8")
everything = np.empty(sum(counts))
comm.Allgatherv(mine, [everything, counts])

sizes = [int((everything == rank).sum()) for rank in range(comm.size)]
lines = comm.gather(f"rank {comm.rank} has {sizes} numbers of the {comm.size} ranks")
if comm.rank == 0:
    print("\n".join(lines))
