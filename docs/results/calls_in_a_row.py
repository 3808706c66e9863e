"""The slowest of 50 calls in a row, beside their median: does `auto` stop a program?

mpiexec -n 8 python docs/results/calls_in_a_row.py [calls]

A communicator measures messages and tries algorithms in the calls of a program. Here each
operation has a communicator of its own, between two groups and inside one, and is called
50 times by `auto`, with short blocks and with long ones. A time is that of the slowest
rank; the first call, which makes communicators and memory, is left out. Beside it is the
same of the MPI library's own calls, of which this machine delays some as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np
from mpi4py import MPI

from isthmus.bench.job import case
from isthmus.bench.operations import REDISTRIBUTION, measured
from isthmus.bench.stand import Stand
from isthmus.mpi.costs.tuning import library

WORLD = MPI.COMM_WORLD
CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
#: the bytes of a block or vector: for an Allgather inside a group, the second is long
#: enough to be measured
SIZES = (8, 1 << 16)
#: a call may take so many milliseconds longer than the median
MOST_MS = 20.0


def calls_in_a_row(call: Callable[[], object]) -> np.ndarray:
    """The milliseconds of each call but the first, on the slowest rank."""
    times = np.empty(CALLS + 1)
    WORLD.Barrier()
    for k in range(len(times)):
        begin = perf_counter()
        call()
        times[k] = 1e3 * (perf_counter() - begin)
    WORLD.Allreduce(MPI.IN_PLACE, times, MPI.MAX)
    return times[1:]


def main() -> None:
    """Print a line for each operation and size, then the worst of all."""
    n, worst = WORLD.size, {"isthmus": 0.0, "library": 0.0}
    if WORLD.rank == 0:
        print(f"{library()}, {n} ranks, {CALLS} calls in a row, ms")
        print(
            f"{'':34}{'median':>9}{'slowest':>9}{'median':>9}{'slowest':>9} (library)"
        )
    for groups in ((n // 2, n - n // 2), (n,)):
        for op in measured(len(groups)):
            if op == REDISTRIBUTION:
                continue
            for each in SIZES[:1] if op == "barrier" else SIZES:
                stand = Stand(groups)
                arguments, name = (
                    stand.checked_call(case(op, groups, each)).arguments,
                    op,
                )
                words = ""
                for who, comm in (("isthmus", stand.ours), ("library", stand.native)):
                    method = getattr(comm, name.capitalize())
                    times = calls_in_a_row(lambda f=method, a=arguments: f(*a))
                    median, slowest = float(np.median(times)), float(times.max())
                    worst[who] = max(worst[who], slowest - median)
                    words += f"{median:9.3f}{slowest:9.3f}"
                if WORLD.rank == 0:
                    where = "between" if len(groups) == 2 else "inside"
                    print(f"{where:8} {op:18}{each:7}{words}", flush=True)
                stand.free()
    if WORLD.rank == 0:
        print(", ".join(f"{k}: at most {v:.1f} ms above" for k, v in worst.items()))
        print("kept" if worst["isthmus"] <= MOST_MS else f"more than {MOST_MS:.0f} ms")


main()
