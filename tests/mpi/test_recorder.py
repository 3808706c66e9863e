"""Recording real runs, message by message."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus
from groups import pair
from isthmus.bench import clock
from support import agree

pytestmark = pytest.mark.mpi(3)


def sizes(line) -> list[tuple[int, int, int]]:
    e = line.events
    columns = (e.source.tolist(), e.target.tolist(), e.size.tolist())
    return sorted(zip(*columns, strict=True))


def right_times(line) -> bool:
    e = line.events
    return bool((e.start >= 0).all() and (e.end >= e.start).all()) and line.time < 60


def test_what_is_recorded_is_what_the_schedule_says(comm):
    counts = [300, 0, 7000]
    ours = isthmus.Intracomm(comm.Dup())
    send = np.full(counts[comm.rank], comm.rank, "u1")
    recv = np.empty(sum(counts), "u1")
    ours.Allgatherv(send, [recv, counts], algorithm="ring")
    with isthmus.recording(ours) as record:
        for _ in range(2):
            recv[:] = 9
            ours.Allgatherv(send, [recv, counts], algorithm="ring")
    agree(comm, bool((recv == np.repeat([0, 1, 2], counts)).all()))
    found = record.timelines()
    made = isthmus.schedule("allgatherv", "ring", counts=counts)
    from isthmus.cost.machine import AlphaBeta

    expected = sizes(made.simulate(AlphaBeta(1.0, 1.0), record=True))
    agree(comm, [sizes(line) for line in found] == [expected] * 2)
    agree(comm, all(map(right_times, found)))
    recv[:] = 9
    ours.Allgatherv(send, [recv, counts], algorithm="ring")
    agree(comm, len(record.logs) == 2, "recorded after the end")
    agree(comm, bool((recv == np.repeat([0, 1, 2], counts)).all()))
    ours.Free()


def test_between_groups_and_from_a_root(comm):
    groups = pair(comm, 2)
    recv = np.empty(len(groups.there), "i8")
    with isthmus.recording(inter := groups.ours) as record:
        inter.Allgather(np.array([comm.rank]), recv, algorithm="segmented")
    agree(comm, recv.tolist() == list(groups.there))
    (line,) = record.timelines()
    agree(comm, right_times(line) and line.received.tolist() == [8, 8, 16])
    groups.free()
    ours = isthmus.Intracomm(comm.Dup())
    data = np.full(1000, comm.rank, "u1")
    with isthmus.recording(ours) as record:
        ours.Bcast(data, 1, algorithm="circulant")
        ours.Bcast(data, 1, algorithm="library")
    (line,) = record.timelines()  # of the library nothing is seen
    agree(comm, line.received.tolist() == [1000, 0, 1000] and not (data != 1).any())
    ours.Free()


def test_clocks_of_different_systems_are_aligned(comm, monkeypatch):
    agree(comm, clock.offset(comm) == 0.0)  # one system, one clock
    away = 1000.0 * comm.rank
    monkeypatch.setattr(clock, "_clock_identity", lambda: str(comm.rank))
    monkeypatch.setattr(clock, "now", lambda: clock.monotonic() + away)
    agree(comm, abs(clock.offset(comm) + away) < 0.5, f"{clock.offset}")


def test_calls_through_node_memory_stay_right(comm):
    """Ranks of a node meet in recorded calls too."""
    groups = pair(comm, 2)
    recv = np.empty(len(groups.there), "i8")
    right = True
    with isthmus.recording(inter := groups.ours):
        for turn in range(20):
            sent = np.array([comm.rank + 10 * turn])
            inter.Allgather(sent, recv, algorithm="node_aware")
            right &= recv.tolist() == [x + 10 * turn for x in groups.there]
    inter.Allgather(np.array([comm.rank]), recv, algorithm="node_aware")
    agree(comm, right and recv.tolist() == list(groups.there))
    groups.free()
