"""Two groups, one of them with a process that was spawned.

    mpiexec -n 2 python worlds.py native|ours

Without isthmus, this does what isthmus asks of the MPI library.
"""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

import isthmus

kind, parent = sys.argv[1], MPI.Comm.Get_parent()
if parent != MPI.COMM_NULL:
    own = parent.Merge(True)
elif MPI.COMM_WORLD.rank == 1:
    arguments = [*sys.argv[:1], kind]
    own = MPI.COMM_SELF.Spawn(sys.executable, arguments, maxprocs=1).Merge(False)
else:
    own = MPI.COMM_SELF
other = 1 if own == MPI.COMM_SELF else 0
inter = own.Create_intercomm(0, MPI.COMM_WORLD, other, 5)
if kind == "native":
    inter.Merge(False).Barrier()
else:
    mine = 10 * inter.size + inter.rank
    wanted = [10] if inter.size == 2 else [20, 21]
    ours = isthmus.Intercomm(inter)
    for name in ("auto", "segmented", "direct"):
        recv = np.full(len(wanted), -1)
        ours.Allgather(np.array([mine]), recv, algorithm=name)
        assert recv.tolist() == wanted, (name, recv)
        recv = np.full(1, -1)
        ours.Allreduce(np.array([mine]), recv)
        assert recv.tolist() == [sum(wanted)], (name, recv)
print("ended", flush=True)
