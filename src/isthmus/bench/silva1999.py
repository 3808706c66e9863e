"""Timing what Silva and Silva 1999 timed, in processes of our own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import closing

from ..reproduce.silva1999 import PROCESSES, Times, jobs
from .launch import Here, Start, launch

#: seconds without a word after which the processes are ended
LIMIT = 120.0


def measure(
    progress: Callable[[int, int], None], start: Start = Here
) -> tuple[str, list[Times]]:
    """The MPI library, and the times of all ways and sizes."""
    todo, found, library = jobs(), [], ""
    lines = launch("isthmus.bench.silva1999", PROCESSES, "", LIMIT, start)
    with closing(lines):
        for (way, nbytes), line in zip(todo, lines, strict=True):
            library, taken, seconds = json.loads(line)
            found.append(Times(way.operation, way.label, nbytes, taken, tuple(seconds)))
            progress(len(found), len(todo))
    return library, found


def main(_: str, results: str) -> None:
    """What every rank does."""
    from ..mpi.measure.each_process import library_and_rank, times

    library, rank = library_and_rank()
    every = [(w.operation, w.groups, w.algorithm, n) for w, n in jobs()]
    for taken, seconds in times(every):
        if rank == 0:
            line = json.dumps([library, taken, seconds])
            with open(results, "ab", buffering=0) as file:
                file.write(line.encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
