"""The basis and the words of the report on Moody et al. 2011."""

from __future__ import annotations

import csv
from dataclasses import fields, replace
from functools import cache, partial
from pathlib import Path

import pytest

from isthmus.groups import vm
from isthmus.groups.chain import from_size, rounds
from isthmus.groups.dialogue import AllgatherStep
from isthmus.groups.hash_split import hash_split
from isthmus.groups.jenkins import bin_of
from isthmus.groups.scans import allgather
from isthmus.groups.split import find, place
from isthmus.reproduce import moody2011_report as report
from isthmus.reproduce.moody2011 import (
    DAWN,
    FEW_BINS,
    FEW_GROUPS,
    MAX_PROCESSES,
    MILLION,
    PROCESS_COUNTS,
    RADIX_SORTS,
    SIERRA,
    SIERRA_PROCESS_COUNTS,
    SORTS,
    SPLITS,
    STARTUP_FACTORS,
    PeakMemory,
    SplitJob,
    SplitPoint,
    compared_entries,
    entries,
    figure_jobs,
    jobs_by_run,
    machine,
    measured,
    memory,
    memory_jobs,
    million_jobs,
    point,
    points,
    varied_jobs,
)
from isthmus.reproduce.moody2011_claims import claims, ratios
from sampling import LONG

DOCS = Path(__file__).parents[2] / "docs" / "moody2011"


def by_dialogues(job, dialogue):
    """A full run of all processes, on the machine of a job."""
    model = machine(job.machine, job.startup)
    links = [from_size(i, job.n) for i in range(job.n)]
    talks = [dialogue(*x) for x in zip(links, entries(job), strict=True)]
    return vm.run(talks, alpha=model.alpha, beta=model.beta)


def assert_same(p, done):
    assert (p.rounds, p.messages, p.bytes) == (done.rounds, done.messages, done.bytes)
    assert p.network == pytest.approx(done.time, rel=1e-12)
    assert p.busiest == max(t.bytes for t in done.ranks)


SORTED = ["gather_scatter", "cheng128", "cheng512"]


@pytest.mark.parametrize("name", SORTED)
def test_items_known_by_their_sizes_cost_what_full_runs_cost(name):
    job, algorithm = SplitJob(name, 2048 if LONG else 1024), find(name)
    assert_same(point(job), by_dialogues(job, lambda *x: place(*x, algorithm)))


def gathered(link, entry):
    """A dialogue with which all processes get the table; a serial sort sends no
    more."""
    table = yield from allgather(link, (entry.color, entry.key, link.address))
    return len(table)


def gathered_by_mpi(link, entry):
    table = yield AllgatherStep((link.rank, (entry.color, entry.key, link.address)))
    return len(table)


@pytest.mark.parametrize(
    ("name", "dialogue"),
    [("allgather_group", gathered), ("allgather_mpi", gathered_by_mpi)],
)
def test_tables_known_by_their_sizes_cost_what_full_tables_cost(name, dialogue):
    """Of many processes only messages are compared, because serial sorts of all take
    long."""
    job = SplitJob(name, 2048 if LONG else 512)
    done = by_dialogues(job, dialogue)
    assert set(done.results) == {job.n}
    assert_same(point(job), done)
    job, algorithm = SplitJob(name, 128), find(name)
    assert_same(point(job), by_dialogues(job, lambda *x: place(*x, algorithm)))


@pytest.mark.parametrize(
    "job",
    [
        SplitJob("radix", 512),
        SplitJob("bitonic", 512, FEW_GROUPS, 80, False),
        SplitJob("hash", 512, 256, 80, False),
        SplitJob("hash64", 512, 256, 5, True, startup=0.5),
    ],
    ids=lambda job: job.algorithm,
)
def test_points_are_those_of_full_runs(job):
    split = find(job.algorithm)
    assert_same(point(job), by_dialogues(job, lambda *x: place(*x, split)))


