"""The alpha-beta model: closed forms, theorems and their limits."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus
from isthmus.algorithms.parts.patterns import STARTUP_ELEMENTS
from isthmus.cost.alphabeta import AlphaBeta
from isthmus.schedules import registry

INTER = [a for a in registry.algorithms("inter_allgather") if not a.node_memory]
STAGES = ["ring", "bruck", "recursive_doubling"]
DIVISIBLE = [(1, 1), (2, 1), (4, 1), (4, 4), (8, 2), (2, 8), (16, 4), (8, 8)]
MODEL = AlphaBeta(alpha=2e-6, beta=1e-9)


def cases(entry):
    stages = [f"+{stage}" for stage in STAGES] if entry.staged else [""]
    return [(p, q, stage) for p, q in DIVISIBLE for stage in stages]


@pytest.mark.parametrize("entry", INTER, ids=lambda e: e.name)
def test_the_closed_form_is_what_the_simulator_says(entry):
    k = 3360 * 8
    for p, q, stage in cases(entry):
        if entry.name == "leader" and p != q:
            continue
        if (entry.name + stage) == "merged+recursive_doubling" and (p + q) & (
            p + q - 1
        ):
            continue
        for ka, kb in ((k, k), (k, 4 * k), (4 * k, k)):
            if entry.name == "merged" and ka != kb:
                continue
            made = isthmus.schedule(
                "inter_allgather", entry.name + stage, p=p, q=q, ka=ka, kb=kb
            )
            time = made.simulate(MODEL).time
            within = registry.find("allgatherv", stage[1:] or "bruck").cost
            told = entry.given(
                startup=STARTUP_ELEMENTS
            )  # as the schedule takes it by itself
            claimed = told.cost(p, q, ka, kb, MODEL.alpha, MODEL.beta, within)
            if entry.name == "root_gathering":  # parts of a broadcast are rounded
                assert time == pytest.approx(claimed, rel=1e-3)
                continue
            if entry.name == "moving_entry":  # a round may begin before all end one
                assert 0.7 * claimed < time <= claimed * (1 + 1e-12)
                continue
            if entry.name == "pipelined" and p != q:
                assert 0.9 * claimed < time <= claimed * (1 + 1e-12)
                continue
            assert time == pytest.approx(claimed, rel=1e-12), (p, q, ka, kb, stage)


INTRA = [
    a
    for a in registry.algorithms("allgatherv")
    if a.name != "library" and not a.node_memory
]


@pytest.mark.parametrize("entry", INTRA, ids=lambda e: e.name)
@pytest.mark.parametrize("p", [1, 2, 3, 4, 6, 8, 13, 16, 32])
def test_the_closed_form_inside_a_group(entry, p):
    if not entry.needs(p):
        pytest.skip(f"does not work for a group of {p}")
    made = isthmus.schedule("allgatherv", entry.name, counts=[1000] * p)
    claimed = entry.cost(p, 1000, MODEL.alpha, MODEL.beta)
    assert made.simulate(MODEL).time == pytest.approx(claimed, rel=1e-12)


def test_a_timeline_says_who_did_what():
    made = isthmus.schedule("allgatherv", "ring", counts=[10, 20, 30])
    line = made.simulate(AlphaBeta(1.0, 0.1), record=True)
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
