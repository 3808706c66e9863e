"""Gathering blocks of very different sizes inside one group.

mpiexec -n 4 python -m mpi4py inside.py
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

assert everything[0] == 0 and everything[-1] == comm.size - 1
