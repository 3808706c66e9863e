"""The tuning file, fitting, and choices by tuning."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from isthmus.bench import predictions
from isthmus.bench.job import Contender
from isthmus.bench.outcome import Outcome, Result
from isthmus.bench.tune import TuningResult
from isthmus.choose.choice import LIBRARY_NAME, SHORT_BYTES, choice
from isthmus.choose.tuning import (
    BUILT_IN,
    NETWORK,
    Origin,
    Tuning,
    place,
    read,
    wanted,
    written,
)
from isthmus.collectives import records as collectives
from isthmus.collectives.placement import Placement
from isthmus.cost import machines
from isthmus.cost.machine import AlphaBeta, Level, LibraryCalls, Machine
from isthmus.cost.placement import on_nodes, placed
from isthmus.predict import predict
from isthmus.predict.case import Case
from measured import measured

ORIGIN = Origin('A "B" 1.0', "host", "2026-01-01", "0.1.0", 8, 4)
HERE = replace(ORIGIN, nodes=1)
CALLS = LibraryCalls(1.5, 32768)
INSIDE = Level(2, 1e-6, 1e-10, gap=2e-7, together=2e-11)
BETWEEN = Level(None, 2e-5, 1e-8, gap=1e-6, together=1e-10, changing=1.25)
NEAR = Machine((replace(INSIDE, size=None),), library=CALLS)
FAR = Machine((BETWEEN,), library=CALLS)
BOTH = Machine((INSIDE, BETWEEN), library=CALLS)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "x.toml"


@pytest.mark.parametrize(
    "tuning",
    [
        Tuning(HERE, NEAR),
        Tuning(ORIGIN, FAR),
        Tuning(ORIGIN, BOTH, {"a.b": (1e-5, 1e-9), 'c"': (1e-4, 2e-8)}),
    ],
)
def test_what_is_written_is_read(tuning, path):
    path.write_text(written(tuning))
    assert read(path) == tuning
    # and it is a machine as others are
    assert machines.load(path) == tuning.machine


TEXT = written(Tuning(ORIGIN, BOTH, {"slow": (1e-5, 1e-9)}))


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ('latency = "1 us"', "", "level 1: latency: missing"),
        ('latency = "1 us"', "latency = 1", "level 1: latency: 1 is not a number with"),
        ('"100 MB/s"', '"0 MB/s"', "level 2: bandwidth: '0 MB/s' is not above zero"),
        ("changing = 1.25", "changing = 0.5", "level 2: changing: 0.5 is less than 1"),
        ("changing = 1.25", "changing = nan", "level 2: changing: nan is not a number"),
        (
            "slowdown = 1.5",
            "slowdown = 0",
            "library: slowdown: 0 is not a number",
        ),
        ("piece = 32768", "piece = 4.5", "library: piece: 4.5 is not a whole number"),
        ("[library]", "[librarian]", "librarian: unknown key"),
        ("processes = 8", "processes = 0", "measured: processes: 0 is not a whole"),
        ('["10 us", "1000 MB/s"]', "1e-05", 'hosts: slow: must be ["seconds to start'),
        ('["10 us", "1000 MB/s"]', '["1 s", "0 B/s"]', "hosts: slow: '0 B/s' is not"),
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


def test_a_file_must_be_there_and_say_something(path):
    path.write_text(written(Tuning(ORIGIN, FAR)).split("[[level]]")[0])
    with pytest.raises(ValueError, match="latency: missing"):
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
    spread, together = (0, 0, 2, 3), (0, 0, 0)
    assert Tuning(HERE, NEAR).on(together) == NEAR
    assert Tuning(HERE, NEAR).on(spread) is None
    assert Tuning(ORIGIN, FAR).on(together) is None
    assert Tuning(ORIGIN, FAR).on(spread) == on_nodes(FAR, spread)
    inside = Tuning(ORIGIN, BOTH).on(together)
    assert inside == replace(NEAR, library=LibraryCalls(1.0, 32768))
    between = Tuning(ORIGIN, BOTH).on((5, 5, 5, 7))  # more a node than measured
    assert between.sharing == 3 and between.levels[-1] == BETWEEN
    assert between.placement == (0, 0, 0, 1)


def test_a_simulation_takes_the_machine_of_the_tuning():
    ring = collectives.schedule("allgatherv", "ring", counts=[1000] * 8)
    crowded = replace(INSIDE, size=None, together=1e-10)  # eight at once
    seconds = ring.simulate(Machine((crowded,), library=CALLS)).time
    assert seconds == pytest.approx(ring.simulate(AlphaBeta(1e-6, 8e-10)).time)
    # two processes on each of four nodes: a ring crosses each link once a round
    assert ring.simulate(BOTH).time == pytest.approx(7 * (2e-5 + 1000 * 1e-8))


def test_bytes_whose_partners_change_take_longer():
    """Of few rounds, not of a ring, and not of the first messages."""
    counts = [1000] * 8
    for name, rounds in (("ring", [1000] * 7), ("recursive_doubling", [1, 2.5, 5])):
        schedule = collectives.schedule("allgatherv", name, counts=counts)
        longest = sum(rounds) if name == "ring" else 1000 * sum(rounds)
        seconds = schedule.simulate(FAR).time
        assert seconds == pytest.approx(len(rounds) * 2e-5 + longest * 1e-8)


def test_choices_follow_the_machine():
    record = collectives.COLLECTIVES["inter_allgather"]
    many = {"p": 8, "q": 8, "ka": 1 << 20, "kb": 1 << 20}
    assert choice(record, many, BUILT_IN).name == "direct"
    crowded = measured(1e-6, 1e-9, sharing=4)  # everything leaves through one port
    assert choice(record, many, crowded).name == "segmented"
    slow = measured(1e-6, 1e-9, gap=1e-5)
    sizes = {"p": 8, "q": 8, "ka": 64, "kb": 64}
    assert choice(record, sizes, slow).name == "segmented"
    rounds = [
        len(record.schedule("segmented", sizes, Placement(ring_bytes=n)).rank(0))
        for n in (1, 1 << 30)
    ]
    assert rounds == [1 + 7, 1 + 3]
    lame = measured(1e-6, 1e-9, slowdown=2.0)
    inside = collectives.COLLECTIVES["allgatherv"]
    assert choice(inside, {"p": 8, "k": 64}, lame).name == LIBRARY_NAME
    best = choice(inside, {"p": 8, "k": SHORT_BYTES}, lame)
    assert best.name in ("circulant", "recursive_doubling")  # equals


def test_a_prediction_names_what_the_machine_chooses():
    case = Case("inter_allgather", (8, 8), (1 << 20, 1 << 20))
    model = measured(1e-6, 1e-10, gap=1.0)
    assert predict.default(case, model) == "segmented"
    assert predict.default(case, AlphaBeta(1e-6, 1e-10)) == "direct"
    inside = Case("allgatherv", (8,), (SHORT_BYTES // 8,))
    below = replace(inside, each=(inside.each[0] - 1,))
    assert predict.default(below, model) == "library"
    assert predict.default(inside, measured(1e-6, 1e-10, slowdown=2.0)) != "library"


def test_a_prediction_chooses_as_a_communicator_on_as_many_nodes_does(path):
    """On a network, a prediction counted partners that change no more than others."""
    path.write_text(written(Tuning(ORIGIN, BOTH)))
    nodes = [r // 2 for r in range(8)]  # as the measuring ranks
    on_communicator = read(path).on(nodes)
    model = machines.load(path)
    for machine in (on_communicator, model):
        assert machine.sharing == 2 and machine.changing == NETWORK.changing
    case = Case("inter_allgather", (8, 8), (1 << 20, 1 << 20))
    asked = case.record, case.sizes, on_communicator
    assert predict.default(case, model) == choice(*asked).name


def test_a_measured_machine_takes_a_placement():
    """Placements were left out on tuned machines."""
    crossed, near = (
        collectives.schedule("allgatherv", "ring", counts=[1000] * 4, nodes=nodes)
        for nodes in ((0, 1, 0, 1), (0, 0, 1, 1))
    )
    seconds = [placed(BOTH, x).simulate(x).time for x in (crossed, near)]
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
    machine = measured(1e-5, 1e-9, gap=1e-5, slowdown=100.0)
    outcomes = []
    for job in predictions.tuning_jobs(8, machine, 0.1):
        for case in job.cases:
            times = {
                c.name: predictions.predicted(case, c.name, machine)
                or 1e-4 + sum(case.a) * 1e-8
                for c in job.contenders
            }
            outcomes.append(outcome(case, **times))
    return TuningResult(Tuning(HERE, machine), tuple(outcomes))


def test_predictions_of_a_machine_like_the_model(tuning_result):
    rows = predictions.rows(tuning_result.tuning, tuning_result.outcomes)
    assert all(r.predicted == pytest.approx(r.measured) for r in rows if r.predicted)
    assert [r.predicted is None for r in rows] == [
        r.algorithm == "native" for r in rows
    ]
    taken = predictions.auto_choices(tuning_result.tuning, tuning_result.outcomes)
    assert len(taken) == len(tuning_result.outcomes)
    long = [x for x in taken if 8 * x.size >= SHORT_BYTES]
    inside = [auto.loss for auto in long if "inside" in auto.kind]
    assert max(inside) < 1.001


def test_the_command_says_what_changed(tuning_result, tmp_path):
    pytest.importorskip("typer")
    rich = pytest.importorskip("rich.console")
    from isthmus.cli import tune

    path = tmp_path / "t.toml"
    said = []
    for alpha in (1e-5, 7e-5):
        tuning = Tuning(HERE, measured(alpha, 1e-9))
        now = replace(tuning_result, tuning=tuning)
        console = rich.Console(width=200, file=StringIO())
        tune._write(console, now, path)
        tune._print(console, now)
        said.append([line.split() for line in console.file.getvalue().split("\n")])
    assert read(path).machine.alpha == 7e-5
    first, second = (next(x for x in lines if "alpha" in x) for lines in said)
    assert first[1:4] == ["10", "µs", "–"] and second[1:5] == ["70", "µs", "10", "µs"]
    assert ["wrote", str(path)] in said[0] and ["changed", str(path)] in said[1]
    assert ["allgatherv", "inside", "8,", "spike"] in said[0]
