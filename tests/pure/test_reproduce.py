"""The claims of the reports."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import pairwise
from time import process_time

import numpy as np
import pytest

from isthmus.algorithms.parts.piece_size import square_root
from isthmus.collectives.records import schedule
from isthmus.distributions import PAPER_DISTRIBUTIONS, counts
from isthmus.reproduce import (
    kang2019,
    kang2019 as kang,
    kang2019_figures as figures,
    moody2011 as moody,
    traff2008 as traff,
    traff2008_figures,
    traff2008_report,
    unfinished,
)
from isthmus.reproduce.kang2019 import (
    BYTES_PER_NODE,
    CLUSTERS,
    SETTINGS,
    ClusterShape,
    ExchangeJob,
    ExchangePoint,
    blocks,
    contenders,
    groups,
    machine,
    multiple,
    point,
    transfer_gain,
)
from isthmus.reproduce.output import in_parallel, save
from isthmus.reproduce.traff2008 import (
    BEST_BLOCKS,
    CIRCULANT_BOUND,
    CIRCULANT_WAY,
    FIXED_BLOCKS,
    LINEAR_RING,
    LINUX,
    SX8,
)
from isthmus.reproduce.unfinished import Unfinished, task_name
from sampling import LONG, some

BIG = CLUSTERS[1]


def test_the_settings_are_those_of_the_paper():
    sizes = [groups(SETTINGS[1], c.n) for c in CLUSTERS]
    assert sizes == [(50, 14), (200, 56), (1600, 448)]
    for setting in SETTINGS:
        a, b = blocks(setting, CLUSTERS[2], BYTES_PER_NODE[-1])
        m = max(sum(a), sum(b))
        expected = (m + 3 * sum(a) + 3 * sum(b)) / m
        assert expected == pytest.approx(setting.expected, rel=0.004), setting


def test_the_axis_is_the_maximum_message():
    for setting in SETTINGS[4:]:
        for cluster in CLUSTERS:
            for size in BYTES_PER_NODE:
                a, b = blocks(setting, cluster, size)
                ints = size // kang2019.BYTES_OF_AN_INT
                assert max(a) == max(b) == ints // cluster.processes_per_node


@pytest.mark.parametrize("size", BYTES_PER_NODE if LONG else BYTES_PER_NODE[:1])
@pytest.mark.parametrize("number", [1, 5, 6, 7, 8])
def test_expected_gains_come_out_within_three_percent(number, size):
    gain = transfer_gain(SETTINGS[number - 1], BIG, size)
    assert gain.simulated == pytest.approx(gain.expected, rel=0.03)


@pytest.mark.parametrize("number", [1, 5, 6, 7, 8])
def test_the_transfer_gain_is_the_same_at_every_size(number):
    """At 64 nodes, where a block or two of the root are not yet small."""
    setting = SETTINGS[number - 1]
    gains = [
        transfer_gain(setting, CLUSTERS[0], size).simulated for size in BYTES_PER_NODE
    ]
    assert gains == pytest.approx([gains[0]] * len(BYTES_PER_NODE), rel=1e-3)
    assert 0.93 * setting.expected < gains[0] <= setting.expected


def test_settings_with_the_same_blocks_take_the_same_time():
    """Settings with equal blocks are simulated once in the report."""
    few = ClusterShape(8, 1), ClusterShape(8, 4)
    names = {job.algorithm for job in kang2019.table_jobs()}
    for setting, other in kang2019.SIMULATED_AS.items():
        first, second = SETTINGS[setting - 1], SETTINGS[other - 1]
        for cluster in few:
            assert blocks(first, cluster, 1 << 16) == blocks(second, cluster, 1 << 16)
            for name in names:
                times = [
                    multiple(ExchangeJob(s, cluster, 1 << 16, name)).multiple
                    for s in (first, second)
                ]
                assert times[0] == times[1], (setting, name)
        times = [
            point(ExchangeJob(s, few[1], 1 << 16, "node_aware"))
            for s in (first, second)
        ]
        assert replace(times[1], setting=setting) == times[0]


def test_what_is_simulated_once_is_in_both_settings():
    multiples = [kang2019.Multiple(1, "direct", 1.0)]
    multiples += [
        ExchangePoint(2, "64 × 32", 2048, 1, name, 1.0) for name in ("node_aware", "x")
    ]
    settings = [
        (x.setting, x.algorithm) for x in kang2019.with_equal_settings(multiples)
    ]
    assert settings[3:] == [(5, "direct"), (7, "node_aware")]


@pytest.mark.parametrize("number", some(range(1, 9), 2))
def test_gains_on_the_machine_grow_to_the_expected_ones(number):
    """Figures 4 to 6 at 64 nodes, point by point: start-ups count less and less."""
    setting = SETTINGS[number - 1]
    times = {
        name: [
            point(ExchangeJob(setting, CLUSTERS[0], n, name)).seconds
            for n in BYTES_PER_NODE
        ]
        for name in contenders(setting, CLUSTERS[0])
    }
    library = times[kang2019.LIBRARY_ALGORITHM]
    ours = times[f"{setting.paper_algorithm}+ring"]
    for curve in (library, ours):
        assert all(1 < y / x < 2.05 for x, y in pairwise(curve))
    gains = [x / y for x, y in zip(library, ours, strict=True)]
    assert all(1 < gain < 1.05 * setting.expected for gain in gains), gains
    assert all(y > 0.98 * x for x, y in pairwise(gains)), gains


@pytest.mark.parametrize(("number", "loss"), [(2, 1.12), (3, 1.12), (4, 25 / 7 / 3)])
def test_what_rounding_costs_algorithm_1_on_25_to_7(number, loss):
    gain = transfer_gain(SETTINGS[number - 1], BIG)
    assert gain.simulated == pytest.approx(gain.expected / loss, rel=0.03)


def test_balanced_has_no_such_loss():
    for setting in SETTINGS[1:4]:
        job = ExchangeJob(setting, BIG, BYTES_PER_NODE[-1], "balanced+ring")
        assert multiple(job).multiple < 1.03


def test_machines_have_the_processes_of_the_cluster():
    assert [machine(c).levels[0].size for c in CLUSTERS] == [1, 1, 32]


def test_figures_of_made_up_points():
    points = [
        ExchangePoint(s.number, c.name, c.n, size, name, size * 1e-9)
        for s in SETTINGS
        for c in CLUSTERS
        for size in BYTES_PER_NODE
        for name in contenders(s, c)
    ]
    assert len(figures.times(points, SETTINGS[:4]).axes) == 12
    assert len(figures.improvements(points).axes) == 3
    drawn = [name for name, _ in figures.exchanges()]
    assert drawn == ["figure1", "figure2", "figure3"]


@pytest.mark.parametrize("number", [1, 8])
def test_node_aware_is_close_to_the_limit_of_port_and_memory(number, monkeypatch):
    """On a smaller cluster; the more chunks, the closer."""
    small, setting = ClusterShape(16, 8), SETTINGS[number - 1]
    names = contenders(setting, small)
    points = [
        point(ExchangeJob(setting, small, BYTES_PER_NODE[-1], name)) for name in names
    ]
    monkeypatch.setattr(kang2019, "CLUSTERS", (small,))
    monkeypatch.setattr(kang2019, "SETTINGS", (setting,))
    monkeypatch.setattr(kang2019, "sizes", lambda c: BYTES_PER_NODE[-1:])
    (limit,) = kang2019.limits(points)
    # of the arithmetic sequence there are half as many data
    most = 1.25 if setting.arithmetic else 1.2
    assert limit.least <= limit.node_aware < most * limit.least


def time_of(system, distribution, m, way):
    return traff.point(traff.chosen(system, distribution, m, way)).seconds


@pytest.mark.parametrize("m", SX8.totals)
def test_for_equal_blocks_linear_and_blocked_ring_take_the_same_time(m):
    assert time_of(SX8, "regular", m, BEST_BLOCKS) == time_of(
        SX8, "regular", m, LINEAR_RING
    )
    assert traff.is_the_ring(SX8, m)


def test_schedules_that_differ_are_told_apart():
    jobs = [
        traff.chosen(SX8, "regular", SX8.totals[-1], way)
        for way in (LINEAR_RING, FIXED_BLOCKS)
    ]
    assert not traff.same_messages(*map(traff.problem, jobs))


def test_with_all_at_one_process_the_gain_grows_to_the_number_of_processes():
    gains = [
        time_of(SX8, "broadcast", m, LINEAR_RING)
        / time_of(SX8, "broadcast", m, BEST_BLOCKS)
        for m in SX8.totals
    ]
    assert gains == sorted(gains)
    assert 0.8 * (SX8.p - 1) < gains[-1] < SX8.p - 1


def test_no_way_beats_the_limit():
    m = LINUX.totals[2]
    for name in PAPER_DISTRIBUTIONS:
        least = LINUX.limit(m - min(counts(name, LINUX.p, m)))
        for way in (LINEAR_RING, FIXED_BLOCKS, BEST_BLOCKS, CIRCULANT_WAY):
            assert time_of(LINUX, name, m, way) >= least


def test_the_bound_of_circulant_schedules_holds_for_all_distributions():
    for m in SX8.totals[:3]:
        most = time_of(SX8, "regular", m, CIRCULANT_BOUND)
        for name in PAPER_DISTRIBUTIONS:
            assert 0.5 * most < time_of(SX8, name, m, CIRCULANT_WAY) <= most


def test_nodes_with_one_port_slow_down_circulant_schedules_and_no_ring():
    nodes, m = replace(LINUX, processes_per_node=4), LINUX.totals[2]
    for way, low, high in ((BEST_BLOCKS, 0.9, 1.01), (CIRCULANT_WAY, 2.0, 4.0)):
        ratio = time_of(nodes, "spike", m, way) / time_of(LINUX, "spike", m, way)
        assert low < ratio < high


def test_over_p_the_linear_ring_grows_and_the_blocked_ring_does_not():
    few, many = traff.LINUX_OVER_P[0], traff.LINUX_OVER_P[-1]
    grown = {
        way: time_of(many, "spike", traff.STUDIED_BYTES, way)
        / time_of(few, "spike", traff.STUDIED_BYTES, way)
        for way in (LINEAR_RING, FIXED_BLOCKS)
    }
    assert grown[LINEAR_RING] > 0.9 * (many.p - 1) / (few.p - 1)
    assert grown[FIXED_BLOCKS] < 1.3


def test_block_sizes_by_rule():
    assert traff.rules(LINUX, "regular")["rule 1"] == traff.STUDIED_BYTES // LINUX.p
    # the smallest block is below the threshold; one is empty
    assert traff.rules(LINUX, "linear")["rule 1"] == int(LINUX.startup)
    assert traff.rules(LINUX, "broadcast")["rule 1"] is None
    assert square_root(np.array([1000, 0, 0, 0, 0]), 1, 60.0) == 130  # sqrt(17142)
    for few in ([9], [0], [5, 4]):
        assert square_root(np.array(few), 1, 60.0) == max(1, sum(few))


def test_rule_3_counts_the_rounds_right():
    """Of blocks with a partial piece, m/B + (p + z - 2)/2 rounds; the slides' formula
    is z off."""
    p, size = 96, 1000
    rng = np.random.default_rng(1)
    each = rng.integers(0, 40 * size, p) * (np.arange(p) % 3 > 0)
    name = f"blocked_ring(size={size})"
    example = schedule("allgatherv", name, counts=each.tolist())
    rounds = example.simulate(LINUX.model).rounds
    m, z = each.sum(), (each == 0).sum()
    assert rounds == pytest.approx(m / size + (p + z - 2) / 2, abs=p / 10)
    assert abs(rounds - (m / size + (p - z) / 2)) > z / 2


def test_what_stretches_of_time_cover():
    edges = np.array([0.0, 1.0, 2.0, 4.0])
    share = traff2008_figures.covered(
        np.array([0.5, 1.25]), np.array([1.0, 3.0]), edges
    )
    assert share.tolist() == [0.5, 0.75, 0.5]


def test_results_come_with_their_progress():
    seen = []
    tasks = [(abs, -1), (abs, -3)]
    results = in_parallel(tasks, lambda *done: seen.append(done), work=abs)
    assert sorted(results) == [1, 3] and seen[1] == (2, 2, 1.0)
    assert seen[0] in [(1, 2, 0.25), (1, 2, 0.75)]  # whichever came first


def test_a_point_of_traff_2008_has_more_work_the_longer_its_simulation_takes():
    small = [
        x
        for x in traff.time_jobs()
        if x.system.p == 96 and x.way != traff.CIRCULANT_BOUND
    ]
    few = [x for x in small if traff.work(x) < 200][:2]
    many = [x for x in small if traff.work(x) > 1000][:2]
    assert few and many

    def seconds(jobs):
        begin = process_time()
        for job in jobs:
            traff.point(job)
        return process_time() - begin

    assert seconds(few) < seconds(many)
    bounds = [x for x in traff.time_jobs() if x.way == traff.CIRCULANT_BOUND]
    assert bounds and not sum(map(traff.work, bounds))


def test_a_picture_is_saved_for_pages_and_for_print(tmp_path):
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(1, 1))
    save(figure, tmp_path, "empty")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "empty.png",
        "empty.svg",
    ]


def look(figure, folder, name):
    """Look at a figure without drawing, because drawing takes most of a small report's
    time."""
    assert figure.axes and all(axes.has_data() for axes in figure.axes)
    (folder / f"{name}.png").touch()


@pytest.fixture
def small(monkeypatch):
    """The report's systems with few processes, in this process."""
    few = [replace(s, p=6, totals=(6 << 12, 6 << 14)) for s in traff.SYSTEMS]
    nodes = [replace(s, p=8, totals=(8 << 14,)) for s in traff.NODE_SYSTEMS]
    today = replace(traff.SYSTEM_OF_TODAY, p=8, totals=(1 << 17,))
    for module in (traff, traff2008_report):
        monkeypatch.setattr(module, "SYSTEMS", few)
        monkeypatch.setattr(module, "NODE_SYSTEMS", nodes)
        monkeypatch.setattr(module, "DEALT_SYSTEMS", nodes[1:3])
        monkeypatch.setattr(module, "SYSTEM_OF_TODAY", today)
    monkeypatch.setattr(
        traff2008_report,
        "in_parallel",
        lambda tasks, _, unfinished, work: [f(x) for f, x in tasks],
    )
    monkeypatch.setattr(traff, "LINUX_PAIRS", nodes[1])
    monkeypatch.setattr(traff, "STUDIED_BYTES_OF_PAIRS", 8 << 12)
    for module in (traff, traff2008_figures):
        monkeypatch.setattr(module, "LINUX", few[1])
        monkeypatch.setattr(module, "STUDIED_BYTES", 6 << 12)
        over_p = [replace(s, p=4, totals=(6 << 12,)) for s in traff.LINUX_OVER_P[:1]]
        monkeypatch.setattr(module, "LINUX_OVER_P", over_p)

    monkeypatch.setattr(traff2008_report, "save", save if LONG else look)


