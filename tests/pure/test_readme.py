"""The figures of the README are those of the files that they come from."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
FILES = {"4 a host": "four_a_host", "1 a host": "one_a_host"}
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}
ROW = re.compile(r"\| (\w+), ([\d.]+) (KiB|MiB) \| (\d a host) \| (.*) \| (.*) \|")


def rows():
    """The table of the gain: operation, about how many bytes, where, and two cells."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    gain = text.partition("## The gain")[2].partition("\n## ")[0]
    found = ROW.findall(gain)
    assert len(found) == len([x for x in gain.splitlines() if x.startswith("|")]) - 2
    return found


def measured(library, where, operation, nbytes):
    """What the file of a library has."""
    with (RESULTS / f"{library}-{FILES[where]}.csv").open(encoding="utf-8") as file:
        found = [
            row
            for row in csv.DictReader(file)
            if (row["operation"], row["contender"]) == (operation.lower(), "auto")
            and abs(int(row["bytes"]) / nbytes - 1) < 0.01
        ]
    assert len(found) == 1
    return f"{float(found[0]['ratio']):.1f} ({float(found[0]['multiple']):.2f})"


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]}-{row[3][0]}")
def test_the_gain_is_what_was_measured(row):
    operation, n, unit, where, *cells = row
    nbytes = float(n) * UNITS[unit]
    both = [measured(x, where, operation, nbytes) for x in ("mpich", "openmpi")]
    assert cells == both


def test_the_simulated_gain_is_that_of_the_report():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    low, high = re.search(r"8 MiB a node it is ([\d.]+) to (\d.\d)", text).groups()
    report = (ROOT / "docs" / "kang2019" / "report.md").read_text(encoding="utf-8")
    gains = re.findall(r"\| 64 × 32 \| .* \| ([\d.]+) \|$", report, re.MULTILINE)
    assert [f"{f(map(float, gains)):.1f}" for f in (min, max)] == [low, high]
