"""Schedules on circulant graphs: the order of blocks, and the rounds."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus
from isthmus.algorithms.allgatherv_circulant import best_n, circulant
from isthmus.algorithms.parts.circulant import receive_table, receives, rounds, skips
from isthmus.choose import estimate
from isthmus.cost.machine import AlphaBeta
from isthmus.schedules.early_receives import posting
from isthmus.schedules.ir import Recv, Send
from isthmus.schedules.layout import Uneven
from isthmus.schedules.program import trim
from sampling import some

#: sizes for which the generator of an MPI library is wrong
TRAPS = [33, 65, 66, 67, 69, 73, 81, 129]


def conditions(p):
    """Träff's conditions for the schedules of all ranks."""
    table, skip = receive_table(p).astype(int), skips(p)
    q = len(skip) - 1
    own = table.max(axis=1, initial=-1)
    older = np.arange(-q, 0)
    due = np.where(older == own[:, None] - q, own[:, None], older)
    assert (np.sort(table[1:]) == np.sort(due[1:])).all()
    own[0] = q
    for k in range(q):
        # all but what is sent to the root, which needs nothing
        r = np.flatnonzero((np.arange(p) + skip[k]) % p)
        sent = table[(r + skip[k]) % p, k]
        had = (table[r, :k] == sent[:, None]).any(axis=1) | (sent == own[r] - q)
        assert np.where(r == 0, sent == k, had).all()


@pytest.mark.parametrize("start", range(1, 2101, 300))
def test_conditions_of_the_circulant_schedules(start):
    for p in some(range(start, start + 300), 1 if start == 1 else 10):
        conditions(p)


@pytest.mark.parametrize("p", [*TRAPS, 4097, 10_000, 65_536, 65_537, 99_999])
def test_conditions_where_another_generator_is_wrong_and_for_many_ranks(p):
    conditions(p)


def test_the_table_is_what_the_search_finds_for_each_rank():
    rng = np.random.default_rng(0)
    for p in [*range(1, 100), *some(range(100, 2101), 20, 5)]:
        table, q = receive_table(p), len(skips(p)) - 1
        few = [*range(q + 1), p // 2, *rng.integers(0, p, 2), p - 1]
        for r in range(p) if p < 100 else few:
            assert tuple(table[r]) == receives(p, r), (p, r)


@pytest.mark.parametrize("p", [4097, 65_537, 99_999])
def test_the_table_of_many_ranks_is_what_the_search_finds(p):
    table = receive_table(p)
    for r in [*range(100), *np.random.default_rng(p).integers(0, p, 300)]:
        assert tuple(table[r]) == receives(p, r), r


@pytest.mark.parametrize("n", [1, 2, 3, 7, 40])
def test_every_part_arrives_once_in_n_minus_1_plus_log_p_rounds(n):
    for p in (2, 3, 5, 8, 17, *TRAPS):
        parts = np.array([part(np.arange(1, p)) for _, part in rounds(p, n)])
        assert len(parts) == n - 1 + len(skips(p)) - 1
        for c in range(n):
            assert ((parts == c).sum(axis=0) == 1).all()


def moved(p, counts, n):
    """The elements of every rank after an allgatherv, moved for all ranks at once."""
    blocks = Uneven(counts)
    own = np.repeat(np.arange(p), counts)
    has = own[None] == np.arange(p)[:, None]
    received = np.zeros(p, int)
    for r in circulant(p, np.arange(p), blocks, n):
        recv, send = r.comm
        assert isinstance(recv, Recv) and isinstance(send, Send)
        assert (send.to[recv.frm] == np.arange(p)).all()
        # both ends of a message have the same pieces in the same order
        assert (send.data.size[:, recv.frm] == recv.data.size).all()
        assert (send.data.start[:, recv.frm] == recv.data.start).all()
        before = has.copy()
        for i in range(recv.data.size.max(initial=0)):
            piece, rank = np.nonzero(recv.data.size > i)
            at = recv.data.start[piece, rank] + i
            assert before[recv.frm[rank], at].all()
            assert not has[rank, at].any()
            has[rank, at] = True
        received += recv.data.size.sum(axis=0)
    assert (received == sum(counts) - np.asarray(counts)).all()
    return has


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_all_data_arrive_and_none_twice(n):
    rng = np.random.default_rng(n)
    for p in [*range(1, 20), *some(range(20, 131), 8, n)]:
        counts = np.maximum(rng.integers(-4, 8, p), 0)
        assert moved(p, counts, n).all()


def test_neighbours_in_memory_are_neighbours_in_the_message():
    """Whole blocks of consecutive roots: two runs at the most."""
    for r in trim(circulant(21, 4, Uneven([2] * 21), 1)):
        for c in r.comm:
            end = c.data.start + c.data.size
            assert (end[:-1] != c.data.start[1:]).sum() <= 1


def test_a_rank_of_ten_thousand_takes_few_numpy_calls():
    counts = np.random.default_rng(3).integers(0, 4000, 10_000)
    rounds = trim(circulant(10_000, 17, Uneven(counts)))
    n = best_n(counts)
    assert n > 20 and len(rounds) == n - 1 + 14
    assert len(posting(rounds)) == len(rounds)
    received = sum(
        int(c.data.size.sum()) for r in rounds for c in r.comm if isinstance(c, Recv)
    )
    assert received == counts.sum() - counts[17]


STARTUPS = 1000
UNEQUAL = {
    "regular": [5000] * 12,
    "broadcast": [60_000] + [0] * 11,
    "spike": [30_000] + [3000] * 11,
    "linear": [800 * i for i in range(12)],
    "geometric": [60_000 >> i for i in range(12)],
}


@pytest.mark.parametrize("kind", UNEQUAL)
def test_the_chosen_number_of_parts_is_close_to_the_best(kind):
    counts, model = UNEQUAL[kind], AlphaBeta(STARTUPS, 1.0)

    def simulated(n):
        schedule = isthmus.schedule("allgatherv", f"circulant(n={n})", counts=counts)
        return schedule.simulate(model).time

    n = best_n(np.array(counts), STARTUPS)
    best = min(simulated(k) for k in range(1, 24))
    assert simulated(n) <= 1.08 * best
    if kind in ("regular", "broadcast", "spike"):
        assert simulated(n) == pytest.approx(best, rel=2e-3)
        claimed = estimate.circulant(np.array(counts), AlphaBeta(STARTUPS, 1.0))
        assert simulated(n) == pytest.approx(claimed, rel=2e-3)
