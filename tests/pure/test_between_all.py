"""Allreduce, Reduce_scatter, Alltoall(v) and Barrier between groups, without MPI."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import isthmus
from isthmus.algorithms.parts.patterns import log2
from isthmus.choose.choice import choice
from isthmus.collectives.records import COLLECTIVES
from isthmus.cost.machine import AlphaBeta
from isthmus.export.goal import goal
from isthmus.export.simgrid import trace
from isthmus.schedules import registry
from isthmus.schedules.ir import Copy, Recv, Round, Send, Span
from isthmus.schedules.layout import Blocks, Even, Rows, Side, Uneven
from isthmus.schedules.program import lay, masked, trim
from isthmus.verify.contracts import Contract
from isthmus.verify.errors import BadOrder, ScheduleError
from isthmus.verify.reference_machine import run
from isthmus.verify.verify import WrongResult, verify
from measured import measured

MODEL = AlphaBeta(2e-6, 1e-9)


# The closed forms


# Against the libraries and the lower bounds, at p = q = 128


def time_of(collective, name, model=MODEL, **sizes):
    return isthmus.schedule(collective, name, **sizes).simulate(model).time


P = 128
MUCH = P * (1 << 20)


@pytest.mark.parametrize("name", ["ordered", "bruck", "direct"])
def test_reduce_scatter_against_libraries_and_its_bound(name):
    sizes = {"p": P, "q": P, "ka": MUCH // P, "kb": MUCH // P}
    times = {
        x: time_of("inter_reduce_scatter_block", x, **sizes)
        for x in (name, "remote_reduce", "linear", "leader")
    }
    assert times["remote_reduce"] > 6 * times[name]
    assert times["linear"] > 120 * times[name] and times["leader"] > 7 * times[name]
    assert times[name] < 1.01 * MUCH * MODEL.beta


@pytest.mark.parametrize("name", ["ordered", "bruck"])
def test_allreduce_against_libraries_and_its_bound(name):
    sizes = {"p": P, "q": P, "m": MUCH}
    times = {
        x: time_of("inter_allreduce", x, **sizes)
        for x in (name, "leaders_long", "three_phase")
    }
    assert times["leaders_long"] > 2.4 * times[name]
    assert times["three_phase"] > 11 * times[name]
    assert times[name] < 1.01 * 2 * (2 * P - 1) / (2 * P) * MUCH * MODEL.beta


def test_a_short_allreduce_takes_as_few_rounds_as_there_can_be():
    rounds = AlphaBeta(1.0, 0.0)
    for p in (1, 2, 4, 16, 128):
        assert time_of("inter_allreduce", "doubling", rounds, p=p, q=p, m=1) == log2(
            p + 1
        )
    sizes = {"p": P, "q": P, "m": 1}
    assert time_of("inter_allreduce", "leaders", rounds, **sizes) == 15
    assert time_of("inter_allreduce", "three_phase", rounds, **sizes) == 23


def test_alltoall_against_its_bounds():
    sizes = {"p": P, "q": P, "ka": 1 << 20, "kb": 1 << 20}
    for name in ("rotated", "pairwise"):
        assert time_of("inter_alltoall", name, **sizes) < 1.01 * MUCH * MODEL.beta
    linear = time_of("inter_alltoall", "linear", **sizes)
    assert linear > 1.9 * MUCH * MODEL.beta
    short = AlphaBeta(2e-6, 1e-9), {"p": P, "q": P, "ka": 8, "kb": 8}
    times = {
        name: time_of("inter_alltoall", name, short[0], **short[1])
        for name in ("bruck", "rotated")
    }
    assert times["rotated"] > 10 * times["bruck"]
    rounds = time_of("inter_alltoall", "bruck", AlphaBeta(1.0, 0.0), **short[1])
    assert rounds == log2(P + 1)


def uneven_times(table):
    """The times of Alltoallv, in units of the busiest port's load."""
    tables = table(), table()
    most = max(x.sum(axis).max() for x in tables for axis in (0, 1))
    names = ("linear", "pairwise", "rotated", "largest_first")
    ab, ba = tables
    return {
        x: time_of("inter_alltoallv", x, ab=ab, ba=ba) / (most * MODEL.beta)
        for x in names
    }


