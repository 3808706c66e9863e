"""Allreduce, Gatherv, Scatterv, Alltoall(v) and Barrier inside a group, without MPI."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import isthmus
from isthmus.algorithms.alltoallv import Passing
from isthmus.algorithms.parts.patterns import log2
from isthmus.cost.machine import AlphaBeta
from isthmus.schedules import registry
from isthmus.schedules.ir import Recv, Send
from isthmus.schedules.layout import OwnBlock, Uneven
from isthmus.schedules.program import buffer_size, trim
from isthmus.verify.errors import BadOrder
from isthmus.verify.verify import verify

MODEL = AlphaBeta(2e-6, 1e-9)


def time_of(collective, name, model=MODEL, **sizes):
    return isthmus.schedule(collective, name, **sizes).simulate(model).time


ROUNDS = AlphaBeta(1.0, 0.0)


def test_a_long_allreduce_sends_nothing_twice():
    p, m = 64, 1 << 26
    least = 2 * (p - 1) / p * m * MODEL.beta
    for name in ("ordered", "bruck", "direct"):
        assert least <= time_of("allreduce", name, p=p, m=m) < 1.01 * least
    assert time_of("allreduce", "doubling", p=p, m=m) > 2.9 * least


def test_a_short_allreduce_takes_as_few_rounds_as_there_can_be():
    for p in (1, 2, 4, 16, 64):
        assert time_of("allreduce", "doubling", ROUNDS, p=p, m=1) == log2(p)


def test_only_bruck_needs_a_commutative_operator():
    entries = registry.algorithms("allreduce")
    marked = [e.name for e in entries if e.commutative and not e.node_memory]
    assert marked == ["bruck"]
    schedule = isthmus.schedule("allreduce", "bruck", p=3, m=6)
    ordered = isthmus.schedule("allreduce", "ordered", p=3, m=6)
    with pytest.raises(BadOrder):
        verify(schedule.all_ranks(), ordered.contract)


@pytest.mark.parametrize("collective", ["gatherv", "scatterv"])
@pytest.mark.parametrize("root", [0, 5, 20])
def test_a_rank_of_a_tree_knows_its_subtree_and_holds_no_more(collective, root):
    p = 21
    counts = np.random.default_rng(8).choice([0, 1, 3, 8], p)
    entry = registry.find(collective, "binomial")
    for v in range(1, p):
        r = (v + root) % p
        below = [(x + root) % p for x in range(v, min(v + (v & -v), p))]
        known = np.zeros_like(counts)
        known[below] = counts[below]
        rounds = trim(entry.program(p, r, Uneven(known), root))
        assert rounds == trim(entry.program(p, r, Uneven(counts), root))
        assert buffer_size(rounds, "tmp") <= counts[below].sum()


@pytest.mark.parametrize("collective", ["gatherv", "scatterv"])
def test_linear_knows_no_block_but_its_own(collective):
    counts, entry = [3, 0, 5, 1], registry.find(collective, "linear")
    for r in (0, 1, 3):
        own = OwnBlock(4, r, sum(counts[:r]), counts[r], sum(counts))
        known = trim(entry.program(4, r, Uneven(counts), 2))
        assert trim(entry.program(4, r, own, 2)) == known


def test_the_roots_own_block_is_not_sent():
    for collective in ("gatherv", "scatterv"):
        for entry in registry.algorithms(collective):
            schedule = isthmus.schedule(
                collective, entry.name, counts=[1, 2, 9, 3], root=2
            )
            for rounds in schedule.all_ranks():
                data = [c.data for x in rounds for c in x.comm]
                assert sum(s.size for spans in data for s in spans) < 9


def test_a_short_alltoall_takes_few_rounds():
    for p in (1, 2, 3, 5, 8, 32):
        assert time_of("alltoall", "bruck", ROUNDS, p=p, k=1) == log2(p)
    short = {"p": 64, "k": 8}
    assert time_of("alltoall", "rotated", **short) > 8 * time_of(
        "alltoall", "bruck", **short
    )


def test_a_radix_gives_more_messages_and_fewer_bytes():
    table = [[1 + (i + j) % 24 for j in range(64)] for i in range(64)]
    for radix, rounds in ((2, 6), (4, 3), (8, 2), (64, 1)):
        schedule = isthmus.schedule("alltoallv", f"bruck(radix={radix})", table=table)
        (own, *others) = schedule.rank(5)
        sent = [sum(isinstance(c, Send) for c in x.comm) for x in others]
        assert not own.comm and sent == [radix - 1] * rounds
    times = [
        [
            time_of("alltoall", f"bruck(radix={radix})", p=64, k=k)
            for radix in (2, 8, 64)
        ]
        for k in (8, 300, 10_000)
    ]
    assert [row.index(min(row)) for row in times] == [0, 1, 2]


@pytest.mark.parametrize(("p", "radix"), [(16, 2), (21, 2), (27, 3), (20, 4)])
def test_blocks_of_any_sizes_may_wait_on_their_way(p, radix):
    table = np.random.default_rng(p).integers(0, 40, (p, p))
    isthmus.schedule("alltoallv", f"bruck(radix={radix})", table=table).verify()


def test_a_rank_knows_only_the_blocks_that_pass_through_it():
    p, r, radix = 11, 4, 3
    table = np.random.default_rng(5).integers(0, 9, (p, p))
    entry = registry.named("alltoallv", f"bruck(radix={radix})")
    held = np.zeros((4, p), np.int64)
    for level, way in product(range(4), range(p)):
        origin = (r - way % radix**level) % p
        held[level, way] = table[origin, (origin + way) % p]
    blocks = Passing(table[r], "send", held), Uneven(table[:, r])
    known = isthmus.schedule("alltoallv", f"bruck(radix={radix})", table=table)
    assert trim(entry.program(p, r, *blocks)) == known.rank(r)
    with pytest.raises(ValueError, match="own_counts"):
        trim(entry.program(p, r, Uneven(table[r], "send"), Uneven(table[:, r])))


def test_an_irregular_reduce_scatter_takes_as_long_as_the_allgatherv_backwards():
    counts = [0, 70_000, 3, 3, 9000, 0, 1, 12, 400]
    for n in (1, 4, 9):
        times = [
            time_of(collective, f"circulant(n={n})", counts=counts)
            for collective in ("reduce_scatter", "allgatherv")
        ]
        assert times[0] == pytest.approx(times[1], rel=0.02)
        schedule = isthmus.schedule(
            "reduce_scatter", f"circulant(n={n})", counts=counts
        )
        rounds = [x for x in schedule.rank(3) if x.comm]
        assert len(rounds) <= n - 1 + log2(9)


def test_pat_sends_little_far_and_much_near():
    schedule = isthmus.schedule("allgatherv", "pat", counts=[1] * 16)
    messages = (c for x in schedule.rank(0) for c in x.comm if isinstance(c, Send))
    sent = [(c.to, sum(s.size for s in c.data)) for c in messages]
    assert sent == [(8, 1), (4, 2), (2, 4), (1, 8)]


def test_rotated_has_a_window_of_messages_in_flight():
    schedule = isthmus.schedule("alltoall", "rotated(window=3)", p=9, k=1)
    sent = [sum(isinstance(c, Send) for c in x.comm) for x in schedule.rank(4)]
    assert sent == [0, 3, 3, 2]
    first = schedule.rank(4)[1].comm
    assert [c.frm for c in first if isinstance(c, Recv)] == [3, 2, 1]
