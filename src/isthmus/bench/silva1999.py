"""The times of Silva and Silva 1999, measured in processes of our own: the time of each
process, inside one group or between two.

The paper shows times of single processes, so the slowest rank alone, as in all other
measurements, is not enough. A vector of ones is reduced to the first process, reduced
and scattered, or gathered, so that every result is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..reproduce.silva1999 import PAPER_PROCESSES, ProcessTimes, Way, jobs
from .compare import TimingRace
from .launch import Here, Start, Tell, launch

if TYPE_CHECKING:
    from .stand import Stand, Trial

#: seconds for the calls of one way and size, after which the processes are ended
MAX_SECONDS_FOR_A_WAY = 120.0
#: calls of which the median counts, and calls before these, which warm up
TIMED_CALLS, UNTIMED_CALLS = 3, 2


def measure(
    progress: Callable[[int, int, float], None], start: Start = Here
) -> tuple[str, list[ProcessTimes]]:
    """The MPI library, and the times of all ways and sizes."""
    measurements, results = jobs(), []
    run = launch(_measure, measurements, PAPER_PROCESSES, MAX_SECONDS_FOR_A_WAY, start)
    with closing(run) as incoming:
        library = next(incoming)
        for result in incoming:
            results.append(result)
            done, total = len(results), len(measurements)
            progress(done, total, done / total)
    return library, results


def _measure(measurements: list[tuple[Way, int]], tell: Tell) -> None:
    """The work of all ranks: tell the library, then the times of each measurement."""
    from mpi4py import MPI

    name, version = MPI.get_vendor()
    tell(f"{name} {'.'.join(map(str, version))}")
    for (way, nbytes), (taken, seconds) in zip(
        measurements, times(measurements), strict=True
    ):
        tell(ProcessTimes(way.operation, way.label, nbytes, taken, tuple(seconds)))


def times(
    measurements: list[tuple[Way, int]],
) -> Iterator[tuple[str, list[float]]]:
    """For each way and its bytes, the algorithm taken and the median time of each
    process; collective, with equal results."""
    from .stand import Stand

    groupings = {way.groups for way, _ in measurements}
    stands = {groups: Stand(groups) for groups in groupings}
    for way, nbytes in measurements:
        stand = stands[way.groups]
        race = TimingRace(stand, [_trial(stand, way, nbytes)])
        seconds = [race.repetition(0, 1) for _ in range(UNTIMED_CALLS + TIMED_CALLS)]
        race.check([way.algorithm], f"({way.operation}, {nbytes} bytes)")
        median = float(np.median(seconds[UNTIMED_CALLS:]))
        yield race.taken[0], stand.comm.allgather(median)
    for stand in stands.values():
        stand.free()


def _trial(stand: Stand, way: Way, nbytes: int) -> Trial:
    """The trial of a way with a vector of `nbytes`."""
    from .stand import Trial

    comm: Any = stand.native if way.algorithm == "native" else stand.ours
    is_auto = way.algorithm == "auto"
    options = {}
    if way.algorithm not in ("native", "auto"):
        options = {"algorithm": way.algorithm}
    method = getattr(comm, way.operation.capitalize())
    args, received, element = VECTOR_CALLS[way.operation](comm, stand.rank, nbytes // 8)
    expected = np.full_like(received, element)
    taken = comm._last_algorithm if is_auto else (lambda: way.algorithm)
    return Trial(partial(method, *args, **options), received, expected, taken)


#: the arguments of a call, its receive buffer, and the expected value of each element
CallOnVectors = tuple[tuple[Any, ...], np.ndarray, float]


def _reduce(comm: Any, rank: int, n: int) -> CallOnVectors:
    """A sum to the first process, from all processes of its group or of the remote
    group."""
    from mpi4py import MPI

    send, recv = np.ones(n), np.zeros(n)
    if rank:
        return (send, None, MPI.SUM, 0), np.empty(0), 0.0
    if comm.Is_inter():
        return (None, recv, MPI.SUM, MPI.ROOT), recv, comm.Get_remote_size()
    return (send, recv, MPI.SUM, 0), recv, comm.Get_size()


def _reduce_scatter(comm: Any, rank: int, n: int) -> CallOnVectors:
    """Equal parts of the sum of the vectors of all senders."""
    from mpi4py import MPI

    p = comm.Get_size()
    senders = comm.Get_remote_size() if comm.Is_inter() else p
    send, recv = np.ones(n), np.zeros(n // p)
    return (send, recv, [recv.size] * p, MPI.SUM), recv, senders


def _allgather(comm: Any, rank: int, n: int) -> CallOnVectors:
    """Blocks that make up a vector in each group."""
    send, recv = np.ones(n // comm.Get_size()), np.zeros(n)
    return (send, recv), recv, 1.0


VECTOR_CALLS = {
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    "allgather": _allgather,
}
