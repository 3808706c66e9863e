"""Timing what Silva and Silva 1999 timed, in processes of our own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from ..reproduce.silva1999 import PROCESSES, Times, Way, jobs
from .launch import Here, Start, Tell, launch

#: seconds without a word after which the processes are ended
LIMIT = 120.0


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
    from ..mpi.measure.each_process import library_and_rank, times

    tell(library_and_rank()[0])
    every = [(w.operation, w.groups, w.algorithm, n) for w, n in todo]
    for (way, nbytes), (taken, seconds) in zip(todo, times(every), strict=True):
        tell(Times(way.operation, way.label, nbytes, taken, tuple(seconds)))
