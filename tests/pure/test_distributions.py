"""The six distributions: totals, places of large counts, and rounding."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from isthmus.distributions import (
    DISTRIBUTIONS,
    PAPER_DISTRIBUTIONS,
    broadcast,
    counts,
    geometric,
    half,
    half_block,
    linear,
    regular,
    spike,
    spread,
)

P, M = st.integers(1, 70), st.integers(0, 10**12)


@given(st.sampled_from(sorted(DISTRIBUTIONS)), P, M)
def test_counts_add_up_to_m_exactly(name, p, m):
    drawn = counts(name, p, m)
    assert len(drawn) == p and sum(drawn) == m and min(drawn) >= 0
    assert all(type(count) is int for count in drawn)


@given(st.lists(st.integers(0, 1 << 80), min_size=1).filter(any), M)
def test_rounding_moves_less_than_one_and_keeps_the_order(weights, m):
    rounded, whole = spread(m, weights), sum(weights)
    assert sum(rounded) == m
    for count, weight in zip(rounded, weights, strict=True):
        assert abs(count * whole - m * weight) < whole
        assert weight or not count
    ordered = sorted(zip(weights, rounded, strict=True), key=lambda x: (-x[0], -x[1]))
    assert [c for _, c in ordered] == sorted(rounded, reverse=True)


def test_one_rank_has_everything_in_all_of_them():
    for name in DISTRIBUTIONS:
        assert counts(name, 1, 7) == [7], name


def test_two_and_three_ranks():
    two = {name: counts(name, 2, 12) for name in PAPER_DISTRIBUTIONS}
    assert two == {
        "regular": [6, 6],
        "broadcast": [12, 0],
        "spike": [6, 6],
        "half": [12, 0],
        "linear": [8, 4],
        "geometric": [6, 6],
    }
    three = {name: counts(name, 3, 12) for name in PAPER_DISTRIBUTIONS}
    assert three == {
        "regular": [4, 4, 4],
        "broadcast": [12, 0, 0],
        "spike": [6, 3, 3],
        "half": [6, 0, 6],
        "linear": [6, 4, 2],
        "geometric": [6, 3, 3],
    }


def test_fewer_elements_than_ranks():
    assert regular(5, 3) == [1, 1, 1, 0, 0]
    assert broadcast(5, 3) == [3, 0, 0, 0, 0]
    assert spike(5, 3) == [2, 1, 0, 0, 0]
    assert half(5, 2) == [1, 0, 1, 0, 0]
    assert half_block(5, 2) == [1, 1, 0, 0, 0]
    assert linear(5, 3) == [1, 1, 1, 0, 0]
    assert geometric(5, 3) == [2, 1, 0, 0, 0]


def test_placements():
    assert counts("spike-middle", 5, 8) == [1, 1, 4, 1, 1]
    assert counts("spike-last", 5, 8) == [1, 1, 1, 1, 4]
    assert counts("broadcast-middle", 4, 8) == [0, 0, 8, 0]
    assert counts("broadcast-last", 4, 8) == [0, 0, 0, 8]
    assert counts("half-block", 5, 9) == [3, 3, 3, 0, 0]
    assert counts("half", 5, 9) == [3, 0, 3, 0, 3]
    assert spike(5, 8, at=3) == [1, 1, 1, 4, 1]


def test_a_geometric_one_on_many_ranks_is_a_row_of_halves():
    drawn = geometric(4096, 1 << 20)
    assert drawn[:20] == [1 << k for k in range(19, -1, -1)]
    assert sum(drawn[20:]) == 1


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="no distribution 'flat'; known: regular, br"):
        counts("flat", 3, 3)
    with pytest.raises(ValueError, match="at = 3: there are ranks 0 to 2"):
        spike(3, 3, at=3)
    for name in DISTRIBUTIONS:
        with pytest.raises(ValueError, match="m = -1: must be at least 0"):
            counts(name, 3, -1)
        with pytest.raises(ValueError):
            counts(name, 0, 3)
