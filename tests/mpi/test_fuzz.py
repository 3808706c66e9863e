"""Collectives between groups in any order, form and number at once."""

from __future__ import annotations

import pytest

from fuzz import sequence
from groups import pairs
from sampling import LONG
from support import agree


@pytest.mark.mpi(*[3] * LONG, 5, timeout=120)
@pytest.mark.parametrize("seed", range(1, 9 if LONG else 2))
def test_random_sequences(comm, seed):
    """Nothing hangs, and no call gets the data of another."""
    for groups in pairs(comm):
        faults = sequence(groups, seed, 400 if LONG else 200)
        agree(comm, not faults, "; ".join(faults[:1]))
