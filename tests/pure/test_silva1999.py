"""The figures and claims of the report on Silva and Silva 1999."""

from __future__ import annotations

import pytest

from isthmus import schedule
from isthmus.cost.machine import AlphaBeta
from isthmus.facade import UserSchedule
from isthmus.reproduce import silva1999 as silva, silva1999_report as report
from isthmus.reproduce.silva1999 import (
    GROUP_SIZES,
    VECTOR_BYTES,
    ProcessTimes,
    jobs,
    patterns,
)
from isthmus.reproduce.silva1999_figures import pattern_figure
from isthmus.schedules.ir import Recv, Send
from isthmus.schedules.registry import find

STEP = AlphaBeta(1.0, 0.0)


def test_the_patterns_have_the_papers_processes_and_steps():
    pattern_of = {x.name: x for x in patterns()}
    sizes = {name: len(x.seats) + len(x.passive) for name, x in pattern_of.items()}
    assert sizes == {"figure1": 12, "figure2": 26, "figure3": 8}
    assert pattern_of["figure1"].passive == ((0, 0), (0, 2))
    assert pattern_of["figure2"].seats[0] == (0, 4)
    # a tree of 9 leaves, or of 16, and one message across; counts, sums, scatters
    steps = {name: x.schedule.simulate(STEP).time for name, x in pattern_of.items()}
    assert steps == {"figure1": 5, "figure2": 5, "figure3": 1 + 2 + 4}
    for pattern in pattern_of.values():
        UserSchedule.of(pattern.schedule).verify()
        assert pattern_figure(pattern).axes


@pytest.mark.parametrize(("p", "q"), [(4, 4), (1, 3), (5, 2)])
def test_leaders_swap_counts_while_the_others_begin_the_sum(p, q):
    a, b = [60 // p] * p, [60 // q] * q
    example = schedule("inter_reduce_scatter", "leader", a=a, b=b)
    example.verify()
    for own, other in ((0, p), (p, 0)):
        first = example.rank(own)[0].comm
        assert first[:2] == (Recv(other, ()), Send(other, ()))
    if p == q == 4:  # one of those below the leader sends in the same step
        (message,) = example.rank(3)[0].comm
        assert isinstance(message, Send)
        assert message.to == 2


def test_the_swap_costs_the_leaders_one_start_up():
    alpha, beta, each = 7.0, 1.0, [15] * 4
    sizes = {"p": 4, "q": 4, "ka": 15, "kb": 15}
    model = AlphaBeta(alpha, beta)
    with_swap = schedule("inter_reduce_scatter", "leader", a=each, b=each).simulate(
        model
    )
    known = schedule("inter_reduce_scatter_block", "leader", **sizes).simulate(model)
    assert with_swap.time == known.time + alpha
    cost = find("inter_reduce_scatter", "leader").cost
    assert with_swap.time == cost(4, 4, 60, alpha, beta)


def test_the_leaders_are_the_last_as_in_table_1():
    seconds = silva.simulated()[1].seconds
    assert max(seconds) == seconds[0] == seconds[4]
    assert max(silva.TABLE1_MICROSECONDS) == silva.TABLE1_MICROSECONDS[4]


def test_the_papers_comparison_comes_out():
    """The mean time between groups over the mean time inside a group: 0.80 in the
    paper."""
    inside, between = silva.simulated()
    paper = (
        sum(silva.TABLE1_MICROSECONDS)
        / len(silva.TABLE1_MICROSECONDS)
        / silva.TABLE1_INSIDE_MICROSECONDS
    )
    assert paper == pytest.approx(0.796, abs=5e-4)
    assert between.mean / inside.mean == pytest.approx(paper, rel=0.01)
    assert 1e3 * inside.mean == pytest.approx(595.8, abs=0.1)
    assert 1e3 * between.mean == pytest.approx(472.5, abs=0.1)


def test_a_report_of_made_up_times(tmp_path):
    times = [
        ProcessTimes(way.operation, way.label, n, way.algorithm, (n * 1e-9,) * 8)
        for way, n in jobs()
    ]
    path = report.reproduce(tmp_path, "MPICH 5", "a lab", times)
    text = path.read_text()
    for operation in GROUP_SIZES:
        assert f"| {operation} | {VECTOR_BYTES[-1]} | `auto` |" in text
    assert "| between, Silva's | 2.1 | 2.1" in text
    assert "| the paper | 0.80 |" in text
    assert "| its algorithms, simulated | 0.79 |" in text
    assert {x.suffix for x in tmp_path.iterdir()} == {".md", ".png", ".svg", ".csv"}
