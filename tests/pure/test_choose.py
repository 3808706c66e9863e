"""The choice of an algorithm inside a group, on machines with known answers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from isthmus.choose import between as choose_between, choose, estimate, inside
from isthmus.choose.between import TrialTimes
from isthmus.choose.choice import choice
from isthmus.choose.choose import Choice
from isthmus.collectives.records import COLLECTIVES, schedule
from isthmus.cost.machine import AlphaBeta
from isthmus.distributions import PAPER_DISTRIBUTIONS, counts
from isthmus.schedules import registry
from isthmus.schedules.registry import resolve
from measured import measured

#: a network, whose library has a ring with whole blocks and is as fast as we are
NETWORK = measured(2e-6, 1 / 12e9)
SHARED = measured(2e-6, 1 / 12e9, sharing=16)


def chosen(kind, p, m, machine=NETWORK, **options):
    each = np.array(counts(kind, p, m))
    return choose.allgatherv(each, lambda: machine, **options).name


def never():
    raise AssertionError("nothing needs to be measured for this")


def test_small_or_simple_cases_need_no_measurement():
    for kind in PAPER_DISTRIBUTIONS:
        few = np.array(counts(kind, 9, choose.SHORT_BYTES - 1))
        assert choose.allgatherv(few, never).name == "library"
        for p in (1, 2):
            much = np.array(counts(kind, p, 1 << 30))
            assert choose.allgatherv(much, never).name == "ring"
    assert choose.allgatherv(np.array([0, 0, 1 << 31]), never).name == "blocked_ring"
    assert inside.bcast(2, 1 << 30, never)[1]
    assert inside.bcast(64, 1000, never)[1]
    long, is_left = inside.bcast(64, 1 << 31, never)
    assert (long.name, is_left) == ("circulant", False)
    for n in (1000, 1 << 20):
        assert inside.reduce(64, n, never, True)[1]
        assert inside.rooted_blocks("gatherv", 64, n, never)[1]
    assert not inside.reduce(64, 1 << 31, never, False)[1]
    assert not inside.rooted_blocks("scatterv", 64, 1 << 31, never)[1]


def test_equal_blocks_are_left_to_a_library_that_does_them_well():
    for p in (3, 8, 64):
        assert chosen("regular", p, 1 << 24) == "library"
        slow = measured(2e-6, 1 / 12e9, slowdown=2.0)
        assert chosen("regular", p, 1 << 24, slow) != "library"


@pytest.mark.parametrize("kind", ["broadcast", "spike", "geometric"])
def test_unequal_blocks_are_not(kind):
    for p in (4, 16, 200):
        assert chosen(kind, p, 1 << 24) in ("blocked_ring", "circulant")


def test_nothing_is_gained_by_a_pipeline_where_all_share_one_processor():
    shared = measured(2e-5, 1e-10, together=1e-10, piece_bytes=32 << 10)
    for kind in ("broadcast", "spike", "linear"):
        assert chosen(kind, 8, 1 << 23, shared) == "recursive_doubling"
        assert chosen(kind, 7, 1 << 23, shared) == "bruck"


def test_a_shared_way_out_of_a_node_is_taken_by_one_process():
    for kind in ("broadcast", "spike", "geometric"):
        assert chosen(kind, 256, 1 << 28, SHARED) == "node_ring"


@pytest.mark.parametrize("kind", PAPER_DISTRIBUTIONS)
@pytest.mark.parametrize("p", [5, 16, 33])
def test_estimates_are_near_the_simulation(kind, p):
    """Estimates of all candidates, from 1 % below to 30 % above the simulation."""
    m = 1 << 22
    each = counts(kind, p, m)
    model = AlphaBeta(NETWORK.alpha, NETWORK.beta)
    for name, time in estimate.ours(np.array(each), NETWORK).items():
        full = f"{name}(startup={NETWORK.startup_bytes})" if name[0] in "bc" else name
        full = name if name == "bruck" else full
        exact = schedule("allgatherv", full, counts=each).simulate(model).time
        assert 0.99 * exact <= time <= 1.3 * exact, name


def test_the_reason_names_all_times():
    choice = choose.allgatherv(np.array(counts("spike", 16, 1 << 24)), lambda: NETWORK)
    for name in ("ring", "blocked_ring", "circulant", "recursive_doubling", "library"):
        assert f"{name} " in str(choice)
    assert "16777216 bytes in 16 blocks, the largest 8388608" in str(choice)


def test_in_one_memory_a_library_that_cuts_nothing_is_passed_over_for_much_only():
    """Times of short blocks in node memory say little about long blocks."""
    sizes = np.full(4, 1 << 24)
    for library, passed_over in ((1.4, False), (1.7, True)):
        costs = partial(measured, 1e-5, 1e-10, together=1e-10, slowdown=library)
        here, there = costs(), costs(changing=1.15)
        choice = choose.allgatherv(sizes, lambda here=here: here)
        assert (choice.name != "library") == passed_over
        choice = choose.allgatherv(sizes, lambda there=there: there)
        assert choice.name != "library"


def test_a_byte_that_all_ranks_of_a_node_need_crosses_their_port_once():
    """Long messages take the time of the port, however fast short messages were."""
    machine = measured(1e-5, 1e-8, sharing=4, changing=1.25)
    byte_times = choose_between.per_byte("inter_reduce_scatter", 8, 8, machine, 1)
    times = TrialTimes((8, 4096), dict.fromkeys(byte_times, (1e-4, 1e-4)), byte_times)
    flat, candidates = Choice("chain", "first"), ["flat", "node_aware", "native"]
    assert times.best(8, flat, candidates).name == "chain"
    assert times.best(1 << 20, flat, candidates).name == "node_aware"
    assert times.of("flat", 4096) == pytest.approx(4 * 4096e-8)
    assert times.of("node_aware", 1 << 20) == pytest.approx(1e-4 + 1044480e-8)
    alltoall = choose_between.per_byte("inter_alltoall", 8, 8, machine, 1)
    assert alltoall["flat"] == alltoall["node_aware"] == pytest.approx((4e-8, 4e-8))


def test_a_long_vector_goes_down_a_chain_if_that_comes_to_a_node_once():
    machine = measured(1e-5, 1e-8, sharing=4, changing=1.25)
    flat, candidates = Choice("chain", "first"), ["flat", "node_aware"]
    for nodes, best in (([0, 0, 1, 1], "chain"), ([0, 1, 0, 1], "node_aware")):
        times = choose_between.most_visits(nodes)
        byte_times = choose_between.per_byte("inter_bcast", 4, 4, machine, times)
        tried = TrialTimes(
            (8, 4096), dict.fromkeys(byte_times, (1e-4, 1e-4)), byte_times
        )
        assert tried.best(1 << 20, flat, candidates).name == best
        assert tried.best(4096, flat, candidates).name == "node_aware"


def network():
    return NETWORK


def test_short_sums_and_exchanges_are_left_to_the_library():
    few = np.full(8, 100)
    for taken, left in (
        inside.allreduce(8, 1000, never, True),
        inside.reduce_scatter(few, never, True),
        inside.alltoall(8, 100, never),
    ):
        assert left and taken.name in ("doubling", "bruck", "rotated")


def test_a_sum_of_unequal_blocks_is_not():
    for kind in ("broadcast", "spike"):
        each = np.array(counts(kind, 100, 1 << 24))
        choice, left = inside.reduce_scatter(each, network, commutative=True)
        assert choice.name == "circulant" and not left
    equal = np.full(64, 1 << 18)
    assert inside.reduce_scatter(equal, network, commutative=True)[1]


def test_an_allreduce_of_a_group_that_libraries_have_no_short_way_for():
    m = 1 << 18
    choice, left = inside.allreduce(65, m, network, True)
    assert choice.name == "bruck" and not left
    assert inside.allreduce(64, m, network, True)[1]
    choice, left = inside.allreduce(64, m, network, commutative=False)
    assert choice.name == "ordered" and not left


def test_the_radix_grows_with_the_blocks():
    taken = [inside.alltoall(512, k, network)[0].name for k in (300, 3000, 300_000)]
    assert taken[0].startswith("bruck(radix=") and taken[-1] == "rotated"
    radices = [int(x[12:-1]) for x in taken if x.startswith("bruck")]
    assert radices == sorted(radices)


def test_an_alltoallv_asks_only_in_groups_where_that_may_pay():
    assert not inside.asks(16, choose.BUILT_IN)
    assert inside.asks(1024, choose.BUILT_IN)
    short, long = (inside.alltoallv(1024, k, choose.BUILT_IN) for k in (8, 1 << 20))
    assert short.name.startswith("bruck") and long.name == "rotated"


def test_pat_is_for_nodes_whose_ranks_share_a_port():
    nodes = [r // 16 for r in range(256)]
    each = np.full(256, 2000)
    assert choose.allgatherv(each, lambda: SHARED, nodes=nodes).name == "pat"
    assert choose.allgatherv(each, network, nodes=range(256)).name != "pat"


def test_a_collective_of_ones_own_is_chosen_by_what_its_algorithms_claim(monkeypatch):
    """A new collective with the data of an Allreduce, but algorithms of its own."""
    registry.collectives()  # what is imported later would be forgotten with the patch
    monkeypatch.setattr(registry, "_algorithms", {**registry._algorithms})
    monkeypatch.setattr(registry, "_places", {**registry._places})
    record = replace(COLLECTIVES["allreduce"], name="prefix", operations=("Prefix",))
    for name, startups in (("few", 1), ("many", 5)):

        @registry.algorithm(
            "prefix",
            name=name,
            paper="tests",
            cost=lambda p, m, alpha, beta, n=startups: n * alpha + m * beta / n,
        )
        def program(p, r, m):
            return iter(())

    assert choice(record, {"p": 4, "m": 8}, NETWORK).name == "few"
    assert choice(record, {"p": 4, "m": 1 << 30}, NETWORK).name == "many"


@pytest.mark.parametrize("name", COLLECTIVES)
def test_what_is_chosen_exists(name):
    """A call says the algorithm of `auto`, for every collective."""
    record = COLLECTIVES[name]
    taken = choice(record, record.example, NETWORK)
    if taken is not None and taken.name != "library":
        resolve(name, taken.name)