def test_fewer_bins_are_those_of_dialogues_too():
    job = SplitJob("hash", 300, 150, 5, False, bins=FEW_BINS)
    choose = partial(bin_of, bins=FEW_BINS)
    done = by_dialogues(
        job, lambda *x: hash_split(*x, hash_function=choose, bins=FEW_BINS)
    )
    assert_same(point(job), done)


def test_rounds_of_many_processes():
    """The formula of bitonic, and about three scans for a few groups by hashing."""
    n = 4096
    k = rounds(n)
    assert point(SplitJob("bitonic", n)).rounds == k + k * (k + 1) // 2 + 1 + k + 1
    counted = point(SplitJob("hash", n, 1, 5, False)).rounds
    assert counted == 2 * k + 1
    counted = point(SplitJob("hash", n, 4, 5, False)).rounds
    assert counted <= 3 * k + 1


def test_the_jobs_are_those_of_the_figures():
    jobs = list(figure_jobs())
    assert len(jobs) == len(set(jobs))
    assert {job.n for job in jobs} == set(PROCESS_COUNTS)
    sierra = [job for job in jobs if job.machine == SIERRA]
    assert {(job.algorithm, job.n) for job in sierra} == {
        (name, n) for name in SORTS for n in SIERRA_PROCESS_COUNTS
    }
    assert {job.algorithm for job in jobs if job.figure == 3} == set(SORTS)
    for figure in (4, 5):
        chosen = [job for job in jobs if (job.figure, job.n) == (figure, 65536)]
        assert {job.algorithm for job in chosen} == set(SPLITS)
        assert {job.groups for job in chosen} == {FEW_GROUPS, 32768}
        assert {job.length for job in chosen} == {5, 80}
    assert {job.algorithm for job in million_jobs()} == {"hash", "bitonic", "radix"}


def test_colours_have_the_length_that_is_asked_for():
    for job in million_jobs():
        if job.groups:
            codes = {entry.color for entry in entries(replace(job, n=100, groups=50))}
            assert {len(code) for code in codes} == {job.length + 3}


def test_local_work_is_what_a_sort_compares():
    assert compared_entries(SplitJob("allgather_mpi", 1024), 0) == 1024 * 10
    assert compared_entries(SplitJob("gather_scatter", 1024), 0) == 2048
    assert compared_entries(SplitJob("cheng128", 1024), 0) == 128 * (2 + 3)
    assert compared_entries(SplitJob("bitonic", 1024), 0) == 55
    assert compared_entries(SplitJob("hash", 1024, 8), 2400) == 100
    assert compared_entries(SplitJob("hash64", 1024, 8), 2400) == 100
    assert compared_entries(SplitJob("hash64", 1024, 512), 2400) == 100 + 64 * 6


@pytest.mark.parametrize("n", [16, 256])
def test_a_radix_of_whole_words_scans_the_whole_chain_for_bits_that_all_share(n):
    """32 bits are eight digits, each with two scans; and one scan to find the range. Of
    keys below n all but the last digits are shared."""
    full, radix = (point(SplitJob(name, n)) for name in reversed(RADIX_SORTS))
    k = rounds(n)
    shared = 8 - k // 4
    assert full.rounds >= (shared * 2 + 1) * k + 2 * k > radix.rounds
    assert full.rounds <= (8 * 2 + 1) * k
    assert full.network > 2 * radix.network


def test_a_process_of_its_own_knows_what_it_took():
    assert 2**20 < measured(SplitJob("bitonic", 64)).resident < 2**36


