"""Lower bounds by linear programs: right in known cases, and below every algorithm."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("scipy")

import isthmus
from isthmus.bound import distances
from isthmus.bound.demands import Problem, has_bound, problem
from isthmus.bound.steps import LeastSteps, hearing, startups, whole
from isthmus.bound.transfer import transfer
from isthmus.cli import main
from isthmus.cli.examples import EXAMPLES
from isthmus.collectives.records import COLLECTIVES
from isthmus.cost.machine import AlphaBeta

GIANT = {"a": [4, 0, 0], "b": [1, 1, 1]}
COUNTS = st.lists(st.integers(0, 3), min_size=1, max_size=3)


def carried_out(
    asked: Problem, solution: LeastSteps, ports: int, any_length: bool
) -> None:
    """Run a schedule: senders must have the data, ports hold, all targets are
    served."""
    has = [{d} for d in (x.source for x in solution.demands)]
    for step in range(solution.steps):
        now = [m for m in solution.moves if m.step == step]
        assert all(m.source in has[m.demand] for m in now)
        pairs = [(m.source, m.target) for m in now]
        messages = set(pairs) if any_length else pairs
        for end in (0, 1):
            for rank in range(asked.n):
                assert sum(pair[end] == rank for pair in messages) <= ports
        for m in now:
            has[m.demand].add(m.target)
    for d, x in zip(has, solution.demands, strict=True):
        assert {*x.targets} <= d


@pytest.mark.parametrize(
    ("collective", "sizes", "least"),
    [
        ("inter_allgather", {"p": 3, "q": 3, "ka": 1, "kb": 1}, 3),
        ("inter_allgatherv", GIANT, 4),
        ("inter_allgatherv", {"a": [4, 0], "b": [0, 4]}, 4),
        ("inter_reduce_scatter", {"a": [6, 0, 0], "b": [2, 2, 2]}, 6),
        ("inter_bcast", {"q": 5, "m": 4}, 4),
        ("bcast", {"p": 4, "m": 3, "root": 2}, 3),
        ("allgatherv", {"counts": [3, 1, 2]}, 5),
        ("inter_alltoallv", {"ab": [[1, 5]], "ba": [[2], [1]]}, 6),
        ("gatherv", {"counts": [3, 1, 2], "root": 1}, 5),
    ],
)
def test_transfer_where_it_is_known(collective, sizes, least):
    asked = problem(collective, **sizes)
    assert transfer(asked) == pytest.approx(least)
    assert transfer(asked) >= asked.port - 1e-9


def test_more_than_a_port_may_be_needed():
    """Two receivers of all data need a relay, which the load of a port does not
    show."""
    asked = problem("inter_allgatherv", a=[3, 3], b=[6, 0])
    assert asked.port == 6 and transfer(asked) == pytest.approx(6)
    # both groups full, and the sender's own group can only be served by one rank
    tight = problem("inter_allgatherv", a=[6], b=[6, 0])
    assert transfer(tight) >= 6 - 1e-9


def test_ports_to_different_processes():
    asked = problem("inter_bcast", q=5, m=4)
    assert transfer(asked, 2) == pytest.approx(2)
    # one receiver takes all from one sender: a second port is of no use
    assert transfer(problem("inter_bcast", q=1, m=4), 2) == pytest.approx(4)


@pytest.mark.parametrize(
    ("collective", "sizes", "ports", "steps"),
    [
        ("inter_bcast", {"q": 5, "m": 4}, 1, 3),
        ("inter_bcast", {"q": 5, "m": 4}, 2, 2),
        ("inter_allgatherv", GIANT, 1, 3),
        ("bcast", {"p": 8, "m": 1, "root": 3}, 1, 3),
        ("inter_alltoall", {"p": 2, "q": 2, "ka": 1, "kb": 1}, 1, 2),
    ],
)
def test_start_ups_where_they_are_known(collective, sizes, ports, steps):
    asked = problem(collective, **sizes)
    fewest = startups(asked, ports, 30)
    assert (fewest.steps, fewest.exact) == (steps, True)
    if fewest.moves is not None:
        carried_out(asked, fewest, ports, any_length=True)


@pytest.mark.parametrize(
    ("collective", "sizes", "steps"),
    [
        # three parts to five leaves: 3 - 1 + log2 6 rounds, as Träff's schedules take
        ("inter_bcast", {"q": 5, "m": 3}, 5),
        ("inter_allgatherv", GIANT, 5),
        ("inter_allgather", {"p": 3, "q": 3, "ka": 1, "kb": 1}, 3),
    ],
)
def test_whole_elements(collective, sizes, steps):
    asked = problem(collective, **sizes)
    fewest = whole(asked, transfer(asked), 1, 30)
    assert (fewest.steps, fewest.exact) == (steps, True)
    carried_out(asked, fewest, 1, any_length=False)


@settings(max_examples=6, deadline=None)
@given(COUNTS, COUNTS)
def test_no_algorithm_is_below_the_bounds(a, b):
    sizes = {"a": a, "b": b}
    known = list(distances.rows("inter_allgatherv", sizes))
    assert len(known) > 10
    asked = problem("inter_allgatherv", **sizes)
    least = transfer(asked)
    assert least >= max(sum(a), sum(b)) - 1e-6
    for row in known:
        assert row.transfer >= least - 1e-6 and row.whole >= least - 1e-6
        assert row.startups >= hearing(asked)


def test_an_answer_is_no_more_than_what_an_algorithm_takes():
    known = list(distances.rows("inter_bcast", {"q": 5, "m": 3}))
    limits = distances.bounds("inter_bcast", {"q": 5, "m": 3}, known, seconds=20)
    assert limits.startups.steps == min(row.startups for row in known) == 3
    assert limits.whole.steps <= min(row.whole for row in known)


def test_too_little_time_is_said():
    asked = problem("inter_allgather", p=5, q=5, ka=1, kb=1)
    fewest = startups(asked, 1, 0.2)
    assert (fewest.steps, fewest.exact, fewest.moves) == (3, False, None)


@pytest.mark.parametrize(
    "collective", [name for name, x in COLLECTIVES.items() if has_bound(x)]
)
def test_every_example_has_a_problem(collective):
    sizes = COLLECTIVES[collective].example
    asked = problem(collective, **sizes)
    schedule = isthmus.schedule(
        collective, next(distances.rows(collective, sizes)).name, **sizes
    )
    assert asked.n == schedule.n
    assert schedule.simulate(AlphaBeta(0.0, 1.0)).time >= asked.port


@pytest.mark.parametrize("line", EXAMPLES["bound"])
def test_the_examples_of_the_help(line, capsys):
    with pytest.raises(SystemExit) as end:
        main([*shlex.split(line)[1:], "--seconds", "0.5"])
    out = capsys.readouterr().out
    assert end.value.code == 0 and "bound: transfer" in out and "×" in out


def test_json_and_errors(capsys):
    with pytest.raises(SystemExit):
        main(["bound", "bcast", "--groups", "1,2", "--bytes", "2", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["transfer"] == 2 and answer["startups"]["steps"] == 2
    for words, said in (
        ("barrier --groups 2,2", "barrier between two groups has no bound here"),
        ("nothing", "no collective"),
        ("bcast --groups 1,40", "12 at the most"),
        ("bcast --groups 1,3 --nodes 0,0", "share no node"),
        ("bcast --groups 1,3 --ka 3", "takes"),
    ):
        with pytest.raises(SystemExit) as end:
            main(["bound", *words.split()])
        assert end.value.code == 2 and said in capsys.readouterr().err


def test_older_names_of_a_collective_and_its_sizes(capsys):
    answers = []
    for words in ("inter_bcast --q 2 --m 2", "bcast --groups 1,2 --bytes 2"):
        with pytest.raises(SystemExit) as end:
            main(["bound", *words.split(), "--json"])
        said = capsys.readouterr()
        assert end.value.code == 0
        answers.append((json.loads(said.out), said.err))
    (old, notes), (new, nothing) = answers
    assert old["transfer"] == new["transfer"] == 2
    assert "inter_bcast is now bcast" in notes and not nothing
