"""The alpha-beta model: closed forms, theorems and their limits."""

from __future__ import annotations

import numpy as np

import isthmus
from isthmus.cost.machine import AlphaBeta


def test_a_timeline_says_who_did_what():
    ring = isthmus.schedule("allgatherv", "ring", counts=[10, 20, 30])
    line = ring.simulate(AlphaBeta(1.0, 0.1), record=True)
    assert line.sent.tolist() == [40, 30, 50]
    assert line.received.tolist() == [50, 40, 30]
    assert line.messages.tolist() == [2, 2, 2]
    assert line.rounds == 2 and len(line.events) == 6
    assert 0 < line.idle < 1
    path = line.critical_path()
    ends = [float(line.events.end[i]) for i in path]
    assert ends == sorted(ends) and ends[-1] == line.time
    assert float(line.events.start[path[0]]) == 0.0
    assert np.all(line.events.end > line.events.start)
