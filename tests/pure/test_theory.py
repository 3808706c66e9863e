"""The theorems of Kang, Träff et al. 2019 as properties, with t_s = 0 and t_w = 1.

Times are then numbers of elements. Shares and segments are whole elements, so a bound
holds up to one element for each rank that a message passes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

import isthmus
from isthmus.cost.machine import AlphaBeta
from isthmus.schedules.ir import Recv, Round
from sampling import LONG

TRANSFER = AlphaBeta(alpha=0.0, beta=1.0)
COUNTS = st.lists(st.one_of(st.just(0), st.integers(0, 400)), min_size=1, max_size=16)
SIZE = st.integers(1, 12)
BLOCK = st.integers(0, 500)
STAGE = st.sampled_from(["ring", "bruck"])
#: and in how many parts
BALANCED = {
    "balanced+ring": 1,
    "balanced+bruck": 1,
    "pipelined": 2,
    "pipelined(parts=5)": 5,
}


def transfer(collective, name, **sizes):
    return isthmus.schedule(collective, name, **sizes).simulate(TRANSFER).time


@settings(max_examples=80 if LONG else 25)
@given(SIZE, SIZE, BLOCK, BLOCK, STAGE)
def test_theorem_1(q, team, ka, kb, stage):
    """Where q divides p: never below M, at most M + k_B."""
    p, kb = q * team, kb * team
    time = transfer("inter_allgather", f"segmented+{stage}", p=p, q=q, ka=ka, kb=kb)
    m = max(p * ka, q * kb)
    assert m <= time <= m + kb


@settings(max_examples=120 if LONG else 25)
@given(SIZE, SIZE, BLOCK, BLOCK, STAGE)
def test_where_q_does_not_divide_p(p, q, ka, kb, stage):
    """Teams of ceil and floor size make both terms of Theorem 1 grow.

    At most max(q ceil(p/q) k_A, s q k_B) + s k_B, where s = (p/q) / floor(p/q).
    """
    p, q = max(p, q), min(p, q)
    large, s = -(-p // q), p / q / (p // q)
    time = transfer("inter_allgather", f"segmented+{stage}", p=p, q=q, ka=ka, kb=kb)
    m = max(p * ka, q * kb)
    assert m <= time <= max(q * large * ka, s * q * kb) + s * kb + p


def test_that_bound_is_nearly_reached():
    """25 and 7: Theorem 1 itself does not hold."""
    ka, kb = 84_000, 84_000
    heavy_a = transfer("inter_allgather", "segmented+ring", p=25, q=7, ka=ka, kb=84)
    assert heavy_a == pytest.approx(7 * 4 * ka)
    assert heavy_a / (25 * ka) == pytest.approx(4 / (25 / 7))
    heavy_b = transfer("inter_allgather", "segmented+ring", p=25, q=7, ka=84, kb=kb)
    assert heavy_b > 1.18 * 7 * kb
    s = 25 / 7 / 3
    assert heavy_b <= s * 7 * kb + s * kb


@pytest.mark.parametrize("name", sorted(BALANCED))
@settings(max_examples=100 if LONG else 10)
@given(a=COUNTS, b=COUNTS)
def test_theorem_3(name, a, b):
    """Never below M, at most M + the largest block, for any counts: the second line."""
    time = transfer("inter_allgatherv", name, a=a, b=b)
    m = max(sum(a), sum(b))
    assert m <= time <= m + max(*a, *b) + BALANCED[name] * (len(a) + len(b))


@pytest.mark.parametrize(
    ("n", "giant", "equal", "takes", "claimed"),
    [(8, 400, 100, 1100, 900), (16, 4000, 500, 11500, 8500)],
)
def test_the_first_line_of_theorem_3_is_no_bound(n, giant, equal, takes, claimed):
    """A port carries the giant and a part of the Allgather of all further data."""
    a, b = [giant] + [0] * (n - 1), [equal] * n
    assert max(sum(a) + max(a), sum(b) + max(b)) == claimed
    for name in ("balanced+ring", "balanced+bruck"):
        time = transfer("inter_allgatherv", name, a=a, b=b)
        assert time >= claimed + n
        assert time <= max(sum(a), sum(b)) + max(*a, *b)
    assert transfer("inter_allgatherv", "balanced+ring", a=a, b=b) == takes
    assert takes == giant + sum(b) * (n - 1) // n


def test_a_share_may_be_longer_than_all_blocks():
    """The proof's first step, where p > q: the exchange lasts as long as a share."""
    example = isthmus.schedule("inter_allgatherv", "balanced", a=[6] * 4, b=[0, 0])
    assert first_round(example).simulate(TRANSFER).time == 12


