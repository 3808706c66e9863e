"""Trees and rings for hosts of unequal speed: right for any speeds, and faster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isthmus import schedule
from isthmus.choose.choice import LIBRARY_NAME, choice
from isthmus.choose.unequal_hosts import times as unequal_times
from isthmus.collectives.records import COLLECTIVES
from isthmus.cost.machine import AlphaBeta, Unequal
from isthmus.schedules.hosts import Hosts
from isthmus.schedules.registry import algorithms
from measured import measured
from sampling import LONG

TREES = ("fastest_node_first", "speed_partitioned")


def cases(p: int, root: int):
    counts = [(3 * i) % 5 for i in range(p)]
    yield "bcast", {"p": p, "m": 7, "root": root}
    yield "reduce", {"p": p, "m": 7, "root": root}
    yield "gatherv", {"counts": counts, "root": root}
    yield "scatterv", {"counts": counts, "root": root}
    if p > 1 and root == 0:
        yield "inter_bcast", {"q": p - 1, "m": 7}
        yield "inter_reduce", {"q": p - 1, "m": 7}
        yield "inter_gather", {"q": p - 1, "k": 3}
        yield "inter_scatterv", {"counts": counts[1:]}


@pytest.mark.parametrize("p", range(1, 10) if LONG else (1, 2, 3, 6, 9))
def test_they_are_right_for_any_speeds(p):
    rng = np.random.default_rng(p)
    for root in {0, p // 2, p - 1}:
        speeds = rng.choice([1.0, 2.0, 10.0], (2, p))
        hosts = Hosts(*(tuple(x.tolist()) for x in speeds))
        for collective, sizes in cases(p, root):
            for name in TREES:
                example = schedule(collective, name, hosts=hosts, **sizes)
                example.verify()
                assert [
                    example.rank(r) for r in range(example.n)
                ] == example.all_ranks()
        counts = [(2 * i) % 7 for i in range(p)]
        schedule("allgatherv", "ordered_ring", hosts=hosts, counts=counts).verify()


#: eight hosts, of which 1 and 4 take ten times as long to begin and for each byte
SLOW = Hosts(
    *(
        (tuple(x if i not in (1, 4) else 10 * x for i in range(8)))
        for x in (50e-6, 1.7e-7)
    )
)


@pytest.mark.parametrize("collective", ["bcast", "reduce"])
def test_short_data_are_twice_as_fast_as_by_the_best_that_knows_no_hosts(
    collective,
):
    model, sizes = Unequal(SLOW), {"p": 8, "m": 256, "root": 0}
    times = {
        entry.name: schedule(collective, entry.name, **sizes).simulate(model).time
        for entry in algorithms(collective)
        if "hosts" not in entry.options and not entry.node_memory
    }
    example = schedule(collective, "fastest_node_first", hosts=SLOW, **sizes)
    ours = example.simulate(model).time
    assert min(times.values()) > 2 * ours, times


@pytest.mark.parametrize("collective", ["inter_bcast", "inter_reduce"])
def test_auto_takes_what_is_fastest_on_these_hosts(collective):
    machine, record = measured(50e-6, 1.7e-7), COLLECTIVES[collective]
    model, size = Unequal(SLOW), {"q": 7, "m": 1 << 12}
    assert choice(record, size, machine).name not in TREES
    best = choice(record, size, machine, hosts=SLOW)
    example = schedule(collective, best.name, hosts=SLOW, **size)
    for entry in algorithms(collective):
        if not entry.node_memory:
            other = schedule(collective, entry.name, hosts=SLOW, **size)
            assert example.simulate(model).time <= other.simulate(model).time
    # sums in any order are for commutative operators
    best = choice(record, size, machine, is_ordered=True, hosts=SLOW)
    assert collective == "inter_bcast" or best.name not in TREES


def test_auto_takes_a_tree_for_blocks_of_some_size_and_inside_a_group():
    machine = measured(50e-6, 1.7e-7)
    few = Hosts(SLOW.alphas, tuple(x / 3 for x in SLOW.betas))
    gather = COLLECTIVES["inter_gather"]
    taken = {
        choice(gather, {"q": 7, "k": 1 << k}, machine, hosts=few).name
        for k in range(20)
    }
    assert "linear" in taken and taken & {*TREES}
    sizes = {"p": 8, "m": 1 << 10, "root": 2}
    best = choice(COLLECTIVES["bcast"], sizes, machine, hosts=SLOW)
    assert best.name in TREES, best
    assert not Hosts.equal(8).unequal and SLOW.unequal


@pytest.mark.parametrize("collective", ["reduce", "gatherv", "scatterv"])
def test_auto_inside_a_group_takes_what_is_fastest_on_these_hosts(collective):
    machine, model, taken = measured(50e-6, 1.7e-7), Unequal(SLOW), set()
    for n in (1 << 4, 1 << 10, 1 << 14):
        is_vector = collective == "reduce"
        known = {"p": 8, "m" if is_vector else "k": n, "root": 2}
        name = choice(COLLECTIVES[collective], known, machine, hosts=SLOW).name
        sizes = known if is_vector else {"counts": [n] * 8, "root": 2}
        assert name != LIBRARY_NAME
        taken.add(name)
        options = f"(startup={machine.startup_bytes})" * (name == "circulant")
        example = schedule(collective, name + options, hosts=SLOW, **sizes)
        for entry in algorithms(collective):
            if not entry.node_memory:
                other = schedule(collective, entry.name, hosts=SLOW, **sizes)
                assert example.simulate(model).time <= other.simulate(model).time
    assert taken & {*TREES}, taken


def test_short_data_on_slow_links_are_left_to_the_library():
    """Slow hosts with the start-up time of fast hosts, and slow hosts with longer
    start-ups."""
    machine = measured(50e-6, 1.7e-7)
    links = Hosts((50e-6,) * 8, SLOW.betas)
    for hosts, n, is_left in ((links, 1 << 10, True), (SLOW, 1 << 10, False)):
        for collective, size in (("bcast", "m"), ("reduce", "m"), ("gatherv", "k")):
            sizes = {"p": 8, size: n, "root": 2}
            best = choice(COLLECTIVES[collective], sizes, machine, hosts=hosts)
            assert (best.name == LIBRARY_NAME) == is_left
    long = {"p": 8, "k": 1 << 20, "root": 2}
    best = choice(COLLECTIVES["gatherv"], long, machine, hosts=links)
    assert best.name != LIBRARY_NAME


def test_operators_in_rank_order_have_no_tree_for_unequal_hosts():
    machine = measured(50e-6, 1.7e-7)
    sizes = {"p": 8, "m": 1 << 10, "root": 2}
    best = choice(COLLECTIVES["reduce"], sizes, machine, is_ordered=True, hosts=SLOW)
    assert best.algorithm == "binomial"


def test_a_fast_host_sends_to_several_slow_ones_at_once():
    hosts = Hosts((1.0, 5.0, 5.0), (0.0,) * 3)
    example = schedule("inter_bcast", "linear", q=2, m=1)
    assert example.simulate(Unequal(hosts)).time == 1 + 5
    example = schedule("inter_gather", "linear", q=2, k=1)
    assert example.simulate(Unequal(hosts)).time == 1 + 5


def test_slow_hosts_are_leaves():
    example = schedule("bcast", "fastest_node_first", hosts=SLOW, p=8, m=256, root=0)
    line = example.simulate(Unequal(SLOW))
    assert line.sent[[1, 4]].tolist() == [0, 0]


def test_slow_hosts_are_neighbours_in_the_ring():
    example = schedule("allgatherv", "ordered_ring", hosts=SLOW, counts=[1] * 8)
    to = {example.rank(r)[0].comm[1].to for r in (1, 4)}
    assert to & {1, 4}


def test_equal_hosts_are_the_alpha_beta_model():
    example = schedule("bcast", "chain", p=5, m=40, root=1)
    equal = Unequal(Hosts((3.0,) * 5, (0.5,) * 5))
    assert example.simulate(equal).time == example.simulate(AlphaBeta(3.0, 0.5)).time
    with pytest.raises(ValueError, match="fewer hosts than 5"):
        example.simulate(replace(equal, hosts=Hosts.equal(4)))


#: four hosts of two ranks, the second of which is slow
PAIRS = Hosts((1.0, 1.0, 9.0, 9.0, 1.0, 1.0, 1.0, 1.0), (1.0,) * 8).on("aabbccdd")


def test_ranks_of_a_host_share_its_port_and_its_memory():
    model = Unequal(replace(PAIRS, memory=(0.25, 0.0)))
    near = schedule("bcast", "binomial", p=2, m=8, root=0)
    assert model.simulate(near).time == 0.25
    # of two messages that leave a host at a time, one waits for the bytes of the other
    steps = {0: 4, 1: 5}
    far = schedule("alltoallv", "rotated", table=_from_each_to(steps, 8, 6))
    assert model.simulate(far).time == 6 + 1 + 6
    alone = schedule("alltoallv", "rotated", table=_from_each_to({0: 4}, 8, 6))
    assert model.simulate(alone).time == 1 + 6


def _from_each_to(targets, p, size):
    return [[size * (targets.get(r) == x) for x in range(p)] for r in range(p)]


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("root", [0, 3, 6])
def test_a_host_of_several_ranks_is_entered_once(name, root):
    example = schedule("bcast", name, hosts=PAIRS, p=8, m=5, root=root)
    example.verify()
    entered = [
        PAIRS.nodes[r]
        for r in range(8)
        for step in example.rank(r)
        for c in step.comm
        if hasattr(c, "frm") and PAIRS.nodes[c.frm] != PAIRS.nodes[r]
    ]
    assert sorted(entered) == sorted({0, 1, 2, 3} - {PAIRS.nodes[root]})


def test_hosts_of_about_one_speed_keep_their_order():
    measured = Hosts(tuple(1.0 + 0.1 * ((3 * r) % 8) for r in range(8)), (0.0,) * 8)
    blind = schedule("bcast", "binomial", p=8, m=1, root=0)
    example = schedule("bcast", "speed_partitioned", hosts=measured, p=8, m=1, root=0)
    assert [example.rank(r) for r in range(8)] == [blind.rank(r) for r in range(8)]


@pytest.mark.parametrize("collective", ["bcast", "reduce", "gatherv", "scatterv"])
def test_auto_knows_that_ranks_share_unequal_hosts(collective):
    """Two slow hosts of eight with four ranks each: the choice is at least as fast as
    algorithms without knowledge of hosts."""
    nodes = [r // 4 for r in range(32)]
    alphas = tuple(5e-4 if n in (1, 4) else 5e-5 for n in nodes)
    hosts = Hosts(alphas, (1.6e-8,) * 32).on(nodes)
    times = unequal_times(collective, hosts, 1 << 10, 3000.0, p=32, root=0)
    blind = min(t for name, t in times.items() if name not in TREES)
    ratio = blind / min(times[name] for name in TREES)
    assert ratio > (1 if collective in ("gatherv", "scatterv") else 1.5), times
