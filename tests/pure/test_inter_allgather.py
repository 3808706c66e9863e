"""Allgathers between groups: messages by sender, and refused names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import isthmus
from isthmus.schedules.ir import Recv, Send

COUNTS = st.lists(st.one_of(st.just(0), st.integers(0, 40)), min_size=1, max_size=24)


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
    """Figure 1 (p=6, q=2): the pairs of ranks that exchange, and the elements."""
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
    """The sender that goes on comes first, the sender from below last."""
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
    groups = [(ranks, list(program)) for ranks, program in schedule.group_programs()]
    assert [len(rounds) for _, rounds in groups] == [13, 11]
    first = groups[0][1][0].comm[0]
    assert np.shape(first.frm) == (4096,)


def test_unknown_names_are_refused():
    with pytest.raises(
        ValueError, match="no algorithm 'quick' for allgather between two groups; known"
    ):
        isthmus.schedule("inter_allgather", "quick", p=1, q=1, ka=1, kb=1)
    with pytest.raises(ValueError, match="no collective 'gossip'"):
        isthmus.schedule("gossip", "ring")
    with pytest.raises(ValueError, match="'node_aware' shares the memory of nodes"):
        isthmus.schedule(
            "inter_allgather", "segmented+node_aware", p=1, q=1, ka=1, kb=1
        )
    with pytest.raises(ValueError, match="'direct' has no intragroup stage"):
        isthmus.schedule("inter_allgather", "direct+ring", p=1, q=1, ka=1, kb=1)
    schedule = isthmus.schedule("inter_allgatherv", "merged+library", a=[1], b=[1])
    with pytest.raises(ValueError, match="gathers into one buffer only"):
        schedule.rank(0)