@pytest.mark.parametrize("name", ["radix", "cheng128", "allgather_mpi"])
def test_other_start_up_times_are_the_same_run(name):
    jobs = [SplitJob(name, 60, startup=x) for x in (1.0, *STARTUP_FACTORS)]
    assert jobs_by_run([*jobs, SplitJob("hash", 60)]) == [
        tuple(jobs),
        (SplitJob("hash", 60),),
    ]
    for job, job_points in zip(jobs, points(tuple(jobs)), strict=True):
        assert replace(point(job), took=0) == replace(job_points, took=0)
    assert len({x.network for x in points(tuple(jobs))}) == 3


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A report on few processes: the folder and the points."""
    folder, sizes = tmp_path_factory.mktemp("moody"), (16, 64)
    jobs = jobs_by_run((*figure_jobs(sizes, sizes), *varied_jobs(sizes)))
    all_points = [x for run_jobs in jobs for x in points(run_jobs)]
    all_points.append(replace(all_points[0], n=MILLION, resident=1))
    weighed = [memory(job) for job in memory_jobs(sizes)]

    def look(figure, to, name):
        """Drawing takes most of the time of a small report."""
        assert figure.axes and all(axes.has_data() for axes in figure.axes)
        (to / f"{name}.png").touch()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "save", report.save if LONG else look)
        report.write(folder, all_points, weighed, *sizes)
    return folder, all_points


def test_a_small_report(small):
    folder, _ = small
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert "{" not in text and "reorder, 64 processes: fastest Cheng" in text
    for name in ("figure3", "figure4", "figure5", "counts", "memory"):
        assert (folder / f"{name}.png").exists()
        assert f"{name}.png" in text
    for name in ("points", "memory", "ratios"):
        assert (folder / f"{name}.csv").stat().st_size > 0


def test_ratios_are_those_of_the_points(small):
    _, points = small
    times = {
        (p.algorithm, p.startup): p
        for p in points
        if (p.figure, p.n, p.bits, p.machine) == (3, 16, 32, DAWN)
    }
    row_of = {row.what: row for row in ratios(points, 16, 64)}
    row = row_of["reorder, 16 processes: Radix / Bitonic"]
    slow, fast = times["radix", 1.0], times["bitonic", 1.0]
    assert row.here == slow.seconds / fast.seconds
    assert row.messages == slow.network / fast.network
    slow, fast = times["radix", 0.5], times["bitonic", 0.5]
    assert row.halved == slow.seconds / fast.seconds
    assert not row.agrees and replace(row, here=5.0).agrees


@cache
def read(name, kind):
    """The rows of a table from which the report was written."""
    parsers = {"int": int, "float": float, "str": str, "bool": lambda x: x == "True"}
    types = {f.name: parsers[f.type] for f in fields(kind)}
    with (DOCS / name).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [kind(**{k: types[k](v) for k, v in row.items()}) for row in rows]


def test_the_report_in_the_docs_is_what_its_tables_say():
    text = report.words(read("points.csv", SplitPoint), read("memory.csv", PeakMemory))
    assert text == (DOCS / "report.md").read_text("utf-8")


def test_what_the_report_says_agrees():
    """The agreements and failures on which the words of the report rest."""
    paper = [p for p in read("points.csv", SplitPoint) if p.n != MILLION]
    agrees = {row.what: row.agrees for row in ratios(paper)}
    assert agrees[f"reorder, {MAX_PROCESSES} processes: serial sorts / Bitonic"]
    few = [
        so for sentence, so in agrees.items() if f", {FEW_GROUPS} groups" in sentence
    ]
    assert len(few) == 8 and all(few)
    assert not agrees[f"reorder, {MAX_PROCESSES} processes: Radix / Bitonic"]
    assert not agrees[f"reorder, {MAX_PROCESSES} processes: fastest Cheng / Bitonic"]
    fails = [claim.paper for claim in claims(paper) if not claim.holds]
    assert fails == [
        "Radix scales the best",
        "Bitonic is always better than Radix",
        "Sierra: the curves converge, perhaps by contention",
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", ["hash", "bitonic", "radix"])
def test_many_processes_take_no_longer_and_no_more_than_they_may(name):
    """Two minutes of a core and 2 GiB for 65 536, so that a million can be done."""
    measurements = measured(
        SplitJob(name, MAX_PROCESSES, FEW_GROUPS if name == "hash" else 0, 80)
    )
    assert measurements.took < 120
    assert 0 < measurements.resident < 2 * 2**30


def test_the_report_has_all_points_of_a_million():
    points = [p for p in read("points.csv", SplitPoint) if p.n == MILLION]
    assert {(p.algorithm, p.groups, p.length) for p in points} == {
        (job.algorithm, job.groups, job.length) for job in million_jobs()
    }
