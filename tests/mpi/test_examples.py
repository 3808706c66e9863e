"""The programs of the documentation, run as they are."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from support import once

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
#: those that two jobs, a parent, an even number of ranks, or no MPI at all must run
OTHERS = {
    "silva1999",
    "connect",
    "spawn",
    "mismatch",
    "schedule",
    "costs",
    "dialogue",
    "leaders",
}
NAMES = sorted(x.stem for x in EXAMPLES.glob("*.py") if x.stem not in OTHERS)


@pytest.mark.mpi(8)
@pytest.mark.parametrize("name", NAMES)
def test_example(comm, name):
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")


@pytest.mark.mpi(8)
def test_example_with_two_halves(comm):
    runpy.run_path(str(EXAMPLES / "silva1999.py"), run_name="__main__")


@once
@pytest.mark.parametrize("name", ["schedule", "costs", "dialogue", "leaders"])
def test_example_without_mpi(name):
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
