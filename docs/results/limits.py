"""What a limit costs: blocking calls on a communicator with one, and on one without.

mpiexec -n 2 python docs/results/limits.py [seconds]

Two groups, of ranks 0 to n/2 - 1 and the others. With and without take turns; a time is
the median of the turns, of the slowest rank, in microseconds.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus.bench.compare import medians
from isthmus.bench.stand import Stand, Trial

WORLD = MPI.COMM_WORLD
#: seconds for both ways of each case
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
#: seconds, which no call here takes
LIMIT = 600.0
NBYTES = (8, 1 << 16, 1 << 20)
ALGORITHMS = ("segmented", "node_aware", "native")


def main() -> None:
    """Print a line for each algorithm and size."""
    stand, p = Stand((WORLD.size,)), WORLD.size // 2
    group = WORLD.Split(WORLD.rank >= p)
    native = group.Create_intercomm(0, WORLD, p if WORLD.rank < p else 0)
    free, limited = (isthmus.Intercomm(native.Dup()) for _ in range(2))
    limited.timeout = LIMIT
    for algorithm in ALGORITHMS:
        for nbytes in NBYTES:
            send = np.zeros(nbytes, np.uint8)
            recv = np.empty((native.Get_remote_size(), nbytes), np.uint8)
            ways = {
                name: Trial(partial(comm.Allgather, send, recv, algorithm=algorithm))
                for name, comm in (("off", free), ("on", limited))
            }
            found = medians(stand, ways, SECONDS)
            if WORLD.rank == 0:
                times = f"{1e6 * found['off']:9.2f} {1e6 * found['on']:9.2f}"
                print(f"{algorithm:12} {nbytes:8} {times}", flush=True)


if __name__ == "__main__":
    if WORLD.rank == 0:
        print(f"{'Allgather by':12} {'bytes':>8} {'no limit':>9} {'limit':>9}  µs")
    main()
