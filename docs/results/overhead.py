"""What Python takes in a call that is left to the MPI library, part by part.

mpiexec -n 2 python docs/results/overhead.py

Between two groups of one rank. The library's own call is replaced by one that does
nothing, so nothing is sent; microseconds, the least of several runs on rank 0.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from timing import WORLD

import isthmus
from isthmus.mpi.comm.values import by_value

CALLS, RUNS = 20000, 25


class Empty:
    """A method with the arguments of a collective."""

    def Allgather(self, send: Any, recv: Any, *, algorithm: str | None = None) -> None:
        """Do nothing."""


def nothing(*args: Any) -> None:
    """Stands for the library's call."""


def least(call: Callable[[], Any]) -> float:
    """Microseconds of a call, without those of the loop."""

    def run(call: Callable[[], Any]) -> float:
        begin = perf_counter()
        for _ in range(CALLS):
            call()
        return (perf_counter() - begin) / CALLS

    loop = min(run(lambda: None) for _ in range(RUNS))
    return 1e6 * (min(run(call) for _ in range(RUNS)) - loop)


def main() -> None:
    """Print a line for each part."""
    group = WORLD.Split(WORLD.rank)
    inter = isthmus.Intercomm(group.Create_intercomm(0, WORLD, 1 - WORLD.rank))
    send, recv, empty = np.zeros(1), np.empty(1), Empty()
    inter.Allgather(send, recv, algorithm="native")
    if WORLD.rank == 0:
        args = (send, recv)
        values = by_value("Allgather", "native", args)
        kept = inter._context().cached_calls
        found = kept[values]
        found.native = nothing
        for name, call in (
            ("whole", lambda: inter.Allgather(send, recv, algorithm="native")),
            ("a method", lambda: empty.Allgather(send, recv, algorithm="native")),
            ("values of arguments", lambda: by_value("Allgather", "native", args)),
            ("what is kept", lambda: kept[values]),
            ("the call", lambda: found.run(inter, args)),
        ):
            print(f"{name:20} {least(call):5.2f} µs", flush=True)
    WORLD.Barrier()


if __name__ == "__main__":
    main()
