"""The processing of measured times: intervals, limits, sets, tables, files."""

from __future__ import annotations

import csv
import io
import json
from functools import partial

import numpy as np
import pytest

from isthmus.bench import environment, formats, place, regret, sets
from isthmus.bench.bootstrap import resample
from isthmus.bench.environment import Software
from isthmus.bench.job import (
    AUTO,
    COPY,
    NATIVE,
    NATIVE_BY_NAME,
    BenchCase,
    BenchJob,
    Contender,
    case,
    contenders,
    must_move,
)
from isthmus.bench.operations import mpi_operations
from isthmus.bench.outcome import Outcome, Result, lines
from isthmus.bench.place import Place
from isthmus.bench.record import Record
from isthmus.bench.report import short, write
from isthmus.collectives.records import operations
from isthmus.lab import Limits, Link
from isthmus.lab.links import BURST_BYTES

ACROSS = [op.lower() for op in operations(2)]


# Intervals


def test_an_interval_is_as_wide_as_theory_says():
    """The median of n normal values is normal, 1.2533 / sqrt(n) wide."""
    rng = np.random.default_rng(1)
    widths = []
    for _ in range(20):
        medians = resample([[rng.normal(10, 1, 400)]], 100).median(0)
        widths.append(medians.high - medians.low)
    assert np.mean(widths) == pytest.approx(2 * 1.96 * 1.2533 / 20, rel=0.15)


def test_an_interval_mostly_has_the_true_median_in_it():
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(100):
        low, high = resample([[rng.exponential(1, 60)]], 100).median(0)
        hits += low <= np.log(2) <= high
    assert 88 <= hits <= 100


def test_launches_that_differ_make_an_interval_wide():
    samples = resample([[[1.0] * 9, [2.0] * 9, [3.0] * 9]])
    assert samples.median(0) == (1.0, 3.0)
    assert resample([[[2.0] * 9] * 3]).median(0) == (2.0, 2.0)


def test_a_ratio_is_taken_within_repetitions():
    """Noise on both contenders of a repetition does not widen the ratio's interval."""
    noise = np.random.default_rng(3).uniform(1, 5, 51)
    samples = resample([[noise * 3], [noise]])
    assert samples.ratio(0, 1) == pytest.approx((3, 3))
    assert samples.median(0).high - samples.median(0).low > 0.5


# Limits


def moved(op, a, b=(), hosts=None):
    """The bytes that must enter or leave each host, the larger of the two."""
    passed = must_move(BenchCase("", op, a, b), hosts or range(len(a) + len(b)))
    return np.maximum(passed.enters, passed.leaves).tolist()


@pytest.mark.parametrize(
    "op, most",
    [
        ("barrier", 0),
        ("bcast", 10),
        ("reduce", 10),
        ("gather", 20),
        ("scatter", 20),
        ("allgather", 30),
        ("alltoall", 30),
        ("allreduce", 10),
        ("reduce_scatter", 10),
    ],
)
def test_what_must_move_between_groups(op, most):
    nbytes = moved(op, (10, 10, 10), (10, 10))
    assert len(nbytes) == 5 and max(nbytes) == most


def test_sums_that_all_get_pass_more_than_each_must():
    """Of 3 + 2 ranks, each element of both sums passes four times."""
    bench_case = BenchCase("", "allreduce", (10, 10, 10), (10, 10))
    assert must_move(bench_case, range(5)).total == 80
    assert must_move(bench_case, range(5)).most == 16


def test_what_must_move_where_blocks_differ():
    assert moved("allgatherv", (1, 2), (3, 40)) == [43, 43, 3, 40]
    assert moved("alltoallv", (1, 50), (3, 40)) == [43, 100, 51, 80]
    assert moved("gatherv", (9, 9), (3, 40)) == [43, 0, 3, 40]
    assert moved("allgatherv", (1, 2, 30)) == [32, 31, 30]
    assert max(moved("allgatherv", (0, 8, 0))) == 8
    assert moved("allgather", (8,)) == [0]


