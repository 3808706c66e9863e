"""The figures of the README equal the figures of their files."""

from __future__ import annotations

import csv
import re
import runpy
from pathlib import Path

import pytest

import quoting

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = ROOT / "docs" / "results"
FILES = {"4 a host": "four_a_host", "1 a host": "one_a_host"}
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}
ROW = re.compile(
    r"\| (\w+), ([\d.]+) (KiB|MiB) \| (\d a host) \| (.*) \| (.*) \| (.*) \| (.*) \|"
)


def rows():
    """The table of the gain: operation, about how many bytes, where, and four cells."""
    gain = README.partition("## The gain")[2].partition("\n## ")[0]
    all_rows = ROW.findall(gain)
    assert len(all_rows) == len([x for x in gain.splitlines() if x.startswith("|")]) - 2
    return all_rows


def read(library, where):
    """The rows of a file."""
    with (RESULTS / f"{library}-{FILES[where]}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def measured(library, where, operation, nbytes):
    """The ratio with interval, and the multiple, from the file of a library."""
    matches = [
        row
        for row in read(library, where)
        if (row["operation"], row["contender"]) == (operation.lower(), "auto")
        and abs(int(row["bytes"]) / nbytes - 1) < 0.01
    ]
    assert len(matches) == 1
    names = "ratio", "ratio_low", "ratio_high", "multiple"
    ratio, low, high, multiple = (float(matches[0][name]) for name in names)
    return f"{ratio:.1f} ({low:.1f}–{high:.1f})", f"{multiple:.2f}"


def test_it_was_measured_as_the_text_says():
    text = " ".join(README.split())
    commands = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    hosts = set(re.findall(r"(\d+) (?:hosts )?at (\d+) Mbit/s", text))
    assert len(hosts) == 2
    assert hosts <= set(re.findall(r"--lab (\d+).* --rate (\d+)mbit", commands))
    sizes = set(re.findall(r"groups of (\d+) and (\d+) processes", text))
    shown = {(n, unit) for _, n, unit, *_ in rows()}
    shown |= set(re.findall(r"Allgather of ([\d.]+) (KiB) blocks", text))
    for library, name in (("mpich", "MPICH"), ("openmpi", "Open MPI")):
        versions = set(re.findall(rf"{name} ([\d.]+\d)", text))
        file_rows = [(where, row) for where in FILES for row in read(library, where)]
        assert {(row["p"], row["q"]) for _, row in file_rows} == sizes
        assert {
            row["library"].split()[-1].lstrip("v") for _, row in file_rows
        } == versions
        assert all(f"{row['per_host']} a host" == where for where, row in file_rows)
        assert {row["arrays"] for _, row in file_rows} == {"fresh"}
        for n, unit in shown:
            assert any(
                f"{int(x['bytes']) / UNITS[unit]:.3g}" == n for _, x in file_rows
            ), n


def test_python_takes_as_long_as_the_text_says():
    overhead = (RESULTS / "overhead.txt").read_text(encoding="utf-8")
    times = dict(re.findall(r"^ *(\S.*\S) +([\d.]+) µs$", overhead, re.MULTILINE))
    around = float(times["blocking"]) - float(times["mpi4py's own call"])
    (said,) = re.findall(r"takes \[about (\d+) µs\]", " ".join(README.split()))
    assert int(said) == round(around)


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]}-{row[3][0]}")
def test_the_gain_is_what_was_measured(row):
    operation, n, unit, where, *cells = row
    nbytes = float(n) * UNITS[unit]
    gains = [measured(x, where, operation, nbytes) for x in ("mpich", "openmpi")]
    assert cells == [*gains[0], *gains[1]]


def test_the_first_screen_says_what_was_measured():
    screen = " ".join(README.partition("## A program")[0].split())
    n, unit, *gains, multiple = re.search(
        r"4 a host, an Allgather of ([\d.]+) (KiB) blocks is ([\d.]+) times "
        r"\(95 % interval: ([\d.]+–[\d.]+)\).* and ([\d.]+) times \(([\d.]+–[\d.]+)\).*"
        r" at ([\d.]+) of the limit",
        screen,
    ).groups()
    nbytes = float(n) * UNITS[unit]
    measured_rows = [
        measured(x, "4 a host", "Allgather", nbytes) for x in ("mpich", "openmpi")
    ]
    said = [(f"{gains[i]} ({gains[i + 1]})", multiple) for i in (0, 2)]
    assert said == measured_rows
    assert "a shaped network of namespaces on one machine" in screen


def test_the_program_is_one_that_is_run():
    program = README.partition("## A program")[2]
    assert [x.path for x in quoting.quotations(program)] == [
        "examples/tutorial_first.py"
    ]


def test_the_picture_has_the_rows_of_the_table():
    pytest.importorskip("matplotlib")
    script = runpy.run_path(str(RESULTS / "gain.py"), run_name="gain")
    drawn = [(op, name) for op, _, name in script["ROWS"]]
    assert drawn == [(row[0].lower(), FILES[row[3]]) for row in rows()]
    for op, nbytes, name in script["ROWS"]:
        for library in script["LIBRARIES"]:
            multiples = script["multiples"](library, op, nbytes, name)
            where = next(x for x, file in FILES.items() if file == name)
            ratio, _ = measured(library, where, op, nbytes)
            gain = multiples["native"][0] / multiples["auto"][0]
            assert ratio.startswith(f"{gain:.1f} ")


def test_the_simulated_gain_is_that_of_the_report():
    text = " ".join(README.split())
    low, high = re.search(r"8 MiB a node it is ([\d.]+) to (\d.\d)", text).groups()
    report = (ROOT / "docs" / "kang2019" / "report.md").read_text(encoding="utf-8")
    gains = re.findall(r"\| 64 × 32 \| .* \| ([\d.]+) \|$", report, re.MULTILINE)
    assert [f"{f(map(float, gains)):.1f}" for f in (min, max)] == [low, high]


def test_the_simulated_gain_of_the_paper_is_that_of_its_points():
    text = " ".join(README.split())
    near, low, high = re.search(
        r"close to (\d) for equal groups and ([\d.]+) to ([\d.]+) for 25:7", text
    ).groups()
    path = ROOT / "docs" / "kang2019" / "points.csv"
    with path.open(encoding="utf-8") as file:
        rows = [x for x in csv.DictReader(file) if x["cluster"].endswith("× 1")]
    longest = max(int(row["per_node"]) for row in rows)
    times = {
        (int(row["setting"]), row["cluster"], row["algorithm"]): float(row["seconds"])
        for row in rows
        if int(row["per_node"]) == longest
    }
    gains = {1: [], 7: []}
    for (setting, cluster, name), seconds in times.items():
        if name in ("segmented+ring", "balanced+ring"):
            library = times[setting, cluster, "root_gathering_sequential"]
            factor = 1 if setting in (1, 5, 6) else 7
            gains[factor].append(library / seconds)
    assert all(abs(gain / float(near) - 1) < 0.05 for gain in gains[1])
    assert [f"{f(gains[7]):.1f}" for f in (min, max)] == [low, high]
