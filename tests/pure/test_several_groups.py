"""Collectives among several groups, without MPI."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import isthmus
from isthmus.algorithms.multi_allgatherv import best_size
from isthmus.choose.choice import choice
from isthmus.choose.tuning import BUILT_IN
from isthmus.collectives.placement import Placement
from isthmus.collectives.records import COLLECTIVES
from isthmus.cost.machine import AlphaBeta
from isthmus.schedules import registry
from isthmus.schedules.ir import Recv, Round, Send, Span
from isthmus.schedules.program import fused
from isthmus.verify.verify import WrongResult, verify
from measured import measured

NETWORK = measured(2e-6, 1 / 12e9)
#: where only bytes count, and where only rounds do
BYTES, ROUNDS = AlphaBeta(0.0, 1.0), AlphaBeta(1.0, 0.0)


def test_blocks_in_the_wrong_order_are_found():
    schedule = isthmus.schedule("multi_allgatherv", "direct", groups=[[2], [2], [2]])
    wrong = schedule.all_ranks()
    swapped = [x for x in wrong[0][0].comm if isinstance(x, Recv)]
    ends = [
        Recv(swapped[0].frm, swapped[1].data),
        Recv(swapped[1].frm, swapped[0].data),
    ]
    sends = [x for x in wrong[0][0].comm if isinstance(x, Send)]
    wrong[0] = [Round((*ends, *sends))]
    with pytest.raises(WrongResult, match="rank 0"):
        verify(wrong, schedule.contract)


# Against the bound


def totals(groups):
    return [sum(counts) for counts in groups]


def bound(groups):
    """The most elements that a rank must receive, or send."""
    elements = totals(groups)
    return max(sum(elements) - min(elements), *(max(counts) for counts in groups))


def time_of(name, groups, model=BYTES):
    return (
        isthmus.schedule("multi_allgatherv", name, groups=groups).simulate(model).time
    )


def received(example, r):
    data = [c.data for x in example.rank(r) for c in x.comm if isinstance(c, Recv)]
    return sum(s.size for spans in data for s in spans)


@pytest.mark.parametrize(
    "name", ["direct", "balanced", "pairs", "ring", "ring(size=3)"]
)
def test_nobody_receives_more_than_it_needs(name):
    groups = [[5, 0, 9], [7], [20, 1, 1, 1], [3, 3]]
    schedule = isthmus.schedule("multi_allgatherv", name, groups=groups)
    for ranks, counts in zip(schedule.groups, groups, strict=True):
        wanted = sum(totals(groups)) - sum(counts)
        assert all(received(schedule, r) == wanted for r in ranks)


@pytest.mark.parametrize(("g", "p"), [(3, 4), (4, 5), (6, 3), (3, 1)])
def test_equal_groups_meet_the_bound_and_pay_few_rounds(g, p):
    groups = [[960] * p] * g
    for stage in ("ring", "bruck"):
        assert time_of(f"balanced+{stage}", groups) == bound(groups)
    assert time_of("balanced+bruck", groups, ROUNDS) == g - 1 + (p - 1).bit_length()
    assert time_of("merged+bruck", groups) == (g * p - 1) * 960
    even = time_of("pairs+bruck", groups) / bound(groups)
    assert even == pytest.approx((g + g % 2 - 1) / (g - 1))


@settings(max_examples=10)
@given(
    st.lists(
        st.lists(st.integers(0, 400), min_size=1, max_size=5), min_size=2, max_size=5
    ),
    st.sampled_from([7, 40]),
)
def test_the_ring_takes_no_longer_than_was_proved(groups, size):
    """The bound of docs/several_groups.md: rounds, and a round for each piece of the
    largest block of each group."""
    pieces = [[max(-(-k // size), 1) for k in counts] for counts in groups]
    elements = sum(map(sum, pieces))
    rounds = max(elements - sum(n) + len(n) - 1 for n in pieces)
    most = (rounds + sum(map(max, pieces))) * size
    assert time_of(f"ring(size={size})", groups) <= most


@pytest.mark.parametrize("ps", [(8, 8, 8), (2, 8, 16), (3, 5, 7, 2), (1, 1, 1, 1)])
def test_with_short_pieces_the_ring_comes_near_the_bound(ps):
    """Within (1 + 3/(2 p)) of the bound, with p the mean size of a group."""
    groups = [[320] * p for p in ps]
    most = 1 + 3 * len(ps) / (2 * sum(ps))
    assert time_of("ring(size=10)", groups) <= most * bound(groups)


def test_one_giant_block_does_not_hold_up_the_ring():
    groups = [[80] * 8 for _ in range(4)]
    groups[1][3] = 6400
    assert time_of("ring(size=16)", groups) < 1.05 * bound(groups)
    assert time_of("balanced", groups) > 2 * bound(groups)


def test_an_exchange_of_equal_groups_meets_the_bound():
    for g, p in ((3, 2), (4, 3), (5, 1)):
        group = np.repeat(np.arange(g), p)
        table = np.where(group[:, None] == group, 0, 10)
        sizes = {"sizes": [p] * g, "table": table.tolist()}
        schedule = isthmus.schedule("multi_alltoallv", "rotated", **sizes)
        assert schedule.simulate(BYTES).time == (g - 1) * p * 10
        entry = registry.find("multi_alltoallv", "rotated")
        assert entry.cost([p] * g, [10] * g, 0.0, 1.0) == (g - 1) * p * 10


# Choosing, and the parts


def chosen(groups, machine=NETWORK):
    record = COLLECTIVES["multi_allgatherv"]
    return choice(record, {"groups": groups}, machine).name


def test_what_is_chosen():
    assert chosen([[8] * 8] * 4).startswith("merged")
    assert chosen([[1 << 20] * 8] * 4) == "balanced"
    assert chosen([[1 << 10] * 2] * 3, BUILT_IN) == "direct"
    giant = [[1 << 17] * 8 for _ in range(4)]
    giant[1][3] = 1 << 26
    assert chosen(giant) in ("merged+circulant", "ring")
    assert chosen([[1 << 28] * 2 + [0] * 20] * 3) == "ring"
    assert chosen([[5, 5]]) == "direct"


def test_pieces_get_shorter_where_start_ups_do():
    counts = [np.full(8, 1 << 20)] * 3
    case = [best_size(counts, startup) for startup in (1e6, 1e4, 1e2)]
    assert case == sorted(case, reverse=True) and len(set(case)) == 3


def test_a_rank_builds_its_rounds_in_units():
    groups = ((64, 128), (32,), (0, 320, 96))
    sizes = {"groups": [[k // 32 for k in counts] for counts in groups]}
    placement = Placement(startup_bytes=NETWORK.startup_bytes)
    record = COLLECTIVES["multi_allgatherv"]
    on_mpi = record.schedule("ring", sizes, placement, unit=32)
    schedule = isthmus.schedule(
        "multi_allgatherv",
        f"ring(startup={NETWORK.startup_bytes / 32})",
        groups=[[k // 32 for k in counts] for counts in groups],
    )
    assert on_mpi.rank(2) == schedule.rank(2)


def test_fused_programs_send_one_message():
    def single_message(buf, peer, when=True):
        return iter([Round((Send(peer, (Span(buf, 0, 3),), when),))])

    (fused_round,) = fused(single_message("send", 1), single_message("recv", 1, False))
    (message,) = fused_round.comm
    assert message.to == 1 and [s.size for s in message.data] == [3, 0]
    (apart,) = fused(single_message("send", 1), single_message("recv", 2))
    assert [c.to for c in apart.comm] == [1, 2]
