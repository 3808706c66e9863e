"""The times of Silva and Silva 1999, measured in processes of our own: the time of each
process, inside one group or between two.

The paper shows times of single processes, so the slowest rank alone, as in all other
measurements, is not enough. A vector is reduced to the first process, reduced and
scattered, or gathered, as in every measurement of these operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import numpy as np

from ..reproduce.silva1999 import PAPER_PROCESSES, ProcessTimes, Way, jobs
from .compare import TimingRace
from .job import Contender, case
from .launch import Here, Start, Tell, launch

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
        # of an allgather, the blocks of a group make up the vector
        parts = way.groups[0] if way.operation == "allgather" else 1
        vector = case(way.operation, way.groups, nbytes // parts)
        race = TimingRace(stand, [stand.prepare(vector, Contender(way.algorithm))])
        seconds = [race.repetition(0, 1) for _ in range(UNTIMED_CALLS + TIMED_CALLS)]
        race.check([way.algorithm], f"({way.operation}, {nbytes} bytes)")
        median = float(np.median(seconds[UNTIMED_CALLS:]))
        yield race.taken[0] or way.algorithm, stand.comm.allgather(median)
    for stand in stands.values():
        stand.free()
