"""The programs of the documentation, run as they are."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from support import agree, once

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
#: those that two jobs, a parent, or no MPI at all must run
OTHERS = {
    "connect",
    "spawn",
    "mismatch",
    "schedule",
    "costs",
    "dialogue",
    "leaders",
}
NAMES = sorted(x.stem for x in EXAMPLES.glob("*.py") if x.stem not in OTHERS)


@pytest.fixture
def run(monkeypatch):
    """Run an example as a program with some arguments, not with those of the tests."""

    def run(name, *arguments):
        path = str(EXAMPLES / f"{name}.py")
        monkeypatch.setattr(sys, "argv", [path, *arguments])
        runpy.run_path(path, run_name="__main__")

    return run


@pytest.mark.mpi(8)
@pytest.mark.parametrize("name", NAMES)
def test_example(comm, run, name):
    run(name)


@pytest.mark.mpi(8)
def test_example_with_a_picture(comm, run, tmp_path):
    run("coupled", str(picture := tmp_path / "x.png"))
    agree(comm, picture.exists() == (comm.rank == 0))


@once
@pytest.mark.parametrize("name", ["schedule", "costs", "dialogue", "leaders"])
def test_example_without_mpi(run, name):
    run(name)
