"""Nonblocking calls of which several are under way at once, with new arrays each time.

mpiexec -n 2 python docs/results/at_once.py

Between two halves: `Iallreduce` by the MPI library itself and by algorithms of isthmus,
1, 2, 4 and 8 at a time; microseconds for each call, medians of the slowest rank.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus.bench.compare import medians
from isthmus.bench.stand import Stand, Trial
from isthmus.mpi.costs.tuning import library

WORLD = MPI.COMM_WORLD
SIZES, AT_ONCE = (128, 32768), (1, 2, 4, 8)
NAMES = ("native", "auto", "node_aware", "bruck")
#: calls of one turn
CALLS = 16


def main() -> None:
    """Print a line for each size and algorithm."""
    stand, half = Stand((WORLD.size,)), WORLD.size // 2
    local = WORLD.Split(int(WORLD.rank >= half))
    other = half if WORLD.rank < half else 0
    inter = isthmus.Intercomm(local.Create_intercomm(0, WORLD, other))

    def some(name: str, nbytes: int, k: int) -> None:
        for _ in range(CALLS // k):
            arrays = [(np.ones(nbytes // 8), np.empty(nbytes // 8)) for _ in range(k)]
            going = [inter.Iallreduce(x, y, algorithm=name) for x, y in arrays]
            for request in going:
                request.Wait()

    if WORLD.rank == 0:
        print(f"{library()}, {WORLD.size} ranks; microseconds a call")
        print("   bytes  algorithm " + "".join(f"{k:>6} at once" for k in AT_ONCE))
    for nbytes in SIZES:
        ways = {
            f"{name} {k}": Trial(partial(some, name, nbytes, k))
            for name in NAMES
            for k in AT_ONCE
        }
        found = medians(stand, ways, 0.5 * len(ways))
        for name in NAMES:
            times = "".join(
                f"{1e6 * found[f'{name} {k}'] / CALLS:14.0f}" for k in AT_ONCE
            )
            if WORLD.rank == 0:
                print(f"{nbytes:8}  {name:10}{times}")


if __name__ == "__main__":
    main()