@settings(max_examples=120 if LONG else 25)
@given(COUNTS, COUNTS)
def test_the_exchange_lasts_as_long_as_the_largest_block_or_share(a, b):
    example = isthmus.schedule("inter_allgatherv", "balanced", a=a, b=b)
    time = first_round(example).simulate(TRANSFER).time
    shares = -(-sum(a) // len(b)), -(-sum(b) // len(a))
    assert time <= max(*a, *b, *shares)


def first_round(example):
    """The schedule cut after the first round."""

    return replace(example, program=lambda r: iter([next(example.program(r), Round())]))


def ascending(example):
    """The schedule with the receives of each round by rank: the obvious order."""

    def turned(rounds):
        for r in rounds:
            recvs = [c for c in r.comm if isinstance(c, Recv)]
            others = [c for c in r.comm if not isinstance(c, Recv)]
            recvs.sort(key=lambda c: c.frm)
            yield Round((*recvs, *others), r.then)

    ranks = example.all_ranks()
    each = tuple(range(r, r + 1) for r in range(example.n))
    return replace(example, program=lambda r: turned(ranks[r]), groups=each)


def test_another_order_of_receives_breaks_the_bound():
    """Blocks that straddle the shares: each sender waits for the sender before."""
    n = 12
    a = [6] + [8] * (n - 1) + [2]
    example = isthmus.schedule("inter_allgatherv", "balanced+bruck", a=a, b=[0] * n)
    right = first_round(example).simulate(TRANSFER).time
    wrong = first_round(ascending(example)).simulate(TRANSFER).time
    assert right <= 8
    assert wrong > 2 * 8


def test_links_are_linear_in_the_processes():
    """p between the groups and a ring in each: 2 p + q, of more than (p + q)² / 2."""
    for p, q in ((6, 2), (8, 3), (64, 64), (200, 56)):
        example = isthmus.schedule(
            "inter_allgather", "segmented+ring", p=p, q=q, ka=64, kb=64
        )
        events = example.simulate(TRANSFER, record=True).events
        pairs = zip(events.source.tolist(), events.target.tolist(), strict=True)
        links = {frozenset(pair) for pair in pairs}
        assert len(links) <= 2 * p + q


def test_without_segments_no_multiple_of_the_bound_holds():
    ratios = {"unsegmented": [], "segmented": []}
    for p in (4, 16, 64, 256):
        sizes = {"p": p, "q": 2, "ka": 1, "kb": 256 * p}
        for name, ratios_of_name in ratios.items():
            time = transfer("inter_allgather", f"{name}+bruck", **sizes)
            ratios_of_name.append(time / max(p, 2 * 256 * p))
    grows = ratios["unsegmented"]
    assert all(y >= 3 * x for x, y in pairwise(grows))
    assert max(ratios["segmented"]) <= 1.5 + 1e-9


@pytest.mark.parametrize("p", [16, 64, 128] if LONG else [16, 32])
def test_root_gathering_costs_what_the_paper_says(p):
    """Eq. 1 except for filling pipelines, Eq. 2 except for the data of a broadcast's
    root."""
    sizes = {"p": p, "q": p, "ka": 8 * (p - 1) * p, "kb": 8 * (p - 1) * p}
    k = sizes["ka"]
    best = transfer("inter_allgather", "root_gathering(startup=1)", **sizes)
    assert (3 * p - 1) * k <= best <= 1.01 * (3 * p - 1) * k
    for name in ("root_gathering_sequential", "root_gathering_ring"):
        real = transfer("inter_allgather", name, **sizes)
        assert real == pytest.approx((7 * p - 1) * k - 4 * k)
