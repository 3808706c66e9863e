"""One giant block against equal ones, on a lab: rings whose entry moves against
Algorithm 2 by name, what isthmus takes by itself, and the library.

isthmus lab up --hosts 32 --rate 100mbit
isthmus lab run -- python docs/results/giant_block.py 100

The first argument is the rate of a link in Mbit/s; the second may be sizes in MiB, the
third algorithms. Rank 0 of the first half has M bytes, the others of it nothing, each
of the second half its share of M. Multiples of the time in which a link passes M at
that rate, medians of the slowest rank.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from mpi4py import MPI

import isthmus
from isthmus.bench.compare import medians
from isthmus.bench.stand import Stand, Trial
from isthmus.mpi.costs.tuning import library

WORLD = MPI.COMM_WORLD
#: bytes a second of a link; MiB
RATE = float(sys.argv[1]) * 1e6 / 8 if len(sys.argv) > 1 else 0.0
TOTALS = [
    int(x) for x in (sys.argv[2] if len(sys.argv) > 2 else "1,4,16,64").split(",")
]
HALF = WORLD.size // 2
NAMES = ["moving_entry", "balanced", "pipelined(parts=4)", "auto", "native"]
if len(sys.argv) > 3:
    NAMES = sys.argv[3].split(",")
#: seconds for each way of each case
SECONDS = 2.0


def ways_of(inter: isthmus.Intercomm, first: bool, total: int) -> dict[str, Trial]:
    """An Allgatherv of so many bytes by each way."""
    giant, equal = [total] + [0] * (HALF - 1), [total // HALF] * HALF
    mine, theirs = (giant, equal) if first else (equal, giant)
    send = np.ones(mine[inter.rank], np.uint8)
    recv = np.empty(sum(theirs), np.uint8)

    def way(name: str) -> None:
        inter.Allgatherv(send, [recv, theirs], algorithm=name)

    return {name: Trial(partial(way, name)) for name in NAMES}


def main() -> None:
    """Print a line for each size."""
    stand, first = Stand((WORLD.size,)), WORLD.rank < HALF
    local = WORLD.Split(int(not first))
    inter = isthmus.Intercomm(local.Create_intercomm(0, WORLD, HALF if first else 0))
    if WORLD.rank == 0:
        print(f"{library()}, {HALF} + {HALF} hosts, {8e-6 * RATE:g} Mbit/s")
        print("| M | " + " | ".join(NAMES) + " |")
        print("|---" * (1 + len(NAMES)) + "|")
    for mib in TOTALS:
        total = mib << 20
        found = medians(stand, ways_of(inter, first, total), SECONDS * len(NAMES))
        if WORLD.rank == 0:
            unit = total / RATE if RATE else 1e-3
            cells = " | ".join(f"{t / unit:.2f}" for t in found.values())
            print(f"| {mib} MiB | {cells} |", flush=True)


if __name__ == "__main__":
    main()
