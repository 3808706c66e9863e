"""Predictions: every algorithm, in order, against the limit and the library's way."""

from __future__ import annotations

import json
import sys
import time
from itertools import count, product

import pytest

from isthmus.cli import main
from isthmus.cli.predict import predicted
from isthmus.cost.machine import AlphaBeta, Level, Machine, Memory
from isthmus.distributions import PAPER_DISTRIBUTIONS
from isthmus.predict.case import Case
from isthmus.predict.predict import (
    LIBRARY_ALGORITHM,
    candidates,
    default,
    limit,
    predict,
)
from isthmus.schedules.registry import algorithms
from sampling import some

MODEL = AlphaBeta(2e-6, 1 / 12e9)
#: a gigabit network between nodes of four, whose memory is much faster
NODES = Machine(
    (Level(4, 5e-7, 1 / 8e9), Level(None, 3e-5, 1 / 1.2e8)),
    memory=Memory(1 / 10e9, 1 / 100e9, 1e-6),
)


def case(p: int, q: int, k: int, collective: str = "inter_allgather") -> Case:
    return Case(collective, (p, q), (k, k))


@pytest.mark.parametrize("collective", ["inter_allgather", "inter_allgatherv"])
def test_every_algorithm_has_a_row_and_the_best_is_first(collective):
    prediction = predict(case(8, 4, 4096, collective), MODEL)
    names = {row.name.partition("+")[0] for row in prediction.rows}
    assert names == {e.name for e in algorithms(collective) if not e.node_memory}
    rows = prediction.rows
    times = [row.time for row in rows]
    assert times == sorted(times) and not any(row.formula for row in rows)
    library = next(r.time for r in rows if r.name == LIBRARY_ALGORITHM)
    assert prediction.library == library
    assert prediction.why.startswith(rows[0].name)


def test_the_limit_is_that_of_the_alpha_beta_model():
    uneven = Case("inter_allgather", (3, 5), (1000, 10))
    assert limit(uneven, MODEL).seconds == pytest.approx(2e-6 + 3000 / 12e9)
    inside = Case("allgatherv", (4,), (1000,))
    assert limit(inside, MODEL).seconds == pytest.approx(2e-6 + 3000 / 12e9)


def test_only_stages_that_work_are_tried():
    assert "merged+recursive_doubling" not in candidates(case(8, 4, 1), MODEL)
    assert "segmented+recursive_doubling" in candidates(case(8, 4, 1), MODEL)
    assert "segmented+recursive_doubling" not in candidates(case(7, 4, 1), MODEL)
    assert not any("library" in name for name in candidates(case(8, 4, 1), MODEL))


def test_formulas_stand_in_for_what_is_too_much():
    exact = {r.name: r for r in predict(case(8, 4, 26880), MODEL).rows}
    claimed = {r.name: r for r in predict(case(8, 4, 26880), MODEL, max_ends=0).rows}
    assert all(r.formula and r.messages is None for r in claimed.values())
    for name in ("direct", "segmented+bruck", "root_gathering", LIBRARY_ALGORITHM):
        assert claimed[name].time == pytest.approx(exact[name].time, rel=1e-9)


def test_the_heaviest_are_left_to_their_formula():
    weights = candidates(case(8, 4, 4096), MODEL)
    prediction = predict(case(8, 4, 4096), MODEL, max_ends=sum(weights.values()) - 1)
    assert [r.name for r in prediction.rows if r.formula] == [list(weights)[-1]]


def test_the_default_choice_is_among_the_rows():
    inside = [Case("allgatherv", (9,), (10**5,), kind) for kind in PAPER_DISTRIBUTIONS]
    for asked in (case(9, 3, 8), case(5, 4, 10**5), *some(inside, 2)):
        prediction = predict(asked, MODEL)
        assert (
            default(asked, MODEL)
            == prediction.chosen
            in [row.name for row in prediction.rows]
        )


def test_it_says_whether_startups_or_bytes_decide():
    assert "wins by its start-ups" in predict(case(8, 2, 8), MODEL).why
    assert "wins by its transfer" in predict(case(8, 2, 10**5), MODEL).why
    assert "no time" in predict(case(2, 2, 0), MODEL).why


