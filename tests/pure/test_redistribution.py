"""Redistributions without MPI: layouts, messages, schedules, the order."""

from __future__ import annotations

import time
from random import Random

import numpy as np
import pytest

from isthmus import Layout, Replicate, Shard, redistribution_schedule as schedule
from isthmus.cost.machine import AlphaBeta
from isthmus.redistribution import order
from isthmus.redistribution.messages import incoming, outgoing, spread_to
from isthmus.redistribution.runs import spread
from isthmus.schedules.ir import Recv
from redistributions import case, layouts, part, regular, shape
from sampling import LONG

CASES = 2000 if LONG else 80


# -- layouts


def test_blocks_are_near_equal_and_row_major():
    layout = Layout.blocks((5, 4), grid=(2, 2))
    shapes = [layout.local_shape(r) for r in range(4)]
    assert shapes == [(3, 2), (3, 2), (2, 2), (2, 2)]
    assert layout.local(2) == (slice(3, 5), slice(0, 2))
    assert layout.owner((4, 3)) == 3


def test_cyclic_blocks_are_those_of_scalapack():
    layout = Layout.cyclic((9,), grid=(2,), block=(2,))
    whole = np.arange(9)
    assert whole[layout.local(0)].tolist() == [0, 1, 4, 5, 8]
    assert whole[layout.local(1)].tolist() == [2, 3, 6, 7]


def test_shards_are_those_of_dtensor():
    """Chunks of equal length, so that the last may be empty; an axis cut twice."""
    layout = Layout.sharded((5, 2), mesh=(4, 2), placements=[Shard(0), Replicate()])
    rows = [layout.local_shape(r)[0] for r in range(8)]
    assert rows == [2, 2, 2, 2, 1, 1, 0, 0]
    twice = Layout.sharded((8,), mesh=(2, 2), placements=[Shard(0), Shard(0)])
    assert [twice.local(r) for r in range(4)] == [
        (slice(2 * r, 2 * r + 2),) for r in range(4)
    ]
    assert Layout.sharded((4,), (2,), [Shard(-1)]) == Layout.sharded(
        4, (2,), [Shard(0)]
    )


def test_what_a_rank_has_covers_the_array_and_owner_finds_it():
    for seed in range(CASES):
        rng = Random(seed)
        extents = shape(rng)
        layout = regular(rng, extents, 6, rng.choice(("blocks", "cyclic", "sharded")))
        whole = np.arange(np.prod(extents)).reshape(extents)
        times = np.zeros(whole.size, int)
        for r in range(6):
            mine = part(layout, r, whole)
            assert mine.shape == layout.local_shape(r)
            times[mine.ravel()] += 1
        assert (times == layout.replicas).all()
        for index in list(np.ndindex(*extents))[:50]:
            assert whole[index] in part(layout, layout.owner(index), whole)


def test_own_layouts_index_the_global_array():
    for seed in range(CASES):
        rng = Random(seed)
        extents = shape(rng)
        whole = np.arange(np.prod(extents)).reshape(extents)
        for r, layout in enumerate(layouts(rng, extents, 3, target=seed % 2 == 0)):
            runs, places = layout.flat_runs(r) if r < (layout.ranks or 3) else ((), ())
            if len(runs):
                flat = part(layout, r, whole).ravel()
                assert (flat[spread(places, runs.size)] == runs.indices).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Layout.blocks((4, 4), (2,)), "must have 2 entries"),
        (lambda: Layout.blocks((4, -1), (2, 1)), "none below 0"),
        (lambda: Layout.blocks((4,), (0,)), "none below 1"),
        (lambda: Layout.sharded((4,), (2,), [Shard(1)]), "1 axes"),
        (lambda: Layout.sharded((4,), (2, 2), [Shard(0)]), "one for each"),
        (lambda: Layout.slices((4, 4), [np.s_[0:2], np.s_[1:3]]), "overlap"),
        (lambda: Layout.slices((4,), np.s_[::-1]), "step"),
        (lambda: Layout.indices(4, [4]), "outside"),
        (lambda: Layout.indices(4, [0.5]), "integers"),
        (lambda: Layout.indices(4, [0]).local(0), "without a rank"),
        (lambda: Layout.indices(4, [0]).owner(0), "does not know"),
    ],
)
def test_bad_layouts_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_an_index_outside_has_no_owner():
    with pytest.raises(IndexError, match="outside"):
        Layout.blocks((4, 4), (2, 2)).owner((4, 0))


# -- who sends what to whom


def test_both_ends_agree_and_every_element_crosses_once():
    for seed in range(CASES):
        rng = Random(seed)
        extents, same = shape(rng), seed % 2 == 0
        kinds = ("blocks", "cyclic", "sharded")
        source, target = (regular(rng, extents, 6, rng.choice(kinds)) for _ in "ab")
        whole = np.arange(np.prod(extents)).reshape(extents)
        sent = {}
        for s in range(6):
            mine = part(source, s, whole).ravel()
            for m in outgoing(source, target, s, same):
                assert (s, m.peer) not in sent
                sent[s, m.peer] = mine[spread(m.start, m.size)]
        for t in range(6):
            wanted = part(target, t, whole).ravel()
            got, shares = np.full(wanted.shape, -1), spread_to(target, t, 0)
            low, high = 0, len(wanted)
            if shares:
                i, all_elements = shares[1:]
                low, high = all_elements.offset(i), all_elements.offset(i + 1)
            for m in incoming(source, target, t, same):
                at = spread(m.start, m.size)
                assert (got[at] == -1).all()
                got[at] = sent.pop((m.peer, t))
            assert (got[low:high] == wanted[low:high]).all()
            assert (np.delete(got, np.s_[low:high]) == -1).all()
        assert not sent


