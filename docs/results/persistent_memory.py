"""What the MPI library keeps of persistent collectives that are freed, without isthmus.

mpiexec -n 4 python docs/results/persistent_memory.py

Bytes a request, for 32 KiB on each process: how much more resident memory rank 0 has
after some hundred requests that were made, started, completed and freed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from mmap import PAGESIZE
from pathlib import Path

import numpy as np
from mpi4py import MPI

from isthmus.mpi.costs.tuning import library

WORLD = MPI.COMM_WORLD
#: requests of each operation before its memory is looked at, and after
TIMES = 400
NBYTES = 32 << 10


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGESIZE


def requests() -> dict[str, Callable[[], MPI.Prequest]]:
    """What makes a request of each operation."""
    n = WORLD.size
    one, all_of_them = np.zeros(NBYTES, np.uint8), np.zeros(n * NBYTES, np.uint8)
    part = np.zeros(NBYTES // n, np.uint8)
    return {
        "Barrier": WORLD.Barrier_init,
        "Bcast": partial(WORLD.Bcast_init, one),
        "Gather": partial(WORLD.Gather_init, one, all_of_them),
        "Scatter": partial(WORLD.Scatter_init, all_of_them, one),
        "Allgather": partial(WORLD.Allgather_init, one, all_of_them),
        "Alltoall": partial(WORLD.Alltoall_init, all_of_them, all_of_them.copy()),
        "Reduce": partial(WORLD.Reduce_init, one, one.copy(), op=MPI.MAX),
        "Allreduce": partial(WORLD.Allreduce_init, one, one.copy(), op=MPI.MAX),
        "Reduce_scatter_block": partial(
            WORLD.Reduce_scatter_block_init, one, part, op=MPI.MAX
        ),
    }


def main() -> None:
    """Print a line for each operation."""
    for name, make in requests().items():
        before = 0
        for k in range(2 * TIMES):
            if k == TIMES:
                before = resident()
            request = make()
            request.Start()
            request.Wait()
            request.Free()
        if WORLD.rank == 0:
            print(f"{name:20} {(resident() - before) / TIMES:9.0f}", flush=True)


if __name__ == "__main__":
    if WORLD.rank == 0:
        print(f"{library()}, bytes a request")
    main()