@pytest.mark.parametrize(
    ("op", "apart", "shared"),
    [
        # four ranks on a host each, and two on each of two hosts; of ten bytes in four
        # parts the last two have three
        ("allreduce", [10, 10, 10, 10], [10, 10]),
        ("reduce_scatter", [7, 7, 8, 8], [6, 6]),
        ("alltoall", [30, 30, 30, 30], [40, 40]),
        ("allgather", [30, 30, 30, 30], [20, 20]),
        ("bcast", [10, 10, 10, 10], [10, 10]),
    ],
)
def test_what_must_move_inside_a_group(op, apart, shared):
    assert moved(op, (10,) * 4) == apart
    assert moved(op, (10,) * 4, (), (0, 0, 1, 1)) == shared
    assert moved(op, (10,) * 4, (), (0,) * 4) == [0]


def test_the_limit_is_that_of_the_rank_that_needs_longest():
    bench_case = case("allgather", (2, 2), 1 << 20)
    rest = (2 << 20) - BURST_BYTES
    four = partial(Place, hosts=4)
    assert four(rates=(100.0,) * 4).limit(bench_case) == rest / 100
    assert four(rates=(100.0, 100.0, 10.0, 100.0)).limit(bench_case) == rest / 10
    assert (
        Place(rates=(100.0,) * 2, hosts=2, per_host=2).limit(bench_case) == rest / 100
    )
    assert Place().limit(bench_case) is None
    assert four(rates=(100.0,) * 4).limit(case("allgather", (2, 2), 8)) is None


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        # A has ranks 0 and 1 on host 0 and rank 2 on host 1; B, ranks 3 on host 1 and 4
        # on host 2
        ("allgather", [20, 30, 30]),
        ("alltoall", [40, 30, 30]),
        ("bcast", [10, 10, 10]),
        ("reduce", [10, 10, 10]),
        ("gather", [20, 10, 10]),
        ("scatter", [20, 10, 10]),
        ("allreduce", [10, 20, 10]),
        ("reduce_scatter_block", [10, 12, 10]),
        ("barrier", [0, 0, 0]),
    ],
)
def test_what_must_pass_a_link_that_ranks_share(op, wanted):
    assert moved(op, (10, 10, 10), (10, 10), (0, 0, 1, 1, 2)) == wanted


@pytest.mark.parametrize("op", ACROSS)
def test_on_one_host_nothing_must_pass(op):
    assert moved(op, (8, 8), (8, 8), (0,) * 4) == [0]


class Net:
    """A lab with links of 8 Mbit/s, of which TCP gets a part."""

    name, hosts = "x", 3

    def __init__(self, part):
        self.part = part

    def links(self):
        return {i: Link(8_000_000 * (1 + (i == 2)), True) for i in range(3)}

    def measure(self):
        return Limits(1e-5, self.part * 1e6)


def test_every_host_has_the_limit_of_its_own_link():
    lab_place = place._on_lab(Net(0.95))
    assert lab_place.rates == pytest.approx((0.95e6, 0.95e6, 1.9e6))
    assert lab_place.on_lab and not lab_place.warning and "0.950" in lab_place.words


def test_a_busy_machine_gives_a_warning_and_no_limit():
    lab_place = place._on_lab(Net(0.93))
    assert "only 0.930" in lab_place.warning
    assert lab_place.limit(case("allgather", (1, 1), 1 << 30)) is None


def test_without_root_one_line_says_so(monkeypatch, capsys):
    pytest.importorskip("typer")
    from isthmus.cli import main

    monkeypatch.setattr(place, "missing", lambda: "a lab needs root")
    for line in ("lab report", "bench --lab 4", "bench --lab-name x"):
        with pytest.raises(SystemExit) as end:
            main(line.split())
        assert end.value.code == 1
        assert capsys.readouterr() == ("", "isthmus: a lab needs root\n")


def test_a_lab_is_not_for_processes_of_an_mpiexec(monkeypatch, capsys):
    pytest.importorskip("typer")
    from isthmus.cli import main

    monkeypatch.setenv("PMI_RANK", "0")
    for line in (
        "bench --lab 4",
        "bench --lab-name x",
        "record ring --lab 4",
        "tune --lab-name x",
        "lab report",
    ):
        with pytest.raises(SystemExit) as end:
            main(line.split())
        assert end.value.code == 2
        assert "without mpiexec" in capsys.readouterr().err


