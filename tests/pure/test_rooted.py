"""Bcast and reduce: their rounds and volumes, and sums in any order."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus
from isthmus.algorithms import bcast
from isthmus.algorithms.parts.circulant import cuts
from isthmus.algorithms.parts.patterns import log2
from isthmus.cost.machine import AlphaBeta
from isthmus.predict.case import Case
from isthmus.predict.predict import limit, predict
from isthmus.schedules import registry
from isthmus.schedules.ir import Copy, Recv, Reduce, Round, Send, Span
from isthmus.schedules.program import buffer_size, renumber, shift, trim
from isthmus.verify.contracts import Contract, reduce as promised
from isthmus.verify.errors import BadOrder, CountedTwice
from isthmus.verify.marks import blank, marks, unordered
from isthmus.verify.verify import WrongResult, verify

rng = np.random.default_rng(11)


def volume(rounds, kind):
    """How many elements the messages of a kind have."""
    return sum(
        s.size for r in rounds for c in r.comm if isinstance(c, kind) for s in c.data
    )


@pytest.mark.parametrize("p", [*range(2, 41), 65, 129])
def test_rounds_and_volumes_of_the_circulant_graph(p):
    n, root = int(rng.integers(1, 9)), int(rng.integers(p))
    sizes = {"p": p, "m": 5 * n + 3, "root": root}
    name = f"circulant(n={n})"
    for collective, kind in (("bcast", Recv), ("reduce", Send)):
        ranks = isthmus.schedule(collective, name, **sizes).all_ranks()
        own = ranks.pop(root)
        assert volume(own, kind) == 0
        assert all(volume(rounds, kind) == sizes["m"] for rounds in ranks)
        # the root is busy in every round
        assert len(own) == n - 1 + log2(p)


@pytest.mark.parametrize(("name", "part_size"), [("chain", 0), ("circulant", 10)])
def test_scratch_of_a_mirrored_reduce_is_all_and_a_part(name, part_size):
    """The part only where several arrive; the root needs nothing else."""
    schedule = isthmus.schedule("reduce", f"{name}(n=4)", p=11, m=40, root=3)
    ranks = schedule.all_ranks()
    assert buffer_size(ranks.pop(3), "tmp") == part_size
    assert max(buffer_size(rounds, "tmp") for rounds in ranks) == 40 + part_size


def test_scratch_of_an_ordered_reduce_is_two_messages():
    ranks = isthmus.schedule("reduce", "binomial", p=11, m=40, root=3).all_ranks()
    assert max(buffer_size(rounds, "tmp") for rounds in ranks) == 80


def test_the_ordered_reduce_takes_one_more_round_to_another_root():
    def rounds(root):
        schedule = isthmus.schedule("reduce", "binomial", p=16, m=8, root=root)
        return schedule.simulate(AlphaBeta(1, 0)).time

    assert [rounds(0), rounds(15)] == [4, 5]


@pytest.mark.parametrize("p", [3, 9, 24])
def test_the_number_of_parts_is_the_best(p):
    m, startup = 40_000, 1000.0

    def time(n):
        schedule = isthmus.schedule("bcast", f"circulant(n={n})", p=p, m=m, root=0)
        return schedule.simulate(AlphaBeta(startup, 1.0)).time

    chosen = time(bcast.parts(p, m, startup))
    assert chosen == pytest.approx(min(map(time, range(1, 30))), rel=2e-3)


def test_cuts_are_the_least_of_the_sum():
    for waste in (0, 1, 9, 10, 25, 144, 1000):
        cost = [n * 5 + waste / n for n in range(1, 60)]
        assert cost[cuts(waste, 5) - 1] == min(cost)


def test_a_group_may_lie_anywhere():
    """Two groups broadcast and reduce side by side."""
    groups = (range(3), range(3, 8))
    programs, m = [], 6
    for group in groups:
        p = len(group)
        for r in range(p):
            forth = bcast.circulant(p, r, m, 1, n=2)
            programs.append(trim(shift(forth, group.start)))

    def after(r):
        return {"recv": marks(1 if r < 3 else 4, m)}

    def before(r):
        return after(r) if r in (1, 4) else {"recv": blank(m)}

    verify(programs, Contract(before, after))


def test_renumber_changes_every_peer():
    program = iter([Round((Send(1, ()), Recv(2, ())))])
    (r,) = renumber(program, lambda x: 5 - x)
    assert (r.comm[0].to, r.comm[1].frm) == (4, 3)
    library = isthmus.schedule("allgatherv", "library", counts=[1, 1]).program(0)
    with pytest.raises(ValueError, match="keeps the ranks"):
        list(renumber(library, lambda x: x))


def in_any_order(p, steps):
    """Rank 0 takes everyone's contribution, the last rank's first."""
    own, room, result = Span("send", 0, 2), Span("tmp", 0, 2), Span("recv", 0, 2)
    first = [Round(then=(Copy(own, result),))]
    taken = [
        Round((Recv(r, (room,)),), steps(r, room, result)) for r in range(p - 1, 0, -1)
    ]
    return [first + taken, *([Round((Send(0, (own,)),))] for _ in range(1, p))]


def once(r, room, result):
    return (Reduce(room, result),)


def test_any_order_is_right_only_where_the_operator_commutes():
    verify(in_any_order(70, once), promised(70, 2, commutative=True))
    with pytest.raises(BadOrder, match="not neighbours"):
        verify(in_any_order(70, once), promised(70, 2))


def test_a_rank_counted_twice_is_caught_in_any_order_too():
    def twice(r, room, result):
        return (Reduce(room, result),) * (2 if r == 66 else 1)

    with pytest.raises(CountedTwice, match=r"rank 0, round 4: .* in common"):
        verify(in_any_order(70, twice), promised(70, 2, commutative=True))


def test_a_rank_left_out_is_caught_in_any_order_too():
    def but_one(r, room, result):
        return (Reduce(room, result),) * (r != 2)

    with pytest.raises(WrongResult, match=r"element 0 of ranks 0, 1, 3, must hold"):
        verify(in_any_order(4, but_one), promised(4, 2, commutative=True))


def test_different_elements_are_not_combined():
    mark = unordered(3)
    programs = [[Round(then=(Reduce(Span("send", 1, 1), Span("recv", 0, 1)),))]]
    start = {"send": marks(0, 2, mark), "recv": marks(1, 2, mark)}
    with pytest.raises(BadOrder, match="different elements"):
        verify(programs, Contract(lambda r: start, lambda r: {}, mark))


@pytest.mark.parametrize("collective", ["bcast", "reduce"])
def test_predictions(collective):
    model = AlphaBeta(2e-6, 1 / 12e9)
    prediction = predict(Case(collective, (20,), (1 << 20,)), model)
    names = {x.name for x in registry.algorithms(collective) if not x.node_memory}
    assert {row.name for row in prediction.rows} == names
    assert prediction.rows[0].name == "circulant"
    assert prediction.chosen == ("circulant" if collective == "bcast" else "library")
    least = limit(prediction.case, model)
    assert least.seconds == pytest.approx(2e-6 + (1 << 20) / 12e9)
    assert prediction.rows[0].time > prediction.limit
    assert predict(Case(collective, (1,), (8,)), model).rows[0].time == 0


def test_reduce_is_a_mirror_of_bcast_in_time():
    model = AlphaBeta(3.0, 1.0)
    for name in ("chain", "circulant"):
        times = {
            isthmus.schedule(collective, f"{name}(n=4)", p=13, m=40, root=5)
            .simulate(model)
            .time
            for collective in ("bcast", "reduce")
        }
        assert len(times) == 1