def test_a_paced_exchange_in_pieces():
    """Blocks of zero, one and many pieces; blocks may end in the middle of a piece."""
    rng = np.random.default_rng(3)
    ab, ba = (rng.integers(0, 40, shape) for shape in ((3, 5), (5, 3)))
    ab[1], ba[:, 2] = 0, 100
    for startup in (0.0, 0.1, 0.5, 4.0):
        name = f"paced(startup={startup})"
        schedule = isthmus.schedule("inter_alltoallv", name, ab=ab, ba=ba)
        schedule.verify()
        longest = max(1, round(32 * startup))
        sent = [x for rounds in schedule.all_ranks() for y in rounds for x in y.comm]
        sizes = {s.size for x in sent if isinstance(x, Send) for s in x.data}
        assert max(sizes) == min(longest, 100)


def test_a_paced_reduction_in_pieces():
    for a, b in (([7, 0, 3], [4, 6]), ([5], [1, 1, 3]), ([2, 2], [2, 2])):
        for startup in (0.0, 0.1, 4.0):
            name = f"paced(startup={startup})"
            isthmus.schedule("inter_reduce_scatter", name, a=a, b=b).verify()


def test_auto_paces_long_blocks_where_partners_must_not_change():
    near, far = (measured(5e-4, 1.7e-7, changing=x) for x in (1.0, 1.2))
    alltoall, groups = COLLECTIVES["inter_alltoall"], {"p": 8, "q": 8}
    short, long = (groups | {"ka": k, "kb": k} for k in (8, 10**6))
    assert choice(alltoall, short, far).name == "rotated"
    assert choice(alltoall, long, far).name == "paced"
    assert choice(alltoall, long, near).name == "rotated"
    scatter, vector = COLLECTIVES["inter_reduce_scatter"], groups | {"m": 10**6}
    assert choice(scatter, vector, far).name == "paced"
    ordered = choice(scatter, vector, far, is_ordered=True).name
    assert ordered in ("ordered", "direct")


def test_large_blocks_come_first_in_an_uneven_exchange():
    rng = np.random.default_rng(3)

    def one_giant_each():
        table = np.full((32, 32), 1000)
        table[np.arange(32), rng.permutation(32)] = 1 << 20
        return table

    times = uneven_times(one_giant_each)
    assert times["largest_first"] < 1.1
    assert min(times["rotated"], times["linear"], times["pairwise"]) > 5


def test_a_rotated_exchange_of_uneven_blocks_beats_lock_step():
    rng = np.random.default_rng(3)
    times = uneven_times(lambda: rng.exponential(1 << 20, (32, 32)).astype(int))
    assert times["rotated"] < 1.6 and times["largest_first"] < 1.75
    assert 1.2 * times["rotated"] < times["pairwise"] < times["linear"]


def test_a_barrier_against_its_bound():
    rounds = AlphaBeta(1.0, 0.0)

    def time(name, p, q):
        return time_of("inter_barrier", name, rounds, p=p, q=q)

    names = ("dissemination", "hypercube", "leaders", "local_first")
    assert [time(name, P, P) for name in names] == [8, 8, 15, 23]
    for p in range(1, 12):
        for q in range(1, 12):
            least = log2(max(p, q) + 1)
            assert least <= time("dissemination", p, q) <= least + 1


# What must be known


class AsksForCounts(Exception):
    """The error of a rank that looks at unknown counts of the remote group."""


@dataclass(frozen=True)
class Hidden(Blocks):
    """Blocks with unknown edges; only the number and the total are known."""

    n: int
    whole: int
    buf: str = "recv"

    def offset(self, i):
        if not np.isin(i, (0, self.n)).all():
            raise AsksForCounts
        return 0 if np.ndim(i) == 0 and i == 0 else self.whole

    def find(self, x):
        raise AsksForCounts


@pytest.mark.parametrize(
    "entry", list(registry.algorithms("inter_reduce_scatter")), ids=lambda e: e.name
)
def test_who_says_so_need_not_know_the_other_counts(entry):
    a, b = [3, 0, 5], [1, 7]
    here, there = Side(0, Uneven(a)), Side(3, Uneven(b))
    hidden = Side(3, Hidden(2, 8))
    for r in range(3):
        if entry.other_counts:
            with pytest.raises(AsksForCounts):
                trim(entry.program(r, here, hidden))
        else:
            known = trim(entry.program(r, here, there))
            assert trim(entry.program(r, here, hidden)) == known


def test_the_rows_of_a_table_are_the_blocks_of_each_rank():
    table = np.array([[0, 2, 5], [0, 0, 4]])
    batch = Rows(table, np.arange(2))
    assert batch.n == 2
    for r in range(2):
        rows = Rows(table, r)
        for j in range(-1, 4):
            assert rows.offset(j) == batch.offset(j)[r]
            assert rows.size(j) == batch.size(j)[r]


