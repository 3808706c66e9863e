"""Times of calls that take turns: for the scripts beside this one."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
#: at least so many calls of each way
LEAST = 3
#: how often each way has its turn, where calls are short, and calls before the first
TURNS, BEFORE = 15, 20
Ways = dict[str, Callable[[], object]]


def medians(ways: Ways, seconds: float) -> dict[str, float]:
    """Milliseconds of a call by each way, which take turns for so many seconds each, of
    the slowest process."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for call in ways.values():
        call()
    begin = perf_counter()
    while True:
        for name, call in ways.items():
            WORLD.Barrier()
            start = perf_counter()
            call()
            times[name].append(WORLD.allreduce(perf_counter() - start, MPI.MAX))
        enough = perf_counter() - begin > seconds * len(ways)
        if WORLD.bcast(enough) and len(times[name]) >= LEAST:
            return {name: 1e3 * float(np.median(x)) for name, x in times.items()}


def in_a_row(ways: Ways, calls: int) -> dict[str, float]:
    """Microseconds of a short call by each way, of the slowest process: so many calls
    in a row, by turns."""
    for call in ways.values():  # beyond those after which candidates are tried
        for _ in range(BEFORE):
            call()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(TURNS):
        for name, call in ways.items():
            WORLD.Barrier()
            begin = perf_counter()
            for _ in range(calls):
                call()
            times[name].append((perf_counter() - begin) / calls)
    return {
        name: 1e6 * WORLD.allreduce(float(np.median(x)), MPI.MAX)
        for name, x in times.items()
    }