@pytest.fixture
def cli(capsys, monkeypatch):
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "120")

    def run(line: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(line.split())
        return end.value.code, *capsys.readouterr()

    return run


def test_predict_prints_a_table(cli):
    status, out, err = cli("predict allgatherv --groups 9,3 --bytes 4")
    assert status == 0 and all("algorithms" in x for x in err.splitlines())
    assert "9 + 3 processes, 4 B each" in out and "wins by its" in out
    assert "* isthmus's choice" in out and "what MPI libraries do" in out


def test_predict_answers_alike_on_a_busy_computer(cli, monkeypatch):
    line = "predict allgatherv --groups 6,2 --bytes 1KiB"
    before = cli(line)
    clock = count(step=1000.0)
    clocks = [getattr(time, name) for name in ("perf_counter", "process_time", "time")]
    modules = [m for name, m in sys.modules.items() if name.startswith("isthmus")]
    for module in modules:
        for name, value in list(vars(module).items()):
            if any(value is x for x in clocks):
                monkeypatch.setattr(module, name, lambda: next(clock))
    assert cli(line)[:2] == before[:2]
    assert before[0] == 0 and "≈" not in before[1]


def test_predict_simulates_as_much_as_it_is_told(cli):
    status, out, _ = cli("predict allgather --groups 8,4 --most 0")
    assert status == 0 and "≈" in out


def test_predict_inside_one_group(cli):
    status, out, _ = cli("predict allgatherv --groups 16 --bytes 1KiB")
    assert status == 0 and "recursive_doubling" in out and "gain is" not in out.lower()


def test_predict_a_broadcast(cli):
    status, out, _ = cli("predict bcast --groups 32 --bytes 1MiB")
    assert status == 0 and "bcast, 32 processes, 1 MiB, on" in out
    assert "circulant wins" in out and "isthmus's choice is circulant" in out


@pytest.mark.parametrize(
    ("name", "best"),
    [("bcast", "circulant"), ("reduce", "circulant"), ("scatterv", "binomial")],
)
def test_predict_between_a_root_and_a_group(cli, name, best):
    status, out, _ = cli(f"predict {name} --groups 3,20 --bytes 1MiB")
    assert status == 0 and f"{name}, 1 + 20 processes, 1 MiB" in out
    assert f"{best} wins" in out


@pytest.mark.parametrize("kind", PAPER_DISTRIBUTIONS)
def test_the_choice_inside_a_group_is_close_to_the_best(kind):
    """On a network without shared ports, where the estimate should be good."""
    sizes = product((5, 16, 33), (2 * 10**4, 10**6))
    for p, k in some(sizes, 3, list(PAPER_DISTRIBUTIONS).index(kind)):
        prediction = predict(Case("allgatherv", (p,), (k,), kind), MODEL)
        times = {row.name: row.time for row in prediction.rows}
        assert times[prediction.chosen] <= 1.1 * prediction.rows[0].time, (p, k)


@pytest.mark.parametrize("name", predicted())
def test_predict_every_collective_on_nodes(cli, name):
    """Inside a group and between two; on nodes, on a single node, and by the closed
    forms of all algorithms but those that share memory."""
    forms = ["--bytes 600 --per-node 2", "--bytes 600 --per-node 16"]
    ways = product(["4", "4,3"], [*forms, "--per-node 2 --most 0"])
    for groups, form in some(ways, 4, predicted().index(name)):
        status, out, _ = cli(f"predict {name} --groups {groups} {form}")
        assert status == 0 and ("\nnode_aware " in out) == ("most" not in form)
        assert ("closed form: node_aware;" in out) == ("most" in form)
        assert "16" in form or "2 a node" in out


def test_nothing_beats_the_port_of_a_node():
    for name in ("inter_allgather", "inter_allreduce", "inter_alltoall"):
        prediction = predict(Case(name, (8, 8), (1 << 16, 1 << 16), per_node=4), NODES)
        assert prediction.rows[0].time >= prediction.limit * (1 - 1e-12) > 0
        ours = next(row for row in prediction.rows if row.name == "node_aware")
        assert ours.time < 1.5 * prediction.limit, name


def test_predict_for_programs(cli):
    status, out, _ = cli("predict allgather --groups 8,4 --bytes 1KiB --json")
    answer = json.loads(out)
    assert status == 0 and answer["case"]["groups"] == [8, 4]
    times = [row["time"] for row in answer["rows"]]
    assert times == sorted(times) and times[0] >= answer["limit"] * (1 - 1e-9) > 0
    assert answer["chosen"] in {row["name"] for row in answer["rows"]}


def test_predict_a_distribution(cli):
    status, out, _ = cli(
        "predict allgatherv --groups 32 --bytes 1MiB --distribution half"
    )
    assert status == 0 and "1 MiB on average, half" in out
    status, _, err = cli("predict allgather --groups 8,4 --distribution half")
    assert status == 2 and "--distribution is for allgatherv inside one group" in err


def test_trace_and_gantt_are_written(cli, tmp_path):
    path = tmp_path / "x.json"
    status, out, _ = cli(f"trace allgatherv balanced -o {path}")
    assert status == 0 and out.replace("\n", "") == str(path)
    assert json.loads(path.read_text())["traceEvents"]
    pytest.importorskip("matplotlib")
    path = tmp_path / "x.svg"
    status, _, _ = cli(f"draw allgather leader --p 4 --q 4 --gantt -o {path}")
    assert status == 0 and path.stat().st_size > 1000


BAD = [
    ("predict gossip", "no collective 'gossip'"),
    ("predict inter_gather --groups 4", "between two groups"),
    ("predict inter_allgather --groups 4", "between two groups"),
    ("predict allgather --groups 4,0", "--groups 4,0"),
    ("predict allgather --groups 4,x", "--groups 4,x"),
    ("predict allgather --groups 1,2,3", "--groups 1,2,3"),
    ("predict allreduce --groups 4,4 --bytes 1,2", "of one size"),
    ("predict allgather --groups 4,4 --bytes much", "'much' is not a size"),
    ("predict allgather --groups 4,4 --bytes 1:2:3", "one size, or 2"),
    ("predict allgather --groups 4,4 --machine nowhere.toml", "nowhere.toml"),
    ("trace allgather fast", "no algorithm 'fast'"),
    ("trace allgather direct --p 0", "p = 0"),
    ("trace allgather segmented+library", "has no time"),
    ("draw allgather direct --machine nowhere", "--gantt"),
    ("draw allgather direct --gantt --machine nowhere", "nowhere"),
]


@pytest.mark.parametrize("line, part", BAD, ids=[line for line, _ in BAD])
def test_bad_input_gives_one_line_and_status_2(cli, line, part):
    status, out, err = cli(line)
    assert (status, out) == (2, "")
    assert part in err and err.startswith("isthmus: ") and err.count("\n") == 1
