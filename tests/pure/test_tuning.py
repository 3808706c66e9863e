"""The tuning file, fitting, and choices by tuning."""

from __future__ import annotations

from dataclasses import fields, replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from isthmus.bench import crossovers
from isthmus.bench.job import Contender
from isthmus.bench.outcome import Outcome, Result
from isthmus.bench.tune import TuningResult
from isthmus.choose import choose, fit
from isthmus.choose.choice import choice
from isthmus.choose.choose import inter_allgatherv
from isthmus.choose.estimate import MessageCosts
from isthmus.choose.fit import Samples
from isthmus.choose.tuning import (
    FIELDS,
    OTHER_FIELDS,
    Origin,
    Tuning,
    is_tuning,
    place,
    read,
    wanted,
    written,
)
from isthmus.collectives import records as collectives
from isthmus.collectives.placement import Placement
from isthmus.cost.machine import AlphaBeta
from isthmus.cost.placement import placed
from isthmus.predict import predict
from isthmus.predict.case import Case
from isthmus.predict.tuned import tuned

ORIGIN = Origin('A "B" 1.0', "host", "2026-01-01", "0.1.0", 8, 4)
NEAR = MessageCosts(1e-6, 1e-10, 2e-11, 32768, 1.5, 1, 2e-7, 4096, 8192)
FAR = MessageCosts(2e-5, 1e-8, 1e-10)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "x.toml"


def test_every_field_is_in_the_file():
    assert {f.name for f in fields(MessageCosts)} == {*FIELDS, *OTHER_FIELDS}


@pytest.mark.parametrize(
    "tuning",
    [
        Tuning(ORIGIN, NEAR),
        Tuning(ORIGIN, between=FAR),
        Tuning(ORIGIN, NEAR, FAR, {"a.b": (1e-5, 1e-9), 'c"': (1e-4, 2e-8)}),
    ],
)
def test_what_is_written_is_read(tuning, path):
    path.write_text(written(tuning))
    assert read(path) == tuning
    assert is_tuning(path)


def test_a_machine_file_is_no_tuning(path):
    path.write_text('latency = "1 us"\nbandwidth = "1 GB/s"\n')
    assert not is_tuning(path)
    assert not is_tuning("cori-like")


