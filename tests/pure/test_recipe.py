"""From bytes to one rank's rounds: what runs on MPI is what is verified here."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from isthmus import choose
from isthmus.ahead import posting
from isthmus.contracts import inter_allgatherv
from isthmus.ir import Recv
from isthmus.layout import Even, Uneven
from isthmus.recipe import Sizes, grain, recipe, settle
from isthmus.schedule import touches
from isthmus.verify import verify

NAMES = ["auto", "segmented", "balanced", "merged", "two_step", "root_gathering"]
BYTES = st.lists(st.sampled_from([0, 1, 4, 8, 24, 800, 4096]), min_size=1, max_size=9)


def packed(counts):
    return np.array(counts, np.int64).tobytes()


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(NAMES), BYTES, BYTES)
def test_the_ranks_fit_together(name, a, b):
    sizes = Sizes(packed(a), packed(b))
    made = [recipe(name, sizes, r) for r in range(len(a) + len(b))]
    ua, ub = made[0].units
    assert all(m.units == (ua, ub) for m in made)
    contract = inter_allgatherv([k // ua for k in a], [k // ub for k in b])
    verify([m.rounds for m in made], contract)


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=9),
    st.sampled_from([1, 2, 4, 8, 16]),
)
def test_a_basic_element_is_never_split(counts, itemsize):
    blocks = Uneven([k * itemsize for k in counts])
    assert grain(blocks) % itemsize == 0
    assert all(k % grain(blocks) == 0 for k in blocks.counts)


def test_nothing_to_send_has_a_grain_too():
    assert grain(Even(3, 0)) == 64 and grain(Even(3, 12)) == 4


def test_a_recipe_is_kept_by_value():
    sizes = Sizes((3, 64), (2, 64))
    assert recipe("segmented", sizes, 1) is recipe(
        "segmented", Sizes((3, 64), (2, 64)), 1
    )


def test_the_choice_is_the_same_on_every_rank_and_follows_the_sizes():
    few, many = Sizes((2, 8), (2, 8)), Sizes((512, 1 << 16), (512, 1 << 16))
    assert settle("auto", few) == "direct"
    assert settle("auto", many) == "segmented"
    lopsided = Sizes(packed([1 << 20]), packed([0] * 40))
    assert settle("auto", lopsided) == "balanced"
    assert settle("two_step", few) == "two_step"


def test_stages_follow_the_group_and_its_data():
    assert choose.stage_for(2, 8) == "ring"
    assert choose.stage_for(8, 8) == "recursive_doubling"
    assert choose.stage_for(7, 8) == "bruck"
    assert choose.stage_for(8, 1 << 30) == "ring"


def meet(x, y):
    return x.buf == y.buf and x.start < y.start + y.size and y.start < x.start + x.size


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(NAMES), BYTES, BYTES, st.integers(0, 5))
def test_a_receive_is_posted_early_only_where_nobody_minds(name, a, b, window):
    sizes = Sizes(packed(a), packed(b))
    for r in range(len(a) + len(b)):
        rounds = recipe(name, sizes, r).rounds
        last: dict[int, int] = {}
        for k, posts in enumerate(posting(rounds, window)):
            receives = [c for c in rounds[k].comm if isinstance(c, Recv)]
            assert len(posts) == len(receives)
            for at, c in zip(posts, receives, strict=True):
                assert k - window <= at <= k
                assert at >= last.get(c.frm, 0)
                last[c.frm] = at
                between = [s for j in range(at, k) for s in touches(rounds[j])]
                assert not any(meet(s, t) for s in c.data for t in between)


def test_receives_of_a_ring_are_posted_ahead():
    rounds = recipe("segmented+ring", Sizes((6, 4096), (6, 4096)), 0).rounds
    assert posting(rounds, 4)[5] == [1]


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="no algorithm 'x'"):
        recipe("x", Sizes((1, 8), (1, 8)), 0)
