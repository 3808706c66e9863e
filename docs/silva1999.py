"""What Silva and Silva 1999 measured, anew: between groups against inside one.

    isthmus lab run -n 8 -- python docs/silva1999.py

Eight processes and 2 MB: Reduce with one process in the root's group, Reduce_scatter
and Allgather with four in each. The time of each process, in milliseconds, as a table.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np
from mpi4py import MPI

import isthmus

NBYTES, TURNS = 2_000_000, 9
world = MPI.COMM_WORLD


def groups(p: int) -> MPI.Intercomm:
    """The first p processes and the others."""
    local = world.Split(int(world.rank >= p))
    return local.Create_intercomm(0, world, 0 if world.rank >= p else p)


def vector(n: int) -> np.ndarray:
    return np.ones(n, np.uint8)


def reduce_inside() -> Callable[[], None]:
    send, recv = vector(NBYTES), vector(NBYTES)
    return lambda: world.Reduce(send, recv if world.rank == 0 else None)


def reduce_between(inter: MPI.Intercomm) -> Callable[[], None]:
    send, recv = vector(NBYTES), vector(NBYTES)
    if world.rank == 0:
        return lambda: inter.Reduce(None, recv, MPI.SUM, MPI.ROOT)
    return lambda: inter.Reduce(send, None, MPI.SUM, 0)


def reduce_scatter(comm: MPI.Comm) -> Callable[[], None]:
    n = comm.Get_size()
    send, recv = vector(NBYTES), vector(NBYTES // n)
    return lambda: comm.Reduce_scatter(send, recv, [NBYTES // n] * n)


def allgather(comm: MPI.Comm) -> Callable[[], None]:
    n = comm.Get_remote_size() if comm.Is_inter() else comm.Get_size()
    send = vector(NBYTES // 8)
    recv = vector(NBYTES // 8 * n)
    return lambda: comm.Allgather(send, recv)


def times(call: Callable[[], None]) -> list[float]:
    """The median time of each process, in milliseconds."""
    call()
    found = []
    for _ in range(TURNS):
        world.Barrier()
        begin = perf_counter()
        call()
        found.append(1e3 * (perf_counter() - begin))
    return world.allgather(float(np.median(found)))


def main() -> None:
    """Measure, and print the table."""
    one, four = groups(1), groups(4)
    rows = {
        "Reduce, inside": reduce_inside(),
        "Reduce, between, native": reduce_between(one),
        "Reduce, between, isthmus": reduce_between(isthmus.Intercomm(one)),
        "Reduce_scatter, inside": reduce_scatter(world),
        "Reduce_scatter, between, native": reduce_scatter(four),
        "Reduce_scatter, between, isthmus": reduce_scatter(isthmus.Intercomm(four)),
        "Allgather, inside": allgather(world),
        "Allgather, between, native": allgather(four),
        "Allgather, between, isthmus": allgather(isthmus.Intercomm(four)),
    }
    measured = {name: times(call) for name, call in rows.items()}
    if world.rank == 0:
        name, version = MPI.get_vendor()
        print(f"| {name} {'.'.join(map(str, version))} | " + " | ".join("01234567") + " |")
        print("|---|" + "---:|" * 8)
        for row, found in measured.items():
            print(f"| {row} | " + " | ".join(f"{x:.0f}" for x in found) + " |")


if __name__ == "__main__":
    main()
