"""The size of the pieces of a blocked ring, by every rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import isthmus
from isthmus.algorithms.parts import piece_size as module
from isthmus.algorithms.parts.piece_size import (
    DEFAULT_PIECE_ELEMENTS,
    PIECE_SIZE_RULES,
    piece_size,
    ring_time,
)
from sampling import LONG

START = float(1 << 14)
STARTUPS = st.one_of(st.just(0.0), st.floats(1e-6, 1e12))
COUNTS = st.lists(st.one_of(st.just(0), st.integers(0, 3000)), min_size=1, max_size=30)


def ranks(name, counts):
    return isthmus.schedule("allgatherv", name, counts=counts).all_ranks()


@pytest.mark.parametrize("rule", ["", "best", "smallest"])
@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(1, 10**6), STARTUPS, st.integers(0, 100))
def test_equal_blocks_stay_whole(rule, p, k, startup, least):
    """Then the blocked ring is the ring, message for message."""
    if rule == "":
        least = 0
    options = f"(rule={rule},startup={startup},size={least})"
    assert ranks("blocked_ring" + options, [k] * p) == ranks("ring", [k] * p)


@pytest.mark.parametrize("rule", PIECE_SIZE_RULES)
@settings(max_examples=25 if LONG else 10)
@given(COUNTS, st.floats(0, 1e5), st.integers(20, 900))
def test_every_rule_makes_a_right_ring(rule, counts, startup, size):
    name = f"blocked_ring(rule={rule},startup={startup},size={size})"
    schedule = isthmus.schedule("allgatherv", name, counts=counts)
    schedule.verify()
    assert schedule.all_ranks() == [schedule.rank(r) for r in range(schedule.n)]


@settings(max_examples=60 if LONG else 25)
@given(COUNTS, st.floats(0, 1e5))
def test_the_best_is_close_to_the_best_of_all(counts, startup):
    counts = np.array(counts)
    best_time = ring_time(counts, piece_size(counts, "best", startup=startup), startup)
    all_sizes = range(1, int(counts.max()) + 2)
    assert best_time <= 1.15 * min(
        ring_time(counts, size, startup) for size in all_sizes
    )
    for size in (PIECE_SIZE_RULES["sqrt"](counts, 0, startup), int(counts.min())):
        assert best_time <= ring_time(counts, max(size, 1), startup)


def test_the_best_tries_few_sizes(monkeypatch):
    tried = []

    def counted(counts, size, startup):
        tried.append(size)
        return ring_time(counts, size, startup)

    monkeypatch.setattr(module, "ring_time", counted)
    piece_size(np.random.default_rng(3).integers(0, 10**9, 10_000))
    assert len(set(tried)) == len(tried) <= 30


def test_the_smallest_block_or_a_threshold_is_rule_1_of_the_paper():
    """Rule 1 looks at the smallest block only; for an empty block, the paper says rule
    3."""
    even, skewed = np.array([90_000, 70_000, 80_000]), np.array([1 << 20, 1 << 10, 4])
    assert piece_size(even, "smallest") == 70_000
    assert piece_size(even // 100, "smallest") == DEFAULT_PIECE_ELEMENTS
    assert piece_size(even // 100, "smallest", 750) == 750
    assert piece_size(even // 100, "smallest", 650) == 700
    assert piece_size(skewed, "smallest", 1) == 4
    empty = np.array([10**6, 10**6, 0])
    assert piece_size(empty, "smallest") == piece_size(empty, "sqrt")


def test_the_square_root_of_the_paper():
    """sqrt(2 startup m / (p + z - 2)); everything where p + z is 2 at the most."""
    spike = np.array([10**6, 0, 0, 0])
    assert piece_size(spike, "sqrt", startup=50) == int((100 * 10**6 / 5) ** 0.5)
    assert piece_size(spike, "sqrt", 5000, startup=50) == 5000
    assert piece_size(np.array([7, 900]), "sqrt") == 907
    assert piece_size(np.array([0]), "sqrt") == 1
    assert piece_size(np.array([5]), "sqrt") == 5


def test_a_size_alone_is_taken_as_it_is():
    counts = np.array([1000, 3, 0])
    assert piece_size(counts, size=77) == piece_size(counts, "fixed", 77) == 77
    assert piece_size(counts, "fixed") == DEFAULT_PIECE_ELEMENTS
    assert piece_size(counts, "best", 77, startup=0) == 77
    assert piece_size(counts) == piece_size(counts, "best")


def test_what_cannot_be_is_refused():
    schedule = isthmus.schedule(
        "allgatherv", "blocked_ring(rule=golden)", counts=[1, 2]
    )
    with pytest.raises(
        ValueError, match=r"no rule 'golden' .* known: best, fixed, smallest, sqrt"
    ):
        schedule.rank(0)
    with pytest.raises(ValueError, match="size = -1: "):
        piece_size(np.array([1]), size=-1)
    for startup in (-1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="startup = "):
            piece_size(np.array([1]), startup=startup)