def test_a_recorded_case_may_have_a_size_for_each_group():
    pytest.importorskip("typer")
    from isthmus.cli.record import case_of

    bench_case = case_of("allgather", (3, 2), "1KiB:4KiB", None)
    assert (bench_case.a, bench_case.b) == ((1024,) * 3, (4096,) * 2)
    bench_case = case_of("allgather", (3, 2), "1KiB", None)
    assert (bench_case.a, bench_case.b) == ((1024,) * 3, (1024,) * 2)
    with pytest.raises(ValueError, match="one size"):
        case_of("allgather", (3,), "1KiB:4KiB", None)


# Sets


def test_settings_of_kang2019():
    jobs = sets.named("kang2019", BenchJob((), (), (NATIVE,)))
    assert [job.groups for job in jobs] == [(16, 16), (25, 7)]
    case_of_kind = {x.kind: x for job in jobs for x in job.cases if x.each == 100_000}
    assert sets.kinds("kang2019") == sorted(case_of_kind)
    assert sorted(case_of_kind) == [f"setting {i}" for i in range(1, 9)]
    assert case_of_kind["setting 1"].a == (100_000,) * 16 == case_of_kind["setting 1"].b
    assert case_of_kind["setting 3"].a == (100_000,) * 25
    assert case_of_kind["setting 3"].b == (25_000,) * 7
    assert case_of_kind["setting 4"].a == (25_000,) * 25
    eight = case_of_kind["setting 8"]
    assert eight.op == "allgatherv" and eight.a[1] == 2 * eight.a[0]
    assert {x.each for job in jobs for x in job.cases} == set(sets.SET_BLOCK_BYTES)


def test_distributions_of_traff2008():
    (job,) = sets.named("traff2008", BenchJob((), (), (NATIVE,)))
    assert job.groups == (16,) and len(job.cases) == 12
    assert {sum(x.a) for x in job.cases} == {2_000_000, 16_000_000}
    (small,) = sets.named("traff2008", BenchJob((), (), (NATIVE,)), 0.1, smallest=True)
    assert [x.kind for x in small.cases] == [x.kind for x in job.cases[:6]]
    assert {sum(x.a) for x in small.cases} == {200_000}


def test_collectives_of_silva1999():
    (job,) = sets.named("silva1999", BenchJob((), (), contenders(["auto"], False)))
    assert [x.op for x in job.cases] == ACROSS
    assert all(AUTO in job.contenders_of(x) for x in job.cases)
    copied = [x.op for x in job.cases if COPY in job.contenders_of(x)]
    assert copied == [x for x in ACROSS if x != "barrier"]


# Regret


def times_of(bench_case, taken="ring", **seconds):
    results = [
        Result(Contender(name), ((t,) * 3,), taken * (name == "auto"))
        for name, t in seconds.items()
    ]
    return Outcome(bench_case, (1,), tuple(results))


def measured_regrets():
    """Regrets of 1.5 and 1 in a Bcast, and of 1.25 in a Barrier."""
    base_job = BenchJob((), (), ())
    job = regret.regret_job((2, 2), ["bcast", "barrier"], [8, 4096], base_job)
    new_record = Record(Place())
    new_record.about(Software("An MPI 1.2"))
    new_record.jobs.append(job)
    outcomes = [
        times_of(job.cases[0], native=3.0, auto=3.0, chain=2.0),
        times_of(job.cases[1], native=4.0, auto=1.0, chain=2.0),
        times_of(job.cases[2], "native", native=4.0, auto=5.0),
    ]
    for each_outcome in outcomes:
        new_record.outcome(each_outcome)
    return new_record


def test_the_regret_is_the_time_of_auto_in_times_of_the_fastest():
    of_cases = regret.regrets(measured_regrets().lines)
    assert [(x.ratio, x.taken, x.best) for x in of_cases] == [
        (1.5, "ring", "chain"),
        (1.0, "ring", "auto"),
        (1.25, "native", "native"),
    ]
    assert of_cases[0].interval == (1.5, 1.5) and of_cases[0].best_seconds == 2.0
    assert regret.mean(of_cases) == 1.25
    assert regret.worst(of_cases, 2) == [of_cases[0], of_cases[2]]


def test_a_copy_is_no_candidate():
    assert outcome().fastest == AUTO and outcome().regret(NATIVE) == 4.0


