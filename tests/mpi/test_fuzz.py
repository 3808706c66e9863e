"""Collectives of all kinds in any order, form and number at once, in two threads."""

from __future__ import annotations

import pytest

from fuzz import Run
from sampling import LONG


@pytest.mark.mpi(3, *[5] * LONG, timeout=240)
def test_random_calls(comm):
    """Nothing hangs, and no call gets the data of another."""
    run = Run(comm)
    for seed in range(1, 9 if LONG else 2):
        found = run.once(seed, 150 if LONG else 50)
        assert not found, found[0]
    run.free()
