"""Nodes with several processes: limits, shared ports, and the two ways to simulate."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus
from isthmus.cost.alphabeta import AlphaBeta
from isthmus.cost.hierarchy import Hierarchy, Level
from isthmus.schedules import registry
from isthmus.schedules.ir import Recv, Reduce, Round, Send, Span
from isthmus.schedules.schedule import Schedule
from isthmus.verify.contracts import Contract
from isthmus.verify.errors import Deadlock

INNER, OUTER = AlphaBeta(3e-7, 1.3e-10), AlphaBeta(1.7e-6, 2.1e-10)
INTER = [
    entry.name
    for entry in registry.algorithms("inter_allgatherv")
    if not entry.node_memory
]
STAGES = ["ring", "bruck"]
A, B = [300, 0, 17, 2000, 5, 5, 90], [40, 4000, 1]
SIZES = {"p": 8, "q": 3, "ka": 240, "kb": 77}


def machine(size, exact=False, **more):
    inside = Level(size, INNER.alpha, INNER.beta)
    return Hierarchy(
        (inside, Level(None, OUTER.alpha, OUTER.beta)), exact=exact, **more
    )


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


def same(one, two):
    for name in ("finish", "sent", "received", "messages", "sending", "receiving"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert one.rounds == two.rounds
    for name in ("source", "target", "size", "round", "start", "end"):
        rows = [
            np.lexsort((e.start, e.target, e.source, e.round))
            for e in (one.events, two.events)
        ]
        assert np.array_equal(
            getattr(one.events, name)[rows[0]], getattr(two.events, name)[rows[1]]
        ), name


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("made", list(schedules()), ids=lambda s: s.algorithm)
def test_one_process_a_node_or_one_node_is_alpha_beta(made, exact):
    for size, model in ((1, OUTER), (1000, INNER)):
        line = made.simulate(machine(size, exact), record=True)
        same(line, made.simulate(model, record=True))


@pytest.mark.parametrize("exact", [False, True])
def test_a_reduction_takes_its_time_as_in_alpha_beta(exact):
    reduce = Reduce(Span("tmp", 0, 7), Span("tmp", 7, 7))
    chain = [
        [Round(), Round((Send(1, message(5)),)), Round(then=(reduce,))],
        [Round(then=(reduce,)), Round((Recv(0, message(5)),), (reduce,))],
    ]
    made = by_hand(chain)
    line = made.simulate(machine(1, exact, gamma=1e-9), record=True)
    model = AlphaBeta(OUTER.alpha, OUTER.beta, gamma=1e-9)
    same(line, made.simulate(model, record=True))


@pytest.mark.parametrize("exact", [False, True])
def test_a_node_has_one_port_and_who_asks_first_goes_first(exact):
    # two nodes of two; both of node 0 send to node 1; 3 also sends inside its node
    unit = Hierarchy((Level(2, 0.0, 1.0), Level(None, 0.0, 10.0)), exact=exact)
    made = by_hand(
        [
            [Round((Send(2, message(1)), Send(1, message(1))))],
            [Round((Recv(0, message(1)), Send(3, message(1))))],
            [Round((Recv(0, message(1)), Send(3, message(1))))],
            [Round((Recv(2, message(1)), Recv(1, message(1))))],
        ]
    )
    events = made.simulate(unit, record=True).events
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


def test_a_wait_for_one_port_leaves_the_other_to_others():
    # 0 and 1 in node 0; 2, 3, 4 alone in nodes 1, 2, 3; 4 keeps 2 busy when 0 asks
    places = (0, 0, 1, 2, 3)
    model = Hierarchy(
        (Level(2, 1.0, 0.0), Level(None, 0.0, 1.0)), placement=places, exact=True
    )
    made = by_hand(
        [
            [Round((Send(2, message(4)),))],
            [Round(), Round((Send(3, message(3)),))],
            [Round((Recv(4, message(9)), Recv(0, message(4))))],
            [Round(), Round((Recv(1, message(3)),))],
            [Round((Send(2, message(9)),))],
        ]
    )
    line = made.simulate(model)
    assert line.finish.tolist() == [13, 3, 13, 3, 9]
    # round by round, the message of round 1 comes after the one of round 0
    later = made.simulate(Hierarchy(model.levels, placement=places))
    assert later.finish.tolist() == [13, 16, 13, 16, 9]


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
    own = Hierarchy((Level(8, 0, 0, shared=False), Level(None, 2.0, 0.0)))
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

    times = [swap(bit).simulate(Hierarchy(levels)).time for bit in (1, 2, 4)]
    assert times == [1, 2 * 10, 4 * 100]
    free = (levels[0], Level(2, 0.0, 10.0, shared=False), levels[2])
    assert swap(4).simulate(Hierarchy(free)).time == 2 * 100


@pytest.mark.parametrize("made", list(schedules()), ids=lambda s: s.algorithm)
def test_both_ways_move_the_same_and_never_beat_the_port(made):
    for size in (2, 3, 4):
        fast, exact = (
            made.simulate(machine(size, e), record=True) for e in (False, True)
        )
        assert np.array_equal(fast.sent, exact.sent)
        for line in (fast, exact):
            busy = never_two_at_a_port(line.events, size)
            assert line.time >= busy * (1 - 1e-12)
        assert fast.time == pytest.approx(exact.time, rel=0.35)


def never_two_at_a_port(events, size):
    """The most seconds that a node's port is busy; none has two messages at a time."""
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
    made = isthmus.schedule("allgatherv", "ring", counts=[100] * 8)
    block = made.simulate(machine(4)).time
    cyclic = made.simulate(machine(4, placement=[r % 2 for r in range(8)])).time
    assert block == pytest.approx(7 * (OUTER.alpha + 100 * OUTER.beta), rel=1e-12)
    # four at once through the port, as fast as it passes them or as each of them goes
    port, lane = 400 * OUTER.beta, OUTER.alpha + 100 * OUTER.beta
    longest = max(7 * port + OUTER.alpha, 0.75 * port + 7 * lane)
    assert longest * (1 - 1e-12) <= cyclic < 1.05 * longest


def test_bad_machines_are_refused():
    made = isthmus.schedule("allgatherv", "ring", counts=[1] * 5)
    with pytest.raises(ValueError, match="every level but the last"):
        Hierarchy((Level(None, 1, 1), Level(2, 1, 1)))
    with pytest.raises(ValueError, match="every level but the last"):
        Hierarchy(())
    with pytest.raises(ValueError, match="one unit at least"):
        Hierarchy((Level(0, 1, 1),))
    with pytest.raises(ValueError, match="fewer places than 5"):
        made.simulate(Hierarchy((Level(2, 1, 1), Level(2, 1, 1))))
    with pytest.raises(ValueError, match="no room for 5"):
        made.simulate(machine(2, placement=(0, 0, 0, 1, 1)))
    with pytest.raises(ValueError, match="no room for 5"):
        made.simulate(machine(2, placement=(0, 0)))


def test_a_deadlock_of_orders_is_seen():
    made = by_hand(
        [
            [Round((Send(2, message(1)), Send(3, message(1))))],
            [Round((Send(3, message(1)), Send(2, message(1))))],
            [Round((Recv(1, message(1)), Recv(0, message(1))))],
            [Round((Recv(0, message(1)), Recv(1, message(1))))],
        ]
    )
    with pytest.raises(Deadlock):
        made.simulate(machine(2))