def test_what_a_call_through_isthmus_costs_is_no_regret():
    times = {"native": 1.0, "native by name": 2.0, "auto": 2.0, "chain": 3.0}
    of_call = times_of(case("bcast", (2, 2), 8), "native", **times)
    assert of_call.fastest == NATIVE_BY_NAME and of_call.regret(AUTO) == 1.0
    (found,) = regret.regrets(lines(of_call))
    assert (found.best, found.ratio, found.taken) == ("native by name", 1.0, "native")


@pytest.mark.parametrize("groups", [(8, 8), (16,)])
def test_every_operation_has_candidates_of_twelve_sizes(groups):
    names = mpi_operations(len(groups))
    job = regret.regret_job(groups, names, regret.REGRET_BYTES, BenchJob((), (), ()))
    assert len(regret.REGRET_BYTES) == 12
    assert (min(regret.REGRET_BYTES), max(regret.REGRET_BYTES)) == (8, 4 << 20)
    assert {x.op for x in job.cases} == {
        op.lower() for op in operations(len(groups), on_mpi=True)
    }
    for bench_case in job.cases:
        contenders_of_case = job.contenders_of(bench_case)
        assert contenders_of_case[:2] == (NATIVE, AUTO) and COPY not in job.contenders
        assert len(set(contenders_of_case)) == len(contenders_of_case) > 3
    assert Contender("leader") not in job.contenders_of(job.cases[0])


def test_an_algorithm_that_does_not_fit_is_no_candidate():
    job = regret.regret_job((6,), ["allgather"], [8], BenchJob((), (), ()))
    names = {contender.name for contender in job.contenders_of(job.cases[0])}
    assert "neighbor_exchange" in names and "recursive_doubling" not in names


def test_the_table_of_regret_has_a_row_for_each_operation():
    rich = pytest.importorskip("rich.console")
    from isthmus.bench.table import RegretTable

    measured = measured_regrets()
    console = rich.Console(file=io.StringIO(), width=120)
    table = RegretTable(console, measured.jobs[0])
    for outcome_of_case in measured.outcomes:
        table.add(lines(outcome_of_case))
    table.end()
    text = console.file.getvalue()
    words = [" ".join(row.split()) for row in text.splitlines()]
    assert words[0] == "8B 4K mean worst"
    assert words[2:6] == [
        "bcast 1.50 1.00 1.25 1.50",
        "barrier 1.25 1.25 1.25",
        "",
        "mean 1.250 of 3 cases",
    ]
    assert words[-2:] == [
        "bcast, 8 B 1.50 1.5–1.5 3 s ring 2 s chain",
        "barrier 1.25 1.25–1.25 5 s native 4 s native",
    ]


def test_the_picture_of_regret_has_a_field_for_each_case():
    pytest.importorskip("matplotlib")
    figure = measured_regrets().figure("Regret")
    (axes,) = figure.axes
    assert sorted(text.get_text() for text in axes.texts) == ["1.00", "1.25", "1.50"]
    assert [x.get_text() for x in axes.get_yticklabels()] == ["bcast", "barrier"]
    assert [x.get_text() for x in axes.get_xticklabels()] == ["8 B", "4 KiB"]
    assert "An MPI 1.2: mean 1.250, worst 1.50" in {x.get_text() for x in figure.texts}


def test_csv_has_the_regret_of_every_contender():
    rows = list(csv.DictReader(io.StringIO(measured_regrets().csv())))
    assert [float(row["regret"]) for row in rows[:3]] == [1.5, 1.5, 1.0]


# Output


def outcome(each=100, kind="", factor=1.0):
    bench_case = BenchCase(
        f"{each} B {kind}".strip(), "allgather", (each,) * 2, (each,) * 2
    )
    bench_case = BenchCase(
        bench_case.label, bench_case.op, bench_case.a, bench_case.b, kind, each
    )
    times = {NATIVE: 4e-3, AUTO: 1e-3, COPY: 5e-4}
    results = (Result(c, ((t * factor,) * 3,) * 2) for c, t in times.items())
    return Outcome(bench_case, (1, 1), tuple(results))


def test_a_line_knows_its_multiple_of_the_limit():
    native, auto, copy = lines(outcome())
    assert (native.multiple, auto.multiple, copy.multiple) == (8.0, 2.0, None)
    assert auto.ratio == 4.0 and auto.ratio_interval == (4.0, 4.0)
    assert (auto.launches, auto.repetitions) == (2, 6)
    assert lines(outcome(), limit=8e-4)[1].multiple == pytest.approx(1.25)


