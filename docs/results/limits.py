"""What a limit costs: blocking calls on a communicator with one, and on one without.

mpiexec -n 2 python docs/results/limits.py [calls]

Two groups, of ranks 0 to n/2 - 1 and the others. With and without take turns; a time is
the median of the turns, of the slowest rank, in microseconds.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from timing import WORLD, Ways, in_a_row

import isthmus

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
#: seconds, which no call here takes
LIMIT = 600.0
NBYTES = (8, 1 << 16, 1 << 20)
ALGORITHMS = ("segmented", "node_aware", "native")


def main() -> None:
    """Print a line for each algorithm and size."""
    p = WORLD.size // 2
    group = WORLD.Split(WORLD.rank >= p)
    native = group.Create_intercomm(0, WORLD, p if WORLD.rank < p else 0)
    free, limited = (isthmus.Intercomm(native.Dup()) for _ in range(2))
    limited.timeout = LIMIT
    for algorithm in ALGORITHMS:
        for nbytes in NBYTES:
            send = np.zeros(nbytes, np.uint8)
            recv = np.empty((native.Get_remote_size(), nbytes), np.uint8)
            ways: Ways = {
                name: partial(comm.Allgather, send, recv, algorithm=algorithm)
                for name, comm in (("off", free), ("on", limited))
            }
            found = in_a_row(ways, CALLS if nbytes < 1 << 20 else CALLS // 10)
            if WORLD.rank == 0:
                times = f"{found['off']:9.2f} {found['on']:9.2f}"
                print(f"{algorithm:12} {nbytes:8} {times}", flush=True)


if __name__ == "__main__":
    if WORLD.rank == 0:
        print(f"{'Allgather by':12} {'bytes':>8} {'no limit':>9} {'limit':>9}  µs")
    main()