def test_replicated_sources_share_the_sending():
    source = Layout.sharded((64,), (2, 3), [Shard(0), Replicate()])
    target = Layout.blocks((64,), (4,))
    sent = [sum(m.total for m in outgoing(source, target, s)) for s in range(6)]
    assert sum(sent) == 64 and max(sent) - min(sent) <= 1


def test_inside_a_group_what_a_rank_has_it_takes_from_itself():
    source = Layout.sharded((8, 8), (4,), [Replicate()])
    target = Layout.sharded((8, 8), (4,), [Shard(1)])
    for r in range(4):
        assert [m.peer for m in outgoing(source, target, r, one_group=True)] == [r]


def test_partners_are_found_in_milliseconds_among_65536():
    source = Layout.blocks((1 << 16, 1 << 16), (256, 256))
    target = Layout.blocks((1 << 16, 1 << 16), (1024, 64))
    begin = time.perf_counter()
    messages = outgoing(source, target, 777)
    assert len(messages) == 4 and sum(m.total for m in messages) == 1 << 16
    assert time.perf_counter() - begin < 0.5  # it takes 1 ms


# -- schedules


def test_schedules_of_all_layouts_are_right():
    for seed in range(CASES):
        rng = Random(seed)
        p, q = rng.randint(1, 6), rng.randint(1, 6)
        inside = p if seed % 3 == 0 else None
        random_case = case(rng, p, inside or q)
        combine = rng.random() < 0.3
        schedule(
            random_case.sources, random_case.targets, inside=inside, combine=combine
        ).verify()


@pytest.mark.parametrize("nodes", ["abb", "abab", "aaabbc"])
def test_no_node_gets_a_long_share_twice(nodes):
    """Replicas on nodes in any order; the source is on a node of its own."""
    n, size = len(nodes), len(nodes) << 17
    source, target = (
        Layout.blocks(size, (1,)),
        Layout.sharded(size, (n,), [Replicate()]),
    )
    exchange = schedule(source, target, nodes=("source", *nodes))
    exchange.verify()
    entered = dict.fromkeys(nodes, 0)
    for r, node in enumerate(nodes, 1):
        for c in (c for x in exchange.rank(r) for c in x.comm):
            if isinstance(c, Recv) and (c.frm == 0 or nodes[c.frm - 1] != node):
                entered[node] += sum(s.size for s in c.data)
    assert set(entered.values()) == {size}


def test_replicas_swap_long_shares_in_pieces():
    source = Layout.blocks((1 << 21,), (2,))
    target = Layout.sharded((1 << 21,), (2,), [Replicate()])
    exchange = schedule(source, target)
    assert len(exchange.rank(2)) > 2
    exchange.verify()


def test_a_hole_is_named():
    held = [Layout.slices((4, 4), np.s_[:2]), Layout.slices((4, 4), np.s_[3:])]
    wanted = [Layout.indices((4, 4), [0, 15]), Layout.indices((4, 4), [11, 9])]
    with pytest.raises(ValueError, match=r"element \(2, 1\), which rank 1"):
        schedule(held, wanted).verify()


# -- the order

CROSSING = {
    "transposed": (Layout.blocks((64, 64), (8, 1)), Layout.blocks((64, 64), (1, 8))),
    "other grid": (
        Layout.blocks((240, 240), (4, 2)),
        Layout.blocks((240, 240), (3, 3)),
    ),
    "fewer": (Layout.blocks((10000,), (13,)), Layout.blocks((10000,), (11,))),
    "cyclic": (
        Layout.cyclic((240, 240), (2, 3), (8, 8)),
        Layout.cyclic((240, 240), (4, 2), (5, 7)),
    ),
    "cubes": (
        Layout.blocks((60, 60, 60), (4, 2, 2)),
        Layout.blocks((60, 60, 60), (2, 3, 3)),
    ),
}


@pytest.mark.parametrize("name", CROSSING)
def test_ports_do_not_idle(name):
    """Within 1.1 times the load of the busiest port."""
    source, target = CROSSING[name]
    exchange = schedule(source, target)
    sends_of_ranks = [
        (s, source.ranks, outgoing(source, target, s)) for s in range(source.ranks)
    ]
    table = [
        (s, base + m.peer, m.total)
        for s, base, messages in sends_of_ranks
        for m in messages
    ]
    line = exchange.simulate(AlphaBeta(alpha=0, beta=1))
    assert order.bound(table) <= line.time <= 1.1 * order.bound(table)
    exchange.verify()


def test_turns_are_all_of_every_message():
    for seed in range(50):
        rng = Random(seed)
        pairs = {(rng.randrange(6), rng.randrange(6, 12)) for _ in range(20)}
        table = [(s, t, rng.randint(1, 1000)) for s, t in sorted(pairs)]
        least = rng.choice((1, 100))
        done: dict[tuple[int, int], int] = {}
        for turn in order.turns(table, least):
            pair = turn.source, turn.target
            assert turn.low == done.get(pair, 0) < turn.high
            done[pair] = turn.high
        assert done == {(s, t): n for s, t, n in table}


def test_short_messages_go_whole():
    ends = Layout.blocks((24, 24), (4, 2)), Layout.blocks((24, 24), (3, 3))
    sent = [
        [sum(len(r.comm) for r in rounds) for rounds in exchange.all_ranks()]
        for exchange in (schedule(*ends), schedule(*ends, least=24 * 24))
    ]
    assert sum(sent[0]) > sum(sent[1]) == 2 * 6 * 4  # rows that meet, and columns
