"""Processes that exchange their ranks with those they spawned.

mpiexec -n 2 python spawned.py native|ours
"""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

import isthmus

kind = sys.argv[1]
of = MPI.Intracomm if kind == "native" else isthmus.Intracomm
inter = of.Get_parent()
if inter == MPI.COMM_NULL:
    inter = of(MPI.COMM_WORLD).Spawn(sys.executable, sys.argv, maxprocs=2)
if kind == "native":
    inter.Barrier()
else:
    assert type(inter) is isthmus.Intercomm
    recv = np.empty(2, "i4")
    for name in ("auto", "segmented", "balanced"):
        inter.Allgather(np.array([inter.rank], "i4"), recv, algorithm=name)
        assert recv.tolist() == [0, 1]
inter.Disconnect()
print("ended", flush=True)
