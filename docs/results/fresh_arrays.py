"""What arrays cost that lie elsewhere at every call: blocking calls with the same ones
and with slices of longer ones, each at another place.

mpiexec -n 16 python docs/results/fresh_arrays.py [seconds]

Two groups, of ranks 0 to n/2 - 1 and the others. The ways take turns; a time is the
median of the turns, of the slowest rank, in microseconds.
"""

from __future__ import annotations

import sys
from itertools import cycle
from typing import Any

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus.bench.compare import medians
from isthmus.bench.stand import Stand, Trial

WORLD = MPI.COMM_WORLD
#: seconds for all ways of each case
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 0.3
#: bytes that a rank passes, and the algorithms for each operation
SIZES = (8, 4096, 65536)
ALGORITHMS = {
    "Allreduce": ("auto", "doubling", "bruck"),
    "Allgather": ("auto", "direct", "segmented"),
    "Alltoall": ("auto", "rotated", "bruck"),
}
#: places in an array, and the elements between two of them
PLACES, STEP = 100, 8


def slices(n: int) -> Any:
    """Arrays of n elements, at one place after the other."""
    whole = np.ones(n + PLACES * STEP)
    return cycle([whole[k * STEP : k * STEP + n] for k in range(PLACES)])


def ways_of(ours: Any, library: Any, name: str, k: int, m: int) -> dict[str, Trial]:
    """The ways to make a call that sends k elements and receives m."""
    send, recv = slices(k), slices(m)
    a, b = np.ones(k), np.empty(m)
    return {
        "library": Trial(lambda: library(next(send), next(recv))),
        "same": Trial(lambda: ours(a, b, algorithm=name)),
        "slices": Trial(lambda: ours(next(send), next(recv), algorithm=name)),
    }


def main() -> None:
    """Print a line for each operation, algorithm and size."""
    stand, p = Stand((WORLD.size,)), WORLD.size // 2
    group = WORLD.Split(WORLD.rank >= p)
    native = group.Create_intercomm(0, WORLD, p if WORLD.rank < p else 0)
    inter = isthmus.Intercomm(native)
    n = inter.Get_remote_size()
    if WORLD.rank == 0:
        print(f"{'':32}library    same  slices  µs")
    for op, names in ALGORITHMS.items():
        ours, library = getattr(inter, op), getattr(native, op)
        for nbytes in SIZES:
            k = nbytes // 8 * (n if op == "Alltoall" else 1)
            m = nbytes // 8 * (1 if op == "Allreduce" else n)
            for name in names:
                ways = ways_of(ours, library, name, k, m)
                found = medians(stand, ways, SECONDS)
                if WORLD.rank == 0:
                    words = "".join(f"{1e6 * x:8.1f}" for x in found.values())
                    print(f"{op:12}{name:12}{nbytes:7}{words}", flush=True)
    inter.Free()


main()
