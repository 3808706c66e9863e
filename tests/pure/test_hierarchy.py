"""Nodes of several processes: limits, shared ports, ranks ahead by rounds."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus
from isthmus.cost.machine import AlphaBeta, Level, Machine
from isthmus.schedules import registry
from isthmus.schedules.ir import Recv, Reduce, Round, Send, Span
from isthmus.schedules.schedule import Schedule
from isthmus.verify.contracts import Contract
from isthmus.verify.errors import BadMessage, Deadlock

INNER, OUTER = AlphaBeta(3e-7, 1.3e-10), AlphaBeta(1.7e-6, 2.1e-10)
INTER = [
    entry.name
    for entry in registry.algorithms("inter_allgatherv")
    if not entry.node_memory
]
STAGES = ["ring", "bruck"]
A, B = [300, 0, 17, 2000, 5, 5, 90], [40, 4000, 1]
SIZES = {"p": 8, "q": 3, "ka": 240, "kb": 77}


def machine(size, **options):
    inside = Level(size, INNER.alpha, INNER.beta)
    return Machine((inside, Level(None, OUTER.alpha, OUTER.beta)), **options)


def schedules():
    for name in INTER:
        yield isthmus.schedule("inter_allgatherv", name, a=A, b=B)
    for name in STAGES:
        yield isthmus.schedule("allgatherv", name, counts=A)
        yield isthmus.schedule("inter_allgather", f"segmented+{name}", **SIZES)


def by_hand(programs):
    """A schedule of given rounds."""
    contract = Contract(lambda r: {}, lambda r: {})
    each = tuple(range(r, r + 1) for r in range(len(programs)))
    return Schedule("by_hand", "", lambda: contract, lambda r: iter(programs[r]), each)


def message(n):
    return (Span("tmp", 0, n),)


def same(first, second):
    for name in ("finish", "sent", "received", "messages", "sending", "receiving"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name
    assert first.rounds == second.rounds
    for name in ("source", "target", "size", "round", "start", "end"):
        rows = [
            np.lexsort((e.start, e.target, e.source, e.round))
            for e in (first.events, second.events)
        ]
        assert np.array_equal(
            getattr(first.events, name)[rows[0]], getattr(second.events, name)[rows[1]]
        ), name


@pytest.mark.parametrize("example", list(schedules()), ids=lambda s: s.algorithm)
def test_one_process_a_node_or_one_node_is_alpha_beta(example):
    for size, model in ((1, OUTER), (1000, INNER)):
        line = example.simulate(machine(size), record=True)
        same(line, example.simulate(model, record=True))


def test_a_reduction_takes_its_time_as_in_alpha_beta():
    reduce = Reduce(Span("tmp", 0, 7), Span("tmp", 7, 7))
    chain = [
        [Round(), Round((Send(1, message(5)),)), Round(then=(reduce,))],
        [Round(then=(reduce,)), Round((Recv(0, message(5)),), (reduce,))],
    ]
    example = by_hand(chain)
    line = example.simulate(machine(1, gamma=1e-9), record=True)
    model = AlphaBeta(OUTER.alpha, OUTER.beta, gamma=1e-9)
    same(line, example.simulate(model, record=True))


def test_a_node_has_one_port_and_who_asks_first_goes_first():
    # two nodes of two; both of node 0 send to node 1; 3 also sends inside its node
    unit = Machine((Level(2, 0.0, 1.0), Level(None, 0.0, 10.0)))
    example = by_hand(
        [
            [Round((Send(2, message(1)), Send(1, message(1))))],
            [Round((Recv(0, message(1)), Send(3, message(1))))],
            [Round((Recv(0, message(1)), Send(3, message(1))))],
            [Round((Recv(2, message(1)), Recv(1, message(1))))],
        ]
    )
    events = example.simulate(unit, record=True).events
    spans = {
        (int(s), int(t)): (float(b), float(e))
        for s, t, b, e in zip(
            events.source, events.target, events.start, events.end, strict=True
        )
    }
    # 1 → 3 is next at both ends at 1, when 2 → 3 is done, but the port is taken
    assert spans == {
        (0, 2): (0, 10),
        (0, 1): (10, 11),
        (2, 3): (0, 1),
        (1, 3): (10, 20),
    }


def test_all_of_a_node_take_turns():
    """Eight processes swap with eight of another node: the bytes of eight messages in
    a row, and one start-up."""
    swap = by_hand(
        [
            [Round((Recv(r ^ 8, message(100)), Send(r ^ 8, message(100))))]
            for r in range(16)
        ]
    )
    line = swap.simulate(machine(8))
    assert line.time == pytest.approx(OUTER.alpha + 800 * OUTER.beta, rel=1e-12)
    own = Machine((Level(8, 0, 0, shared=False), Level(None, 2.0, 0.0)))
    assert swap.simulate(own).time == 2.0


def test_as_many_levels_as_wanted():
    # racks of 2 nodes of 2 processes: the port of a rack is shared by its four
    levels = (Level(2, 0.0, 1.0), Level(2, 0.0, 10.0), Level(None, 0.0, 100.0))

    def swap(bit):
        return by_hand(
            [
                [Round((Recv(r ^ bit, message(1)), Send(r ^ bit, message(1))))]
                for r in range(8)
            ]
        )

    times = [swap(bit).simulate(Machine(levels)).time for bit in (1, 2, 4)]
    assert times == [1, 2 * 10, 4 * 100]
    free = (levels[0], Level(2, 0.0, 10.0, shared=False), levels[2])
    assert swap(4).simulate(Machine(free)).time == 2 * 100


@pytest.mark.parametrize("example", list(schedules()), ids=lambda s: s.algorithm)
def test_a_port_never_has_two_messages_at_a_time(example):
    for size in (2, 3, 4):
        line = example.simulate(machine(size), record=True)
        assert line.time >= never_two_at_a_port(line.events, size) * (1 - 1e-12)


def test_a_gap_lets_start_ups_of_one_process_overlap():
    """Start-ups of four messages of a rank pass at once, except for the gaps."""
    four = by_hand(
        [
            [Round(tuple(Send(r, message(3)) for r in (1, 2, 3, 4)))],
            *([Round((Recv(0, message(3)),))] for _ in range(4)),
        ]
    )
    levels = Level(1, 0, 0, shared=False), Level(None, 10.0, 2.0, gap=1.0)
    line = four.simulate(Machine(levels), record=True)
    assert line.events.start.tolist() == [0, 7, 14, 21]
    assert line.time == 21 + 16
    levels = levels[0], Level(None, 10.0, 2.0)
    assert four.simulate(Machine(levels)).time == 4 * 16


def test_a_rank_may_be_rounds_ahead():
    """Rank 0 sends in round 0 the message that rank 2 receives in round 2. The orders
    of a round do not matter, since MPI takes messages in any order."""
    example = by_hand(
        [
            [Round((Send(2, message(5)),)), Round((Recv(1, message(1)),))],
            [Round((Send(0, message(1)), Send(2, message(2))))],
            [Round(), Round((Recv(1, message(2)),)), Round((Recv(0, message(5)),))],
        ]
    )
    line = example.simulate(AlphaBeta(0.0, 1.0), record=True)
    # 2 takes what 1 sends after what 1 sends to 0, which waits for 0's first message
    rows = zip(line.events.source, line.events.target, strict=True)
    assert sorted(rows) == [(0, 2), (1, 0), (1, 2)]
    assert line.finish.tolist() == [8, 8, 7]


def test_both_directions_of_a_round_overlap_though_one_comes_steps_later():
    """Rank 1 sends to 2 and receives from 0 in a round; 0 comes two rounds late."""
    example = by_hand(
        [
            [Round((Send(3, message(4)),)), Round((Send(1, message(9)),))],
            [
                Round((Recv(0, message(9)), Send(2, message(9)))),
                Round((Send(2, message(1)),)),
            ],
            [Round((Recv(1, message(9)),)), Round((Recv(1, message(1)),))],
            [Round((Recv(0, message(4)),))],
        ]
    )
    line = example.simulate(AlphaBeta(0.0, 1.0))
    assert line.finish.tolist() == [13, 14, 14, 4]


def never_two_at_a_port(events, size):
    """The most seconds for which a node's port is busy; fails for two messages at a
    time."""
    most = 0.0
    outside = events.source // size != events.target // size
    for ends in (events.source // size, events.target // size):
        for node in np.unique(ends[outside]):
            mine = np.flatnonzero(outside & (ends == node))
            mine = mine[np.argsort(events.start[mine], kind="stable")]
            start, end = events.start[mine], events.end[mine] - OUTER.alpha
            assert np.all(start[1:] >= end[:-1] - 1e-15)
            most = max(most, float((end - start).sum()))
    return most


def test_a_cyclic_placement_is_a_renaming():
    example = isthmus.schedule("allgatherv", "ring", counts=[100] * 8)
    block = example.simulate(machine(4)).time
    cyclic = example.simulate(machine(4, placement=[r % 2 for r in range(8)])).time
    assert block == pytest.approx(7 * (OUTER.alpha + 100 * OUTER.beta), rel=1e-12)
    # four at once through the port, as fast as it passes them or as each of them goes
    port, lane = 400 * OUTER.beta, OUTER.alpha + 100 * OUTER.beta
    longest = max(7 * port + OUTER.alpha, 0.75 * port + 7 * lane)
    assert longest * (1 - 1e-12) <= cyclic < 1.05 * longest


def test_bad_machines_are_refused():
    example = isthmus.schedule("allgatherv", "ring", counts=[1] * 5)
    with pytest.raises(ValueError, match="every level but the last"):
        Machine((Level(None, 1, 1), Level(2, 1, 1)))
    with pytest.raises(ValueError, match="every level but the last"):
        Machine(())
    with pytest.raises(ValueError, match="one unit at least"):
        Machine((Level(0, 1, 1),))
    with pytest.raises(ValueError, match="fewer places than 5"):
        example.simulate(Machine((Level(2, 1, 1), Level(2, 1, 1))))
    with pytest.raises(ValueError, match="no room for 5"):
        example.simulate(machine(2, placement=(0, 0, 0, 1, 1)))
    with pytest.raises(ValueError, match="no room for 5"):
        example.simulate(machine(2, placement=(0, 0)))


def test_orders_that_wait_for_each_other_are_no_deadlock():
    """All four messages are in flight at once, since MPI takes messages in any
    order."""
    example = by_hand(
        [
            [Round((Send(2, message(1)), Send(3, message(1))))],
            [Round((Send(3, message(1)), Send(2, message(1))))],
            [Round((Recv(1, message(1)), Recv(0, message(1))))],
            [Round((Recv(0, message(1)), Recv(1, message(1))))],
        ]
    )
    line = example.simulate(AlphaBeta(0.0, 1.0))
    assert line.messages.tolist() == [2, 2, 0, 0] and line.time == 4
    assert example.simulate(machine(2)).time > 0


def test_a_deadlock_is_seen():
    waits = [[Round((Recv(1, message(1)),)), Round((Send(1, message(1)),))]]
    waits += [[Round((Recv(0, message(1)),)), Round((Send(0, message(1)),))]]
    with pytest.raises(Deadlock, match="rank 0, round 0 waits for 1 from rank 1"):
        by_hand(waits).simulate(machine(2))
    with pytest.raises(BadMessage, match="expects 2"):
        ends = [[Round((Send(1, message(1)),))], [Round((Recv(0, message(2)),))]]
        by_hand(ends).simulate(machine(2))