def test_the_layout_of_osu():
    rows = [*lines(outcome(8)), *lines(outcome(64, factor=2))]
    rows += lines(outcome(8, "spike"))[:1]
    text = formats.osu(rows, ["an MPI"])
    assert text.splitlines() == [
        "# isthmus bench: an MPI",
        "",
        "# Allgather between 2 and 2 processes",
        "# Size            native (us)          auto (us)          copy (us)",
        "8                     4000.00            1000.00             500.00",
        "64                    8000.00            2000.00            1000.00",
        "",
        "# Allgather between 2 and 2 processes, spike",
        "# Size            native (us)",
        "8                     4000.00",
    ]


def test_the_table_shows_whole_labels():
    rich = pytest.importorskip("rich.console")
    from isthmus.bench.table import Comparison

    long_label = outcome(65536, "geometric")
    job = BenchJob((2, 2), (long_label.case,), contenders(["auto"], False))
    console = rich.Console(file=io.StringIO(), width=120)
    Comparison(console, job).add(lines(long_label))
    rows = console.file.getvalue().splitlines()
    words = [" ".join(row.split()) for row in rows[2:]]
    assert words[0] == "65536 B geometric native 4 ms 4–4 8.00"
    assert words[1] == "auto 1 ms 1–1 4.00× 4–4 2.00"


def record():
    new_record = Record(Place(rates=(1e6,) * 4, words="lab of 4 hosts", hosts=4))
    new_record.about(Software("An MPI 1.2", {"FI_PROVIDER": "tcp"}))
    outcomes = outcome(1 << 20), outcome(1 << 21)
    new_record.jobs.append(
        BenchJob((2, 2), tuple(x.case for x in outcomes), (NATIVE, AUTO, COPY))
    )
    for each_outcome in outcomes:
        new_record.outcome(each_outcome)
    return new_record


def test_csv_has_a_row_for_each_result():
    rows = list(csv.DictReader(io.StringIO(record().csv())))
    assert [row["contender"] for row in rows] == ["native", "auto", "copy"] * 2
    assert float(rows[1]["seconds"]) == 1e-3 and float(rows[1]["ratio"]) == 4
    assert float(rows[1]["limit"]) == ((2 << 20) - BURST_BYTES) / 1e6
    assert rows[2]["multiple"] == ""


def test_json_has_every_time_and_the_environment():
    data = json.loads(record().json())
    about = data["environment"]
    assert about["library"] == "An MPI 1.2" and about["place"] == "lab of 4 hosts"
    assert about["variables"] == {"FI_PROVIDER": "tcp"}
    assert {"date", "command", "python", "packages", "kernel", "cpus"} <= set(about)
    assert len(about["load at start"]) == len(about["load at end"]) == 3
    assert data["outcomes"][0]["results"][1]["times"] == [[1e-3] * 3] * 2
    assert data["results"][1]["ratio"] == 4 and data["jobs"][0]["groups"] == [2, 2]


def test_variables_that_matter_and_no_others():
    environ = {
        "FI_PROVIDER": "tcp",
        "HOME": "h",
        "ISTHMUS_LAB_JOB": "x",
        "UCX_TLS": "sm",
    }
    assert environment.relevant(environ) == {"FI_PROVIDER": "tcp", "UCX_TLS": "sm"}
    assert environment.command(["/x/isthmus", "bench", "a b"]) == "isthmus bench 'a b'"
    assert environment.command(["/x/__main__.py"]) == "python -m isthmus.bench"


def test_a_report_has_a_page_and_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    path = write(tmp_path / "new", {"traff2008": record()})
    text = path.read_text()
    assert short("Open MPI v5.0.11") == "openmpi" and short("MPICH 5.0.2") == "mpich"
    assert path.name == "anmpi.md" and "| **4.00** | 4.00–4.00 |" in text
    assert "FI_PROVIDER=tcp" in text and "lab of 4 hosts" in text
    for kind in ("png", "csv", "json"):
        assert (tmp_path / "new" / f"anmpi-traff2008.{kind}").stat().st_size > 100