TEXT = written(Tuning(ORIGIN, NEAR, FAR, {"slow": (1e-5, 1e-9)}))


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("alpha = 1e-06", "", "inside: alpha: missing"),
        ("alpha = 1e-06", 'alpha = "1 us"', "inside: alpha: '1 us' is not a number"),
        ("alpha = 1e-06", "alpha = -1.0", "inside: alpha: -1.0 is negative"),
        ("alpha = 1e-06", "alpha = nan", "inside: alpha: nan is not a number"),
        ("beta = 1e-08", "beta = 0", "between: beta: must be above zero"),
        ("small = 4096", "small = 4.5", "inside: small: 4.5 is not a whole number"),
        ("[inside]", "[insider]", "insider: unknown key"),
        ("gamma = 1e-10", "delta = 1", "between: delta: unknown key"),
        ("processes = 8", "processes = 0", "measured: processes: must be above zero"),
        ("[1e-05, 1e-09]", "1e-05", "hosts: slow: must be [seconds to start"),
        ("[1e-05, 1e-09]", "[1e-05, -1]", "hosts: slow: -1 is negative"),
        ("[measured]", "[measured", "not a TOML file"),
        ("[measured]", "[[measured]]", "measured: must be a [table]"),
    ],
)
def test_what_is_wrong_is_one_line(path, old, new, wrong):
    assert old in TEXT
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(ValueError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: ")
    assert wrong in str(error.value) and "\n" not in str(error.value)


def test_a_file_must_say_something(path):
    path.write_text(written(Tuning(ORIGIN)))
    with pytest.raises(ValueError, match=r"neither \[inside\] nor \[between\]"):
        read(path)
    with pytest.raises(ValueError, match="no such file"):
        read(path.with_name("y"))


def test_where_the_file_is(tmp_path):
    at = {"XDG_CONFIG_HOME": str(tmp_path), "HOME": "/nobody"}
    usual = place("Open MPI v5.0.11", "Node-7.example", at)
    assert usual == tmp_path / "isthmus" / "open-mpi-v5.0.11-node-7.example.toml"
    assert place("X", "y", {"HOME": "/h"}) == Path("/h/.config/isthmus/x-y.toml")
    assert wanted("Open MPI v5.0.11", "Node-7.example", at) is None
    usual.parent.mkdir()
    usual.touch()
    assert wanted("Open MPI v5.0.11", "Node-7.example", at) == usual
    for nothing in ("", "none"):
        other = at | {"ISTHMUS_TUNING": nothing}
        assert wanted("Open MPI v5.0.11", "Node-7.example", other) is None
    # one that is named is wanted even if it is not there: that is an error later
    assert wanted("X", "y", at | {"ISTHMUS_TUNING": "/z"}) == Path("/z")


def test_a_communicator_takes_what_fits_its_nodes():
    tuning = Tuning(ORIGIN, NEAR, FAR)
    assert tuning.machine(1) is NEAR and tuning.machine(3) is FAR
    assert Tuning(ORIGIN, NEAR).machine(2) is None
    assert Tuning(ORIGIN, NEAR).widest is NEAR


def test_samples_give_back_the_machine_they_come_from():
    p, alpha, beta, gamma, contention = 4, 3e-6, 1e-9, 5e-10, 4e-7
    contended = {n: alpha + gamma * p * n for n in (0, 100, 10**6)}
    alone = {n: alpha + beta * n for n in (0, 100, 10**6)}
    fan = {k: alpha + contention * (k - 1) for k in (1, 2)}
    fitted = fit.machine(Samples(p, contended, alone, fan), 99)
    expected = MessageCosts(alpha, beta, gamma, 99, message=contention)
    for f in fields(MessageCosts):
        assert getattr(fitted, f.name) == pytest.approx(getattr(expected, f.name))


def test_messages_that_seem_to_take_no_time_give_a_machine_all_the_same():
    fitted = fit.machine(Samples(2, {1: 2e-6, 9: 1e-6}, {1: 2e-6, 9: 1e-6}, {1: 1e-6}))
    assert fitted.beta > 0 and fitted.startup_bytes > 0


def test_lines_cross_where_they_do():
    sizes = [4**k for k in range(3, 11)]
    few = [1e-5 + 3e-9 * n for n in sizes]
    many = [4e-5 + 1e-9 * n for n in sizes]
    assert fit.crossover(sizes, few, many) == pytest.approx(15000, rel=0.15)
    odd = [*many]
    odd[0] = few[0] * 0.99  # one odd time does not move it far
    assert fit.crossover(sizes, few, odd) == fit.crossover(sizes, few, many)
    assert fit.crossover(sizes, few, [2 * x for x in few]) == 2 * sizes[-1]
    assert fit.crossover(sizes, few, [x / 2 for x in few]) == sizes[0]


def test_the_librarys_factor_is_that_of_long_blocks():
    machine = MessageCosts(1e-6, 1e-9)
    from isthmus.choose.estimate import library

    times = {n: 3 * library(np.full(5, n), machine) for n in (10**5, 10**6)}
    times |= {8: 1.0, 64: 1.0}
    assert fit.library_factor(5, times, machine) == pytest.approx(3)


def test_a_simulation_takes_the_machine_of_the_tuning():
    ring = collectives.schedule("allgatherv", "ring", counts=[1000] * 8)
    origin = replace(ORIGIN, nodes=1)
    slow = replace(NEAR, gamma=1e-10)  # eight at once: 8e-10 a byte, not 1e-10
    seconds = ring.simulate(tuned(Tuning(origin, slow))).time
    assert seconds == pytest.approx(ring.simulate(AlphaBeta(1e-6, 8e-10)).time)
    # two processes on each of four nodes: a ring crosses each link once a round
    seconds = ring.simulate(tuned(Tuning(ORIGIN, NEAR, FAR))).time
    assert seconds == pytest.approx(7 * (2e-5 + 1000 * 1e-8))


def test_choices_follow_the_machine():
    many = 8, 8, 8 << 20, 8 << 20, 1 << 20, False
    assert inter_allgatherv(*many) == "direct"
    crowded = MessageCosts(
        1e-6, 1e-9, sharing=4
    )  # everything leaves through one way out
    assert inter_allgatherv(*many, crowded) == "segmented"
    slow = MessageCosts(1e-6, 1e-9, message=1e-5)
    assert inter_allgatherv(8, 8, 512, 512, 64, False, slow) == "segmented"
    record = collectives.COLLECTIVES["inter_allgather"]
    sizes = {"p": 8, "q": 8, "ka": 64, "kb": 64}
    rounds = [
        len(record.schedule("segmented", sizes, Placement(ring_bytes=n)).rank(0))
        for n in (1, 1 << 30)
    ]
    assert rounds == [1 + 7, 1 + 3]
    lame = replace(slow, library=2.0)
    assert choose.allgatherv(np.full(8, 64), lambda: lame).name == "library"
    choice = choose.allgatherv(np.full(8, 64), lambda: lame, small=512)
    assert choice.name in ("circulant", "recursive_doubling")  # equals


def test_a_prediction_names_what_the_tuning_chooses():
    case = Case("inter_allgather", (8, 8), (1 << 20, 1 << 20))
    model = tuned(Tuning(ORIGIN, replace(NEAR, message=1.0, ring=1 << 30)))
    assert predict.default(case, model) == "segmented"
    assert predict.default(case, AlphaBeta(1e-6, 1e-10)) == "direct"
    inside = Case("allgatherv", (8,), (512,))
    below = replace(inside, each=(511,))  # 4088 bytes: less than `small`
    assert predict.default(inside, model) != "library"
    assert predict.default(below, model) == "library"


def test_a_prediction_chooses_as_a_communicator_on_as_many_nodes_does(path):
    """On a network, a prediction counted partners that change no more than others."""
    path.write_text(written(Tuning(ORIGIN, NEAR, FAR)))
    tuning = read(path)
    nodes = [r // 2 for r in range(8)]  # as the measuring ranks
    on_communicator = tuning.machine(4).on(nodes)
    assert tuning.widest == tuned(tuning).costs == on_communicator
    assert on_communicator.sharing == 2 and on_communicator.changing > 1
    case = Case("inter_allgather", (8, 8), (1 << 20, 1 << 20))
    asked = case.record, case.sizes, on_communicator
    assert predict.default(case, tuned(tuning)) == choice(*asked).name


def test_a_tuned_machine_takes_a_placement():
    """Placements were left out on tuned machines."""
    model = tuned(Tuning(ORIGIN, NEAR, FAR))
    crossed, near = (
        collectives.schedule("allgatherv", "ring", counts=[1000] * 4, nodes=nodes)
        for nodes in ((0, 1, 0, 1), (0, 0, 1, 1))
    )
    seconds = [placed(model, x).simulate(x).time for x in (crossed, near)]
    assert seconds[0] > seconds[1]


def outcome(case, **times) -> Outcome:
    results = [
        Result(Contender(name.replace("_and_", "+")), ((t,),))
        for name, t in times.items()
    ]
    return Outcome(case, (1,), tuple(results))


@pytest.fixture(scope="module")
def tuning_result() -> TuningResult:
    """The result of tuning on a machine exactly like the model."""
    machine = MessageCosts(1e-5, 1e-9, message=1e-5)
    origin = replace(ORIGIN, nodes=1)
    tuning = Tuning(origin, machine)
    model = tuned(tuning)
    outcomes = []
    for job in crossovers.tuning_jobs(8, machine, 0.1):
        for case in job.cases:
            times = {
                c.name: crossovers.predicted(case, c.name, model)
                or 1e-4 + sum(case.a) * 1e-8
                for c in job.contenders
            }
            outcomes.append(outcome(case, **times))
    return TuningResult(crossovers.conclude(tuning, outcomes), tuple(outcomes))


def test_conclusions_from_a_machine_like_the_model(tuning_result):
    machine = tuning_result.tuning.inside
    assert machine.alpha == 1e-5
    # few rounds are never slower there
    assert machine.ring == 2 * max(crossovers.sizes(8, machine))
    # the library takes 1e-4 more: ours is faster from the first size on
    assert machine.small == 8 * crossovers.MIN_BLOCK_BYTES
    rows = crossovers.rows(tuning_result.tuning, tuning_result.outcomes)
    assert all(r.predicted == pytest.approx(r.measured) for r in rows if r.predicted)
    assert [r.predicted is None for r in rows] == [
        r.algorithm == "native" for r in rows
    ]
    taken = crossovers.auto_choices(tuning_result.tuning, tuning_result.outcomes)
    assert len(taken) == len(tuning_result.outcomes)
    inside = [auto.loss for auto in taken if "inside" in auto.kind]
    assert max(inside) < 1.001


def test_the_command_says_what_changed(tuning_result, tmp_path):
    pytest.importorskip("typer")
    rich = pytest.importorskip("rich.console")
    from isthmus.cli import tune

    path = tmp_path / "t.toml"
    said = []
    for alpha in (1e-5, 7e-5):
        machine = replace(tuning_result.tuning.inside, alpha=alpha)
        now = replace(
            tuning_result, tuning=replace(tuning_result.tuning, inside=machine)
        )
        console = rich.Console(width=200, file=StringIO())
        tune._write(console, now, path)
        tune._print(console, now)
        said.append([line.split() for line in console.file.getvalue().split("\n")])
    assert read(path).inside.alpha == 7e-5
    first, second = (next(x for x in lines if "alpha" in x) for lines in said)
    assert first[1:4] == ["10", "µs", "–"] and second[1:5] == ["70", "µs", "10", "µs"]
    assert ["wrote", str(path)] in said[0] and ["changed", str(path)] in said[1]
    assert ["allgatherv", "inside", "8,", "spike"] in said[0]
