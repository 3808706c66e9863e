"""The choice of an algorithm inside a group, on machines with known answers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from isthmus.choose import estimate
from isthmus.choose.choice import LIBRARY_NAME, SHORT_BYTES, Choice, choice
from isthmus.choose.tried import TrialTimes, per_byte
from isthmus.choose.tuning import BUILT_IN
from isthmus.collectives.records import COLLECTIVES, schedule
from isthmus.cost.machine import AlphaBeta
from isthmus.distributions import PAPER_DISTRIBUTIONS, counts
from isthmus.schedules import registry
from isthmus.schedules.registry import resolve
from measured import measured

#: a network, whose library has a ring with whole blocks and is as fast as we are
NETWORK = measured(2e-6, 1 / 12e9)
SHARED = measured(2e-6, 1 / 12e9, sharing=16)


def taken(name, machine=NETWORK, is_ordered=False, **sizes):
    return choice(COLLECTIVES[name], sizes, machine, is_ordered=is_ordered)


def chosen(kind, p, m, machine=NETWORK):
    return taken("allgatherv", machine, counts=counts(kind, p, m)).name


def never():
    raise AssertionError("nothing needs to be measured for this")


def test_small_or_simple_cases_need_no_measurement():
    for kind in PAPER_DISTRIBUTIONS:
        assert chosen(kind, 9, SHORT_BYTES - 1, never) == LIBRARY_NAME
        for p in (1, 2):
            assert chosen(kind, p, 1 << 30, never) == "ring"
    giant = taken("allgatherv", never, counts=[0, 0, 1 << 31])
    assert giant.name == "blocked_ring"
    root = {"root": 0}
    assert taken("bcast", never, p=2, m=1 << 30, **root).name == LIBRARY_NAME
    assert taken("bcast", never, p=64, m=1000, **root).name == LIBRARY_NAME
    assert taken("bcast", never, p=64, m=1 << 31, **root).name == "circulant"
    for n in (1000, 1 << 20):
        assert taken("reduce", never, p=64, m=n, **root).name == LIBRARY_NAME
        assert taken("gatherv", never, p=64, k=n, **root).name == LIBRARY_NAME
    ordered = taken("reduce", never, is_ordered=True, p=64, m=1 << 31, **root)
    assert ordered.name == "binomial"
    assert taken("scatterv", never, p=64, k=1 << 31, **root).name == "linear"


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
    best = taken("allgatherv", counts=counts("spike", 16, 1 << 24))
    for name in ("ring", "blocked_ring", "circulant", "recursive_doubling", "library"):
        assert f"{name} " in str(best)
    assert "16777216 bytes in 16 blocks, the largest 8388608" in str(best)


def test_in_one_memory_a_library_that_cuts_nothing_is_passed_over_for_much_only():
    """Times of short blocks in node memory say little about long blocks."""
    blocks = {"p": 4, "k": 1 << 24}
    for library, passed_over in ((1.4, False), (1.7, True)):
        costs = partial(measured, 1e-5, 1e-10, together=1e-10, slowdown=library)
        here, there = costs(), costs(changing=1.15)
        best = taken("allgatherv", here, **blocks)
        assert (best.name != LIBRARY_NAME) == passed_over
        assert taken("allgatherv", there, **blocks).name != LIBRARY_NAME


def test_a_byte_that_all_ranks_of_a_node_need_crosses_their_port_once():
    """Long messages take the time of the port, however fast short messages were."""
    machine = measured(1e-5, 1e-8, sharing=4, changing=1.25)
    byte_times = per_byte("inter_reduce_scatter", 8, 8, machine)
    times = TrialTimes((8, 4096), dict.fromkeys(byte_times, (1e-4, 1e-4)), byte_times)
    flat, candidates = Choice("chain", "first"), ["flat", "node_aware", "native"]
    assert times.best(8, flat, candidates).name == "chain"
    assert times.best(1 << 20, flat, candidates).name == "node_aware"
    assert times.of("flat", 4096) == pytest.approx(4 * 4096e-8)
    assert times.of("node_aware", 1 << 20) == pytest.approx(1e-4 + 1044480e-8)
    alltoall = per_byte("inter_alltoall", 8, 8, machine)
    assert alltoall["flat"] == alltoall["node_aware"] == pytest.approx((4e-8, 4e-8))


def test_a_long_vector_goes_down_a_chain_if_that_comes_to_a_node_once():
    machine = measured(1e-5, 1e-8, sharing=4, changing=1.25)
    flat, candidates = Choice("chain", "first"), ["flat", "node_aware"]
    for nodes, best in (([0, 0, 1, 1], "chain"), ([0, 1, 0, 1], "node_aware")):
        placed = replace(machine, placement=(*nodes, *nodes))
        byte_times = per_byte("inter_bcast", 4, 4, placed)
        tried = TrialTimes(
            (8, 4096), dict.fromkeys(byte_times, (1e-4, 1e-4)), byte_times
        )
        assert tried.best(1 << 20, flat, candidates).name == best
        assert tried.best(4096, flat, candidates).name == "node_aware"


def test_short_sums_and_exchanges_are_left_to_the_library():
    for best in (
        taken("allreduce", never, p=8, m=1000),
        taken("reduce_scatter", never, counts=[100] * 8),
        taken("alltoall", never, p=8, k=100),
    ):
        assert best.name == LIBRARY_NAME
        assert best.algorithm in ("doubling", "bruck", "rotated")


def test_a_sum_of_unequal_blocks_is_not():
    for kind in ("broadcast", "spike"):
        unequal = counts(kind, 100, 1 << 24)
        assert taken("reduce_scatter", counts=unequal).name == "circulant"
    assert taken("reduce_scatter", counts=[1 << 18] * 64).name == LIBRARY_NAME


def test_an_allreduce_of_a_group_that_libraries_have_no_short_way_for():
    m = 1 << 18
    assert taken("allreduce", p=65, m=m).name == "bruck"
    assert taken("allreduce", p=64, m=m).name == LIBRARY_NAME
    assert taken("allreduce", is_ordered=True, p=64, m=m).name == "ordered"


def test_the_radix_grows_with_the_blocks():
    blocks = (300, 3000, 300_000)
    names = [taken("alltoall", p=512, k=k).algorithm for k in blocks]
    assert names[0].startswith("bruck(radix=") and names[-1] == "rotated"
    radices = [int(x[12:-1]) for x in names if x.startswith("bruck")]
    assert radices == sorted(radices)


def test_an_alltoallv_asks_only_in_groups_where_that_may_pay():
    few, many = (taken("alltoallv", BUILT_IN, p=p, k=0) for p in (16, 1024))
    assert (few.name, few.algorithm) == (LIBRARY_NAME, "rotated")
    assert many.name.startswith("bruck")
    short, long = (taken("alltoallv", BUILT_IN, p=1024, k=k) for k in (8, 1 << 20))
    assert short.name.startswith("bruck") and long.algorithm == "rotated"


def test_pat_is_for_nodes_whose_ranks_share_a_port():
    assert taken("allgatherv", SHARED, p=256, k=2000).name == "pat"
    assert taken("allgatherv", p=256, k=2000).name != "pat"


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
    best = choice(record, record.example, NETWORK)
    if best.algorithm != LIBRARY_NAME:
        resolve(name, best.algorithm)