# Signals, and what a barrier promises


def test_a_message_without_spans_is_sent_and_one_of_empty_spans_is_not():
    nothing = (Span("send", 0, 0),)
    program = [Round((Send(1, ()), Send(2, nothing), Recv(3, (), False)))]
    assert trim(program) == [Round((Send(1, ()),))]
    batch = isthmus.schedule("inter_barrier", "dissemination", p=2, q=1)
    assert batch.rank(0)[0].comm == (Recv(2, ()), Send(1, ()))


def test_signals_take_a_start_up_in_every_model():
    schedule = isthmus.schedule("inter_barrier", "dissemination", p=3, q=1)
    line = schedule.simulate(MODEL, record=True)
    assert line.time == 2 * MODEL.alpha and line.messages.sum() == 8
    assert line.sent.sum() == 0 and len(line.events) == 8
    assert "send 0b to 1 tag 0" in goal(schedule)
    assert "0 isend 1 0 0" in trace(schedule)


def barrier(n):
    """The contract of a barrier of `n` ranks."""
    return Contract(lambda r: {}, lambda r: {}, waits_for=lambda r: range(n))


def test_a_barrier_is_wrong_if_one_may_leave_early():
    for p, q in ((2, 2), (3, 4), (5, 1)):
        for entry in registry.algorithms("inter_barrier"):
            schedule = isthmus.schedule("inter_barrier", entry.name, p=p, q=q)
            ranks = schedule.all_ranks()
            for k in range(max(map(len, ranks))):
                # the same without any messages of one round
                less = [[x for i, x in enumerate(rank) if i != k] for rank in ranks]
                with pytest.raises(ScheduleError):
                    verify(less, schedule.contract, schedule.nodes)


def test_a_rank_has_heard_only_of_what_was_known_when_a_message_was_posted():
    """Ranks 0 → 1 → 2 in a round: the second message may leave before the first
    arrives."""
    chain = [
        [Round((Send(1, ()),))],
        [Round((Recv(0, ()), Send(2, ())))],
        [Round((Recv(1, ()),))],
    ]
    assert run(chain, [{}] * 3) == [0b001, 0b011, 0b110]
    chain[1] = [Round((Recv(0, ()),)), Round((Send(2, ()),))]
    assert run(chain, [{}] * 3) == [0b001, 0b011, 0b111]
    with pytest.raises(WrongResult, match="rank 0 may end before rank 1 has begun"):
        verify(chain, barrier(3))


def test_whoever_calls_the_library_hears_of_its_group():
    schedule = isthmus.schedule("allgatherv", "library", counts=[1, 1, 1])
    memory = [schedule.contract.before(r) for r in range(3)]
    assert run(schedule.all_ranks(), memory) == [0b111] * 3


# Wrong order, wrong sizes


def test_a_sum_in_another_order_is_caught():
    schedule = isthmus.schedule("inter_allreduce", "bruck", p=3, q=3, m=6)
    ordered = isthmus.schedule("inter_allreduce", "ordered", p=3, q=3, m=6)
    schedule.verify()
    with pytest.raises(BadOrder):
        verify(schedule.all_ranks(), ordered.contract)


# Composing


def test_lay_moves_messages_and_steps():
    span = Span("tmp", 2, 3)
    program = [Round((Send(1, (span,)),), (Copy(span, Span("recv", 0, 3)),))]
    (r,) = lay(iter(program), {"tmp": ("recv", 4)})
    assert r.comm[0].data == (Span("recv", 6, 3),)
    assert (r.then[0].src, r.then[0].dst) == (Span("recv", 6, 3), Span("recv", 0, 3))


def test_only_masks_messages_and_steps():
    span = Span("tmp", 0, 1)
    program = [Round((Send(1, (span,)), Recv(2, (), False)), (Copy(span, span),))]
    (r,) = masked(iter(program), np.array([True, False]))
    assert [c.when.tolist() for c in (*r.comm, *r.then)] == [
        [True, False],
        [False, False],
        [True, False],
    ]
    library = isthmus.schedule("allgatherv", "library", counts=[1, 1]).program(0)
    with pytest.raises(ValueError, match="for all ranks"):
        list(masked(library, True))


def test_blocks_within_another_buffer():
    assert Even(2, 3).within("tmp") == Even(2, 3, "tmp")
