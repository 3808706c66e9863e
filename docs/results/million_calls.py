"""The resident memory of a process over a million blocking calls with fresh arrays.

    mpiexec -n 3 python docs/results/million_calls.py

Every call has new arrays of its own, of one of forty sizes, and passes views of them
that are new too. Between groups and inside one, four operations take turns.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

import isthmus

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
EVERY = 50_000


def resident() -> float:
    """The MiB of this process that are in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = next(x for x in lines if x.startswith("VmRSS"))
    return int(found.split()[1]) / 1024


world = MPI.COMM_WORLD
low = world.rank < world.size // 2 or world.size == 1
local = isthmus.Intracomm(world.Split(not low))
inter = local.Create_intercomm(0, world, world.size // 2 if low else 0)
there, everyone = inter.remote_size, isthmus.Intracomm(world.Dup())
if world.rank == 0:
    library, version = MPI.get_vendor()
    print(f"{library} {'.'.join(map(str, version))}, {platform.machine()}", end=", ")
    print(f"{os.cpu_count()} cores, {world.size} ranks")
begin = time.monotonic()
for k in range(CALLS + 1):
    if k % EVERY == 0 and (rows := world.gather(resident())):
        mib = " ".join(f"{x:7.1f}" for x in rows)
        print(f"{k:8} calls {time.monotonic() - begin:7.0f} s, MiB: {mib}", flush=True)
    n = 1 + 25 * (k % 40)
    mine = np.full(n + 1, float(k))[1:]
    if k % 4 == 0:
        inter.Allreduce(mine, got := np.empty(n))
    elif k % 4 == 1:
        inter.Allgather(mine, got := np.empty(n * there))
    elif k % 4 == 2:
        everyone.Allreduce(mine, got := np.empty(n))
    else:
        everyone.Allgatherv(mine, got := np.empty(n * world.size))
    wanted = k * {0: there, 2: world.size}.get(k % 4, 1)
    assert (got == wanted).all(), (k, got, wanted)
