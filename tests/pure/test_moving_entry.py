"""The moving entry: right for any pieces and placement, never above the bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import isthmus
from isthmus.algorithms.moving_entry import (
    best_size,
    departures_of,
    queue,
    ring_order,
    rounds_of,
)
from isthmus.cost.machine import AlphaBeta
from isthmus.schedules.ir import Recv, Send
from isthmus.schedules.layout import Uneven

ROUNDS, BYTES = AlphaBeta(1.0, 0.0), AlphaBeta(0.0, 1.0)
COUNTS = st.lists(
    st.one_of(st.just(0), st.integers(0, 9), st.just(60)), min_size=1, max_size=9
)
SIZE = st.sampled_from([1, 2, 3, 7, 100])


def placements(draw, n):
    """No placement, or a node for each of n ranks."""
    if draw(st.booleans()):
        return ()
    return tuple(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))


def queues(a, b, size, nodes=()):
    orders = (
        ring_order(np.array(a), nodes[: len(a)]),
        ring_order(np.array(b), nodes[len(a) :]),
    )
    return [queue(np.array(k), o, size) for k, o in zip((a, b), orders, strict=True)]


@settings(max_examples=20)
@given(COUNTS, COUNTS, SIZE, st.data())
def test_every_port_has_one_piece_in_a_round(a, b, size, data):
    """The heart of the proof: lock-step rounds, as many as `rounds_of` says."""
    nodes = placements(data.draw, len(a) + len(b))
    schedule = isthmus.schedule(
        "inter_allgatherv", f"moving_entry(size={size})", a=a, b=b, nodes=nodes
    )
    both_queues = queues(a, b, size, nodes)
    for r in range(schedule.n):
        rounds = list(schedule.program(r))
        assert len(rounds) <= rounds_of(*both_queues)
        wanted = sum(b) if r < len(a) else sum(a)
        received = 0
        for x in rounds:
            moved = [
                (type(c), sum(s.size for s in c.data))
                for c in x.comm
                if c.when and sum(s.size for s in c.data)
            ]
            kinds = [kind for kind, _ in moved]
            assert kinds.count(Send) <= 1 and kinds.count(Recv) <= 1
            assert all(n <= size for _, n in moved)
            received += sum(n for kind, n in moved if kind is Recv)
        assert received == wanted
    assert schedule.simulate(ROUNDS).time <= rounds_of(*both_queues)


@settings(max_examples=60)
@given(COUNTS, COUNTS, SIZE)
def test_the_rounds_are_those_of_the_proof(a, b, size):
    """Without nodes: M/B and less than three times the larger group."""
    p, q = len(a), len(b)
    m = max(sum(a), sum(b))
    assert rounds_of(*queues(a, b, size)) <= m / size + 3 * max(p, q) - 2 + 1e-9


def test_every_round_that_is_counted_is_needed():
    """Every round in `rounds_of` is necessary: pieces, moves, and the way round."""
    a, b = [60] + [0] * 7, [8] * 8
    schedule = isthmus.schedule("inter_allgatherv", "moving_entry(size=4)", a=a, b=b)
    # the giant pauses for seven owners, and its last piece makes seven more hops
    assert schedule.simulate(ROUNDS).rounds == rounds_of(*queues(a, b, 4)) == 15 + 7 + 7


@pytest.mark.parametrize("n", [4, 16])
def test_a_giant_takes_little_more_than_the_bound(n):
    """A block of M beside equal blocks: Algorithm 2 takes nearly twice the bound."""
    m = 48_000
    giant, equal = [m] + [0] * (n - 1), [m // n] * n
    for a, b in ((giant, equal), (equal, giant), (giant, giant)):
        time = isthmus.schedule(
            "inter_allgatherv", "moving_entry(startup=1)", a=a, b=b
        ).simulate(BYTES)
        assert m <= time.time <= 1.05 * m
    time = isthmus.schedule("inter_allgatherv", "balanced+ring", a=giant, b=equal)
    assert time.simulate(BYTES).time == pytest.approx((2 - 1 / n) * m)


@given(COUNTS, COUNTS)
def test_short_pieces_come_as_near_as_one_likes(a, b):
    """M + o(M) for any counts: only pieces and groups are left over."""
    k, size = 12, 2
    a, b = [k * x for x in a], [k * x for x in b]
    schedule = isthmus.schedule(
        "inter_allgatherv", f"moving_entry(size={size})", a=a, b=b
    )
    m = max(sum(a), sum(b))
    assert m <= schedule.simulate(BYTES).time <= m + 3 * size * max(len(a), len(b))


def test_a_reduction_takes_as_long_and_two_pieces_of_scratch():
    a, b = [64] + [0] * 7, [8] * 8
    forth, back = (
        isthmus.schedule(collective, "moving_entry(size=4)", a=a, b=b)
        for collective in ("inter_allgatherv", "inter_reduce_scatter")
    )
    for model in (ROUNDS, BYTES):
        assert back.simulate(model).time == pytest.approx(forth.simulate(model).time)
    spans = [s for x in back.rank(3) for c in x.comm for s in c.data if s.buf == "tmp"]
    assert max(s.start + s.size for s in spans) == 8


def test_a_node_is_entered_once():
    """If all data of each node are in its largest block, ranks of a node are
    neighbours, and every byte crosses each port of a node once."""
    nodes = [0, 1, 2, 0, 1, 2] * 2
    nodes = [x + 3 * (r >= 6) for r, x in enumerate(nodes)]
    a, b = [600, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 600]
    for node_option, entered in ((nodes, 600), ((), None)):
        schedule = isthmus.schedule(
            "inter_allgatherv", "moving_entry(size=10)", a=a, b=b, nodes=node_option
        )
        crossed = dict.fromkeys(nodes, 0)
        events = schedule.simulate(AlphaBeta(0.0, 1.0), record=True).events
        for source, target, n in zip(
            events.source, events.target, events.size, strict=True
        ):
            if nodes[source] != nodes[target]:
                crossed[nodes[target]] += n
        if entered:
            assert set(crossed.values()) == {entered}
        else:
            assert max(crossed.values()) > 600


def test_pieces_follow_the_start_up():
    counts = [np.array([1 << 20, 0, 0, 0]), np.full(4, 1 << 18)]
    sizes = [best_size(counts, s) for s in (1, 100, 10_000, 1e9)]
    assert sizes == sorted(sizes) and sizes[-1] == 1 << 20
    times = []
    for size in (*sizes[:3],):
        both_queues = [queue(k, np.argsort(k, kind="stable"), size) for k in counts]
        times.append(rounds_of(*both_queues) * (100 + size))
    assert times[1] == min(times)


def test_nothing_to_send_takes_no_round():
    schedule = isthmus.schedule("inter_allgatherv", "moving_entry", a=[0, 0], b=[0])
    assert all(not schedule.rank(r) for r in range(3))
    blocks = [Uneven(np.array([0, 0])), Uneven(np.array([0]))]
    both_queues = [queue(np.zeros(n, int), np.arange(n), 4) for n in (2, 1)]
    assert [x.n for x in departures_of(blocks, both_queues)] == [0, 0]