def test_the_report_on_the_slides_is_written(small, tmp_path):
    report = traff2008_report.reproduce(tmp_path, lambda *done: None)
    text = report.read_text("utf-8")
    assert "{" not in text and "the worst is" in text
    for number in range(1, 14):
        assert (tmp_path / f"figure{number}.png").exists()
        assert f"figure{number}.png" in text
    with (tmp_path / "points.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6 * 4 * (4 * 2 + 4 + 1 + 1) + 6 * 3 * 2
    dealt = [row for row in rows if "dealt out" in row["system"]]
    times = {(r["system"], r["distribution"], r["way"]): r["multiple"] for r in dealt}
    for (system, name, way), time in times.items():
        if way == traff.NODE_RING:
            assert float(time) <= float(times[system, name, traff.BEST_BLOCKS])
    assert "**SiCortex**" in text
    assert {row["distribution"] for row in rows} == set(PAPER_DISTRIBUTIONS)
    assert (tmp_path / "sizes.csv").exists()


# interrupted, and gone on


TASKS = [(abs, -1), (abs, -2), (abs, -3)]
#: a result of each kind, of all papers
RESULTS = [
    kang.ExchangePoint(1, "large", 640, 4, "segmented", 1 / 3),
    kang.Multiple(2, "balanced", 1.25),
    traff.GatherPoint("linux", 36, "spike", 1000, "ring", 0, 35, 2e-5, np.float64(1.5)),
    moody.PeakMemory("chain", 100, 5, np.int64(4096)),
    [kang.Multiple(1, "leader", 2.0), kang.Multiple(1, "segmented", 1.0)],
]


def test_an_interrupted_report_goes_on_where_it_was(tmp_path, monkeypatch):
    folder = tmp_path / "report"

    def interrupt(done, total, part):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_parallel(TASKS, interrupt, unfinished=Unfinished(folder))
    assert [path.name for path in folder.iterdir()] == ["unfinished.jsonl"]
    assert len(Unfinished(folder).results) == 2
    with (folder / "unfinished.jsonl").open("a") as file:
        file.write('["a line that was cut')
    seen = []
    earlier = Unfinished(folder)
    results = in_parallel(TASKS, lambda *x: seen.append(x), unfinished=earlier)
    assert [x[:2] for x in seen] == [(2, 3), (3, 3)] and sorted(results) == [1, 2, 3]
    again = Unfinished(folder)
    assert sorted(again.results.values()) == [1, 2, 3]
    monkeypatch.setattr(unfinished, "source_checksum", lambda: 0)
    assert not Unfinished(folder).results
    again.remove()
    assert not list(folder.iterdir())


def test_nothing_is_left_where_nothing_was_done(tmp_path):
    unfinished = Unfinished(tmp_path / "report")
    assert not unfinished.results and not (tmp_path / "report").exists()
    unfinished.remove()


def test_the_results_of_every_paper_are_read_as_they_were_written(tmp_path):
    unfinished = Unfinished(tmp_path / "report")
    for number, result in enumerate(RESULTS):
        unfinished.add(f"task {number}", result)
    assert Unfinished(tmp_path / "report").results == unfinished.results


def test_a_task_has_the_same_name_in_every_process():
    """A name must not have an address, since an address differs from run to run."""
    jobs = [next(iter(x)) for x in (kang.figure_jobs(), kang.table_jobs())]
    jobs += [next(iter(x)) for x in (traff.time_jobs(), traff.size_jobs())]
    jobs += [next(iter(x)) for x in (moody.memory_jobs(), moody.figure_jobs())]
    assert not any(" at 0x" in task_name((abs, job)) for job in jobs)
