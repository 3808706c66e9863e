"""The time of each process in a collective, inside one group or between two.

A vector of ones: reduced to the first process, reduced and scattered, or gathered; so
every result is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from mpi4py import MPI

from ..comm import intercomm, intracomm  # noqa: F401  they enter their classes
from ..comm.family import ours

TURNS = 3
#: calls before those that count
WARM = 2
#: a call and its result, where there is one: what all its elements must be
Made = tuple[Callable[..., None], np.ndarray | None, float]


def _reduce(comm: Any, world: Any, n: int) -> Made:
    """To the first process, from all; between groups, from all others."""
    send, recv = np.ones(n), np.zeros(n)
    if world.rank:
        return partial(comm.Reduce, send, None, MPI.SUM, 0), None, 0.0
    if comm.Is_inter():
        return partial(comm.Reduce, None, recv, MPI.SUM, MPI.ROOT), recv, world.size - 1
    return partial(comm.Reduce, send, recv, MPI.SUM, 0), recv, world.size


def _reduce_scatter(comm: Any, world: Any, n: int) -> Made:
    """Equal parts of a vector that everyone has whole."""
    p = comm.Get_size()
    many = comm.Get_remote_size() if comm.Is_inter() else p
    send, recv = np.ones(n), np.zeros(n // p)
    counts = [recv.size] * p
    return partial(comm.Reduce_scatter, send, recv, counts, MPI.SUM), recv, many


def _allgather(comm: Any, world: Any, n: int) -> Made:
    """Blocks that make up the vector: of everyone, or of each group."""
    send, recv = np.ones(n // comm.Get_size()), np.zeros(n)
    return partial(comm.Allgather, send, recv), recv, 1.0


CALLS = {
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    "allgather": _allgather,
}


def _groups(world: MPI.Intracomm, groups: tuple[int, ...]) -> Any:
    """One group, or the first processes and the others."""
    if len(groups) == 1:
        return world.Dup()
    second = world.rank >= groups[0]
    local = MPI.Intracomm(world.Split(int(second)))
    inter = local.Create_intercomm(0, world, 0 if second else groups[0])
    local.Free()
    return inter


def times(
    jobs: list[tuple[str, tuple[int, ...], str, int]],
) -> Iterator[tuple[str, list[float]]]:
    """For each job (operation, sizes of the groups, algorithm, bytes) the algorithm
    that was taken and the median time of each process, on all of them."""
    world = MPI.Intracomm(MPI.COMM_WORLD.Dup())
    comms = {groups: _groups(world, groups) for _, groups, _, _ in jobs}
    for operation, groups, algorithm, nbytes in jobs:
        native = algorithm == "native"
        comm = comms[groups] if native else ours(comms[groups])
        call, result, expected = CALLS[operation](comm, world, nbytes // 8)
        more = {} if algorithm in ("native", "auto") else {"algorithm": algorithm}
        found = _median(world, partial(call, **more))
        yield comm._taken() if algorithm == "auto" else algorithm, found
        if result is not None and not (result == expected).all():
            raise ValueError(f"{operation} by {algorithm}: wrong data")
    for comm in (*comms.values(), world):
        comm.Free()


def _median(world: MPI.Intracomm, call: Callable[[], None]) -> list[float]:
    """Of a few calls, after those that count for nothing."""
    found = np.empty(WARM + TURNS)
    for turn in range(len(found)):
        world.Barrier()
        begin = perf_counter()
        call()
        found[turn] = perf_counter() - begin
    gathered: list[float] = world.allgather(float(np.median(found[WARM:])))
    return gathered


def library_and_rank() -> tuple[str, int]:
    """The MPI library's name and version, and the own rank in the world."""
    name, version = MPI.get_vendor()
    return f"{name} {'.'.join(map(str, version))}", MPI.COMM_WORLD.rank
