"""How long it takes to set up the redistribution of many points, by index lists.

    mpiexec -n 16 python docs/results/many_points.py

One million points in all, and one million on each rank, in random order: to blocks, and
to another random order. Seconds of the slowest rank, medians of some times: making the
layout and the redistribution; the first move, which binds fields; a later move.
"""

from __future__ import annotations

import sys
from os import cpu_count
from time import perf_counter

import numpy as np
from mpi4py import MPI

from isthmus import Layout, Redistribution
from isthmus.mpi.costs.tuning import library

MILLION, TIMES = 1_000_000, 5
COMM = MPI.COMM_WORLD


def took(make):
    """The seconds of the slowest rank, and what was made."""
    COMM.Barrier()
    begin = perf_counter()
    made = make()
    return COMM.allreduce(perf_counter() - begin, MPI.MAX), made


def points(n: int, seed: int) -> np.ndarray:
    """This rank's part of all points in a random order."""
    low, high = n * COMM.rank // COMM.size, n * (COMM.rank + 1) // COMM.size
    return np.random.default_rng(seed).permutation(n)[low:high].copy()


def measure(n: int, to_blocks: bool) -> list[float]:
    """Of n points: setting up, the first move, a later one."""
    mine, wanted = points(n, 1), points(n, 2)
    if to_blocks:
        wanted = np.arange(n)[n * COMM.rank // COMM.size :][: len(wanted)]
    times = []
    for _ in range(TIMES):

        def make() -> Redistribution:
            target = Layout.blocks(n, (COMM.size,))
            if not to_blocks:
                target = Layout.indices(n, wanted)
            return Redistribution(COMM, Layout.indices(n, mine), target)

        set_up, move = took(make)
        into = np.zeros(len(wanted), np.int64)
        first, _ = took(lambda move=move, into=into: move(mine, into))
        later, _ = took(lambda move=move, into=into: move(mine, into))
        times.append((set_up, first, later))
        assert np.array_equal(into, wanted)
        move.Free()
    return np.median(times, 0).tolist()


def main() -> None:
    each = int(float(sys.argv[1])) if len(sys.argv) > 1 else MILLION
    if COMM.rank == 0:
        print(f"{library()}, {COMM.size} ranks, {cpu_count()} cores")
        print("points      to        set-up   first move   later (seconds)")
    for n in (each, each * COMM.size):
        for words in ("blocks", "points"):
            found = measure(n, words == "blocks")
            if COMM.rank == 0:
                times = "{:9.3f} {:12.3f} {:7.3f}".format(*found)
                print(f"{n:<11} {words:6} {times}", flush=True)


if __name__ == "__main__":
    main()
