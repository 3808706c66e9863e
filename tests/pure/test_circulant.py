"""The schedules on circulant graphs: whose turn it is, and the rounds they take."""

from __future__ import annotations

import random

import pytest

from isthmus.algorithms.allgatherv_circulant import circulant
from isthmus.algorithms.circulant import base_block, receives, sends, skips
from isthmus.layout import Uneven
from isthmus.program import trim


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_circulant_takes_n_minus_1_plus_log_p_rounds(n):
    for p in (2, 3, 5, 8, 17, 33):
        blocks = Uneven([n * (i % 4) for i in range(p)])
        rounds = trim(circulant(p, 1, blocks, n))
        assert len(rounds) <= n - 1 + len(skips(p)) - 1


def conditions(p):
    """Träff's conditions for the schedules of all ranks."""
    skip = skips(p)
    q = len(skip) - 1
    for r in range(p):
        own, back = base_block(p, r), receives(p, r)
        if r:
            assert set(back) == {*range(-q, 0), own} - {own - q}
        for k, block in enumerate(sends(p, r)):
            target = (r + skip[k]) % p
            assert target == 0 or block == receives(p, target)[k]
            assert not r or block == own - q or block in back[:k]


@pytest.mark.parametrize("start", range(2, 200, 33))
def test_conditions_of_the_circulant_schedules(start):
    for p in range(start, start + 33):
        conditions(p)


@pytest.mark.parametrize(
    "p", [257, 513, 1025, *random.Random(1).sample(range(260, 2100), 4)]
)
def test_conditions_of_large_circulant_schedules(p):
    """Among them sizes for which another generator is wrong: one more than a power."""
    conditions(p)
