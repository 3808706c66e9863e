"""Timing what Silva and Silva 1999 timed, in processes of our own: the time of each
process, inside one group or between two.

A vector of ones is reduced to the first process, reduced and scattered, or gathered; so
every result is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..reproduce.silva1999 import PROCESSES, Times, Way, jobs
from .compare import Race
from .launch import Here, Start, Tell, launch

if TYPE_CHECKING:
    from .stand import Stand, Trial

#: seconds without a word after which the processes are ended
LIMIT = 120.0
#: calls that count, and calls before those
TURNS, WARM_UP_CALLS = 3, 2


def measure(
    progress: Callable[[int, int, float], None], start: Start = Here
) -> tuple[str, list[Times]]:
    """The MPI library, and the times of all ways and sizes."""
    todo, found = jobs(), []
    with closing(launch(_times, todo, PROCESSES, LIMIT, start)) as said:
        library = next(said)
        for times in said:
            found.append(times)
            progress(len(found), len(todo), len(found) / len(todo))
    return library, found


def _times(todo: list[tuple[Way, int]], tell: Tell) -> None:
    """What every rank does."""
    from mpi4py import MPI

    name, version = MPI.get_vendor()
    tell(f"{name} {'.'.join(map(str, version))}")
    for (way, nbytes), (taken, seconds) in zip(todo, times(todo), strict=True):
        tell(Times(way.operation, way.label, nbytes, taken, tuple(seconds)))


def times(todo: list[tuple[Way, int]]) -> Iterator[tuple[str, list[float]]]:
    """For each way and its bytes the algorithm that was taken and the median time of
    each process, on all of them."""
    from .stand import Stand

    stands = {groups: Stand(groups) for groups in {way.groups for way, _ in todo}}
    for way, nbytes in todo:
        stand = stands[way.groups]
        race = Race(stand, [_trial(stand, way, nbytes)])
        seconds = [race.repetition(0, 1) for _ in range(WARM_UP_CALLS + TURNS)]
        race.check([way.algorithm], f"({way.operation}, {nbytes} bytes)")
        median = float(np.median(seconds[WARM_UP_CALLS:]))
        yield race.taken[0], stand.comm.allgather(median)
    for stand in stands.values():
        stand.free()


def _trial(stand: Stand, way: Way, nbytes: int) -> Trial:
    """A way, ready to run."""
    from .stand import Trial

    comm: Any = stand.native if way.algorithm == "native" else stand.ours
    is_auto = way.algorithm == "auto"
    named = {} if way.algorithm in ("native", "auto") else {"algorithm": way.algorithm}
    method = getattr(comm, way.operation.capitalize())
    args, received, element = CALLS[way.operation](comm, stand.rank, nbytes // 8)
    expected = np.full_like(received, element)
    taken = comm._taken if is_auto else (lambda: way.algorithm)
    return Trial(partial(method, *args, **named), received, expected, taken)


#: the arguments of a call, what it receives, and what all elements of that must be
Made = tuple[tuple[Any, ...], np.ndarray, float]


def _reduce(comm: Any, rank: int, n: int) -> Made:
    """To the first process, from all; between groups, from all others."""
    from mpi4py import MPI

    send, recv = np.ones(n), np.zeros(n)
    if rank:
        return (send, None, MPI.SUM, 0), np.empty(0), 0.0
    if comm.Is_inter():
        return (None, recv, MPI.SUM, MPI.ROOT), recv, comm.Get_remote_size()
    return (send, recv, MPI.SUM, 0), recv, comm.Get_size()


def _reduce_scatter(comm: Any, rank: int, n: int) -> Made:
    """Equal parts of a vector that everyone has whole."""
    from mpi4py import MPI

    p = comm.Get_size()
    senders = comm.Get_remote_size() if comm.Is_inter() else p
    send, recv = np.ones(n), np.zeros(n // p)
    return (send, recv, [recv.size] * p, MPI.SUM), recv, senders


def _allgather(comm: Any, rank: int, n: int) -> Made:
    """Blocks that make up the vector: of everyone, or of each group."""
    send, recv = np.ones(n // comm.Get_size()), np.zeros(n)
    return (send, recv), recv, 1.0


CALLS = {
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    "allgather": _allgather,
}
