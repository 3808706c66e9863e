"""Silva and Silva's ways on MPI: every one gives the right data, and times."""

from __future__ import annotations

import pytest

from isthmus.bench.silva1999 import times
from isthmus.reproduce.silva1999 import GROUP_SIZES, PAPER_PROCESSES, ways
from support import agree


@pytest.mark.mpi(PAPER_PROCESSES)
def test_every_way_is_timed_on_every_process(comm):
    every = [way for operation in GROUP_SIZES for way in ways(operation)]
    found = list(times([(way, 1 << 12) for way in every]))
    agree(comm, all(len(seconds) == PAPER_PROCESSES for _, seconds in found))
    agree(comm, all(min(seconds) > 0 for _, seconds in found))
    named = [
        taken
        for way, (taken, _) in zip(every, found, strict=True)
        if way.algorithm != "auto"
    ]
    agree(comm, named == ["native", "native", "leader"] * len(GROUP_SIZES))
    agree(comm, all(taken for taken, _ in found))
