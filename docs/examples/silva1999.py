"""What Silva and Silva measured in 1999, anew: between two groups against inside one.

A vector of 2 MiB: reduced to the only process of its group, as they did, reduced and
scattered between two halves, gathered by all. The rows of a table: the time of each
process in milliseconds, and the mean. For an even number of processes.
"""

from time import perf_counter

import numpy as np
from mpi4py import MPI

import isthmus

NBYTES, TURNS = 1 << 21, 7
world = MPI.COMM_WORLD


def vector(nbytes):
    return np.ones(nbytes // 8)


def groups(p):
    """The first p processes and the others."""
    second = world.rank >= p
    local = world.Split(int(second))
    return local.Create_intercomm(0, world, 0 if second else p)


def reduce(comm):
    """To the first process, from all; between groups, from all others."""
    send, recv = vector(NBYTES), vector(NBYTES)
    if world.rank > 0:
        return lambda: comm.Reduce(send, None, MPI.SUM, 0)
    if comm.Is_inter():
        return lambda: comm.Reduce(None, recv, MPI.SUM, MPI.ROOT)
    return lambda: comm.Reduce(send, recv, MPI.SUM, 0)


def reduce_scatter(comm):
    """Equal parts of a vector that everyone has whole."""
    n = comm.Get_size()
    send, recv = vector(NBYTES), vector(NBYTES // n)
    return lambda: comm.Reduce_scatter(send, recv, [recv.size] * n)


def allgather(comm):
    """Blocks that make up the vector: of everyone, or of each group."""
    send, recv = vector(NBYTES // comm.Get_size()), vector(NBYTES)
    return lambda: comm.Allgather(send, recv)


def times(action):
    """The median time of each process, in milliseconds."""
    action()
    found = []
    for _ in range(TURNS):
        world.Barrier()
        begin = perf_counter()
        action()
        found.append(1e3 * (perf_counter() - begin))
    return world.allgather(np.median(found))


def row(*cells):
    if world.rank == 0:
        print("|", " | ".join(cells), "|", flush=True)


def main():
    one, half = groups(1), groups(world.size // 2)
    library, version = MPI.get_vendor()
    row(
        f"{library} {'.'.join(map(str, version))}", *map(str, range(world.size)), "mean"
    )
    row("---", *["---:"] * (world.size + 1))
    for make, inter in ((reduce, one), (reduce_scatter, half), (allgather, half)):
        for name, comm in {
            "inside, native": world,
            "between, native": inter,
            "between, isthmus": isthmus.Intercomm(inter),
        }.items():
            found = times(make(comm))
            cells = [f"{x:.0f}" for x in [*found, np.mean(found)]]
            row(f"{make.__name__} {name}", *cells)


if __name__ == "__main__":
    main()
