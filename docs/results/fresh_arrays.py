"""What a new array object costs: blocking calls with the same arrays, with a new view
of the same memory at every call, and with new memory.

mpiexec -n 2 python docs/results/fresh_arrays.py [calls]

Two groups, of ranks 0 to n/2 - 1 and the others. The ways take turns; a time is the
median of the turns, of the slowest rank, in microseconds.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from timing import WORLD, Ways, in_a_row

import isthmus

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
ELEMENTS = (1, 512, 8192, 131072)


def ways_of(ours: Any, library: Any, a: Any, b: Any) -> Ways:
    """The ways to make one call."""
    return {
        "library": lambda: library(a, b),
        "same objects": lambda: ours(a, b),
        "new objects": lambda: ours(a[:], b[:]),
        "new memory": lambda: ours(np.ones(len(a)), np.empty(len(b))),
    }


def main() -> None:
    """Print a line for each operation and size."""
    p = WORLD.size // 2
    group = WORLD.Split(WORLD.rank >= p)
    native = group.Create_intercomm(0, WORLD, p if WORLD.rank < p else 0)
    inter = isthmus.Intercomm(native)
    n = inter.Get_remote_size()
    for op in ("Allreduce", "Allgather", "Alltoall"):
        ours, library = getattr(inter, op), getattr(native, op)
        for count in ELEMENTS:
            k = -(-count // n) * n if op == "Alltoall" else count
            a, b = np.ones(k), np.empty(k * n if op == "Allgather" else k)
            found = in_a_row(ways_of(ours, library, a, b), CALLS)
            if WORLD.rank == 0:
                words = ", ".join(f"{name} {x:.1f}" for name, x in found.items())
                print(f"{op} of {8 * k} B: {words} µs", flush=True)
    inter.Free()


main()
