"""Every registered algorithm, for every small size and for sizes nobody thought of."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import isthmus
from isthmus.schedules import registry
from isthmus.schedules.ir import Recv, Send
from sampling import LONG, some

INTER = [a.name for a in registry.algorithms("inter_allgatherv")]
INTRA = [a.name for a in registry.algorithms("allgatherv")]
STAGES = [a.name for a in registry.algorithms("allgatherv") if not a.node_memory]
STAGED = [a.name for a in registry.algorithms("inter_allgatherv") if a.staged]
SMALL = range(1, 6 if LONG else 5)

rng = random.Random(7)


def kinds(n):
    """Counts of every kind for a group of n."""
    giant = [rng.choice([0, 1]) for _ in range(n)]
    giant[rng.randrange(n)] = 97
    return [
        [6] * n,
        [rng.choice([0, 0, 1, 2, 9]) for _ in range(n)],
        giant,
        [0] * n,
        [n - i for i in range(n)],
    ]


def check(schedule):
    """Right, and the same whether built for all ranks at once or for each alone."""
    schedule.verify()
    assert schedule.all_ranks() == [schedule.rank(r) for r in range(schedule.n)]


@pytest.mark.parametrize("name", INTER)
@pytest.mark.parametrize("p", SMALL)
def test_irregular_between_groups(name, p):
    for q in SMALL:
        counts = zip(kinds(p), kinds(q)[::-1], strict=True)
        for a, b in some(counts, 2, p + q // 2 + INTER.index(name)):
            check(isthmus.schedule("inter_allgatherv", name, a=a, b=b))


@pytest.mark.parametrize("name", INTER)
def test_regular_between_groups(name):
    for p in SMALL:
        for q in SMALL:
            sizes = (4, 4), (1, 7), (5, 0), (0, 0)
            for ka, kb in some(sizes, 2, p + q + INTER.index(name)):
                check(isthmus.schedule("inter_allgather", name, p=p, q=q, ka=ka, kb=kb))


COUNTS = st.lists(st.one_of(st.just(0), st.integers(0, 40)), min_size=1, max_size=24)


@pytest.mark.parametrize("name", INTER)
@settings(max_examples=40 if LONG else 6)
@given(a=COUNTS, b=COUNTS)
def test_between_groups_of_any_size(name, a, b):
    check(isthmus.schedule("inter_allgatherv", name, a=a, b=b))


@pytest.mark.parametrize("name", STAGED)
@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_fits_every_algorithm_that_has_one(name, stage):
    if (name, stage) == ("merged", "library"):
        schedule = isthmus.schedule("inter_allgatherv", "merged+library", a=[1], b=[1])
        with pytest.raises(ValueError, match="gathers into one buffer only"):
            schedule.rank(0)
        return
    for p, q in ((4, 4), (8, 2), (2, 4), (1, 1)):
        if stage != "recursive_doubling" or name != "merged" or (p, q) == (4, 4):
            check(
                isthmus.schedule(
                    "inter_allgatherv",
                    f"{name}+{stage}",
                    a=list(range(p)),
                    b=[3] * q,
                )
            )


@pytest.mark.parametrize("name", INTRA)
@pytest.mark.parametrize("p", [*range(1, 10), 16, 17])
def test_inside_a_group(name, p):
    if not registry.find("allgatherv", name).needs(p):
        with pytest.raises(ValueError, match=f"does not work for a group of {p}"):
            isthmus.schedule("allgatherv", name, counts=[1] * p)
        return
    for counts in some(kinds(p), 2, p + INTRA.index(name)):
        check(isthmus.schedule("allgatherv", name, counts=counts))


def received(rounds):
    """How many elements a rank receives."""
    return sum(
        s.size for r in rounds for c in r.comm if isinstance(c, Recv) for s in c.data
    )


def messages(rounds):
    return sum(isinstance(c, Send) for r in rounds for c in r.comm)


@pytest.mark.parametrize("name", ["segmented", "balanced", "pipelined", "direct"])
@settings(max_examples=15)
@given(a=COUNTS, b=COUNTS)
def test_the_good_ones_receive_everything_exactly_once(name, a, b):
    schedule = isthmus.schedule("inter_allgatherv", name, a=a, b=b)
    for r in range(schedule.n):
        assert received(schedule.rank(r)) == (sum(b) if r < len(a) else sum(a))


def test_the_figures_of_the_paper():
    """Figure 1 (p=6, q=2): who exchanges with whom, and how much."""
    schedule = isthmus.schedule("inter_allgather", "segmented", p=6, q=2, ka=3, kb=6)
    for i in range(6):
        recv, send = schedule.rank(i)[0].comm
        assert (recv.frm, send.to) == (6 + i // 3, 6 + i // 3)
        assert recv.data[0].size == 2 and recv.data[0].start == 6 * (i // 3) + 2 * (
            i % 3
        )
    """Figure 2 (p=8, q=3): teams of 3, 3 and 2."""
    schedule = isthmus.schedule("inter_allgather", "segmented", p=8, q=3, ka=3, kb=6)
    partners = [schedule.rank(i)[0].comm[0].frm - 8 for i in range(8)]
    assert partners == [0, 0, 0, 1, 1, 1, 2, 2]


def test_the_receive_order_of_algorithm_2():
    """The sender that goes on comes first, the one that came from below last."""
    # shares of 8: b0 gets a0 and part of a1, b1 gets a1, a2, a3 and part of a4
    schedule = isthmus.schedule(
        "inter_allgatherv", "balanced", a=[6, 4, 2, 1, 11], b=[0, 0, 0]
    )
    b1 = [c.frm for c in schedule.rank(6)[0].comm if isinstance(c, Recv)]
    assert b1 == [4, 2, 3, 1]
    b0 = [c.frm for c in schedule.rank(5)[0].comm if isinstance(c, Recv)]
    assert b0 == [1, 0]
    sends = [c.to for c in schedule.rank(4)[0].comm if isinstance(c, Send)]
    assert sends == sorted(sends)


def test_a_large_exchange_has_few_steps_per_rank():
    for name in ("segmented+bruck", "balanced+recursive_doubling"):
        schedule = isthmus.schedule(
            "inter_allgather", name, p=4096, q=4096, ka=512, kb=512
        )
        rounds = schedule.rank(4711)
        assert len(rounds) == 13 and messages(rounds) == 13


def test_lanes_build_all_ranks_in_few_steps():
    schedule = isthmus.schedule(
        "inter_allgather", "segmented+bruck", p=4096, q=1024, ka=4, kb=16
    )
    groups = [(ranks, list(program)) for ranks, program in schedule.lanes()]
    assert [len(rounds) for _, rounds in groups] == [13, 11]
    first = groups[0][1][0].comm[0]
    assert np.shape(first.frm) == (4096,)


def test_bad_sizes_and_names_are_refused():
    with pytest.raises(
        ValueError, match="no algorithm 'quick' for allgather between two groups; known"
    ):
        isthmus.schedule("inter_allgather", "quick", p=1, q=1, ka=1, kb=1)
    with pytest.raises(ValueError, match="no collective 'gossip'"):
        isthmus.schedule("gossip", "ring")
    with pytest.raises(ValueError, match="p = 0: must be at least 1"):
        isthmus.schedule("inter_allgather", "direct", p=0, q=1, ka=1, kb=1)
    with pytest.raises(ValueError, match="a count in b = -2"):
        isthmus.schedule("inter_allgatherv", "direct", a=[1], b=[3, -2])
    with pytest.raises(ValueError, match="a is empty"):
        isthmus.schedule("inter_allgatherv", "direct", a=[], b=[3])
    with pytest.raises(TypeError, match="inter_allgatherv takes a, b; got p"):
        isthmus.schedule("inter_allgatherv", "direct", p=3)
    with pytest.raises(ValueError, match="'node_aware' shares the memory of nodes"):
        isthmus.schedule(
            "inter_allgather", "segmented+node_aware", p=1, q=1, ka=1, kb=1
        )
    with pytest.raises(ValueError, match="'direct' has no intragroup stage"):
        isthmus.schedule("inter_allgather", "direct+ring", p=1, q=1, ka=1, kb=1)


@pytest.mark.parametrize("collective", registry.collectives())
def test_every_algorithm_says_its_idea_and_its_source(collective):
    for entry in registry.algorithms(collective):
        assert len(entry.idea) > 20 and entry.idea.endswith(".")
        assert entry.paper
