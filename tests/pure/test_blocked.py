"""Allgatherv of unequal blocks: pieces, parts, and costs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

import isthmus
from isthmus.cost.machine import AlphaBeta
from isthmus.distributions import DISTRIBUTIONS
from isthmus.schedules.ir import Recv
from sampling import LONG, some

COUNTS = st.lists(st.one_of(st.just(0), st.integers(0, 300)), min_size=1, max_size=24)
BLOCKED = ["blocked_ring", "node_ring", "circulant"]


def received(rounds):
    spans = [s for r in rounds for c in r.comm if isinstance(c, Recv) for s in c.data]
    return sum(s.size for s in spans)


@pytest.mark.parametrize("name", BLOCKED)
@settings(max_examples=60 if LONG else 15)
@given(counts=COUNTS)
def test_everyone_receives_exactly_what_it_lacks(name, counts):
    schedule = isthmus.schedule("allgatherv", name, counts=counts)
    schedule.verify()
    for r in range(schedule.n):
        assert received(schedule.rank(r)) == sum(counts) - counts[r]


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_no_distribution_is_far_from_the_limit(kind):
    """64 ranks, 16 MiB, 2 µs and 12 GB/s; the plain ring is up to 63 times off."""
    model = AlphaBeta(2e-6, 1 / 12e9)
    m = 1 << 24
    counts = DISTRIBUTIONS[kind](64, m)
    times = {
        name: isthmus.schedule("allgatherv", name, counts=counts).simulate(model).time
        for name in BLOCKED
    }
    assert min(times.values()) <= 1.35 * m * model.beta, times


@pytest.mark.parametrize("kind", some([x for x in DISTRIBUTIONS if "-" not in x], 2))
def test_nor_among_many_ranks(kind):
    """16 MiB, 2 µs and 12 GB/s, by the circulant graph."""
    model, m, p = AlphaBeta(2e-6, 1 / 12e9), 1 << 24, 1024 if LONG else 256
    schedule = isthmus.schedule(
        "allgatherv", "circulant", counts=DISTRIBUTIONS[kind](p, m)
    )
    assert schedule.simulate(model).time <= 1.35 * m * model.beta
