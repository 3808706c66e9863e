"""The words of the demo for processes that share cores."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from statistics import median

import pytest

pytest.importorskip("rich")

from rich.console import Console

from isthmus.bench import demo
from isthmus.bench.environment import Software
from isthmus.bench.job import NATIVE
from isthmus.bench.outcome import Outcome, Result

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize("library, name", [("MPICH", "mpich"), ("Open MPI", "openmpi")])
def test_the_ratios_of_16_cores_are_the_medians_of_what_was_measured(library, name):
    text = (RESULTS / f"demo-{name}.txt").read_text(encoding="utf-8")
    runs = text.split("$ isthmus demo\n")[1:]
    assert len(runs) == 3 and all(library in run for run in runs)
    ratios = [[float(x) for x in re.findall(r"([\d.]+)×", run)] for run in runs]
    cases = [case.label for case in demo.job(demo.DEFAULT_GROUPS).cases]
    assert all(re.findall(r"^(.* strips)", run, re.MULTILINE) == cases for run in runs)
    assert demo.RATIOS_ON_16_CORES[library] == tuple(
        map(median, zip(*ratios, strict=True))
    )


def tour_text(groups, library):
    """The printed text of a tour through six outcomes of a second each."""
    out, steps = io.StringIO(), []
    console = Console(file=out, width=200)
    tour = demo.Tour(console, groups, lambda *step: steps.append(step))
    tour.about(Software(library))
    for case in demo.job(groups).cases:
        tour.progress(case.label, 0.5)
        contenders = (NATIVE, demo.AUTO)
        tour.outcome(
            Outcome(case, (1,), tuple(Result(x, ((1.0,),)) for x in contenders))
        )
    for words in tour.shared_cores():
        console.print(words)
    parts = [part for _, part in steps]
    assert parts == pytest.approx([(k + 0.5) / 6 for k in range(6)])
    return out.getvalue()


def test_processes_that_share_cores_are_told_what_others_showed(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    text = tour_text((4, 4), "Open MPI v5.0.11")
    for ratio in demo.RATIOS_ON_16_CORES["Open MPI"]:
        assert f"1.00×     {ratio:.2f}×" in text
    assert "8 processes take turns on 2 cores" in text
    assert "isthmus predict allgather --groups 4,4 --bytes 2073600" in text
    # of other groups and libraries nothing was measured
    for groups, library in (((6, 2), "Open MPI v5.0.11"), ((4, 4), "Some MPI 1.0")):
        text = tour_text(groups, library)
        assert "16 cores" not in text and "take turns" in text


def test_processes_with_a_core_each_are_told_nothing(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    text = tour_text((4, 4), "MPICH 5.0.2")
    assert "16 cores" not in text and "take turns" not in text


@pytest.mark.parametrize("groups", [(4, 4), (6, 2)])
def test_the_simulated_gain_is_what_predict_says(capsys, monkeypatch, groups):
    from isthmus.cli.app import run

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    text = tour_text(groups, "MPICH 5.0.2")
    said = re.search(r"simulated: ([\d.]+)× .*\(isthmus (predict .*)\)", text)
    assert run(said[2].split()) == 0
    chosen = re.search(r"\w+ \* .*?([\d.]+)×", capsys.readouterr().out)
    assert float(said[1]) == pytest.approx(float(chosen[1]), abs=0.051)
