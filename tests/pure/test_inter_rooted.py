"""A root and a remote group: known counts, sent and held data, and the gain."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus
from isthmus.algorithms.parts.patterns import STARTUP_ELEMENTS, log2
from isthmus.cost.machine import AlphaBeta
from isthmus.schedules import registry
from isthmus.schedules.ir import Recv, Send
from isthmus.schedules.layout import Even, Leaves, OwnBlock, Uneven
from isthmus.schedules.program import backwards, buffer_size, trim
from isthmus.verify.contracts import inter_reduce as promised
from isthmus.verify.errors import BadOrder
from isthmus.verify.verify import verify
from sampling import LONG

WHOLE = ("inter_bcast", "inter_reduce")
BLOCKS = ("inter_gather", "inter_gatherv", "inter_scatter", "inter_scatterv")
ENTRIES = [
    (collective, e)
    for collective in WHOLE + BLOCKS
    for e in registry.algorithms(collective)
]
IRREGULAR = [(collective, e) for collective, e in ENTRIES if collective.endswith("v")]
MODEL = AlphaBeta(2e-6, 1 / 12e9)
rng = np.random.default_rng(5)


@pytest.mark.parametrize(("collective", "entry"), IRREGULAR)
def test_a_leaf_knows_its_own_block_unless_the_algorithm_says_more(collective, entry):
    counts = [3, 0, 5, 1, 2]
    q = len(counts)

    def rounds(v, group):
        return trim(entry.program(q + 1, v, Leaves(group)))

    def by_those_who_know_little():
        own = (OwnBlock(q, j, 0, k, k) for j, k in enumerate(counts))
        return [rounds(v, group) for v, group in enumerate(own, 1)]

    if entry.own_counts:
        with pytest.raises(ValueError, match="does not know"):
            by_those_who_know_little()
    else:
        with_all_counts = [rounds(v, Uneven(counts)) for v in range(1, q + 1)]
        assert by_those_who_know_little() == with_all_counts


@pytest.mark.parametrize("collective", ["inter_gatherv", "inter_scatterv"])
@pytest.mark.parametrize("name", ["binomial", "mixed", "mixed(size=5)"])
def test_a_leaf_of_a_tree_knows_its_subtree_and_holds_no_more(collective, name):
    counts = rng.choice([0, 1, 3, 8], 21)
    entry, n = registry.named(collective, name), len(counts) + 1
    for v in range(1, n):
        below = slice(v - 1, v - 1 + (v & -v))
        known = np.zeros_like(counts)
        known[below] = counts[below]
        rounds = trim(entry.program(n, v, Leaves(Uneven(known))))
        assert rounds == trim(entry.program(n, v, Leaves(Uneven(counts))))
        assert buffer_size(rounds, "tmp") <= counts[below].sum()


def received(rounds):
    return sum(
        s.size for r in rounds for c in r.comm if isinstance(c, Recv) for s in c.data
    )


@pytest.mark.parametrize("name", ["scatter_allgather", "chain", "circulant"])
def test_rounds_and_volumes_of_a_long_bcast(name):
    """No leaf gets much data twice, and the root gets none."""
    schedule = isthmus.schedule("inter_bcast", name, q=12, m=1200)
    root, *leaves = schedule.all_ranks()
    assert received(root) == 0
    # a leaf passes the pieces of its subtree down, and gets them again in the ring
    most = 1200 + (700 if name == "scatter_allgather" else 0)
    assert all(1200 <= received(rounds) <= most for rounds in leaves)


def test_scratch_of_a_reduction():
    def room(name, q=16, m=1600):
        schedule = isthmus.schedule("inter_reduce", name, q=q, m=m)
        return [buffer_size(rounds, "tmp") for rounds in schedule.all_ranks()]

    assert max(room("binomial")) == max(room("halving")) == 3200
    # three pieces of 100, and half of all
    assert max(room("reduce_scatter")) == 300 + 800 and room("reduce_scatter")[0] == 0
    assert max(room("chain(n=16)")) == 1600 and room("chain(n=16)")[0] == 0
    assert max(room("circulant(n=16)")) == 1700 and room("circulant(n=16)")[0] == 100


def test_only_graphs_nodes_and_unequal_hosts_need_a_commutative_operator():
    marked = {e.name for e in registry.algorithms("inter_reduce") if e.commutative}
    trees = {"fastest_node_first", "speed_partitioned"}
    assert marked == {"circulant", "node_aware"} | trees
    schedule = isthmus.schedule("inter_reduce", "circulant(n=3)", q=6, m=6)
    with pytest.raises(BadOrder, match="not neighbours"):
        verify(schedule.all_ranks(), promised(7, 6))


def time(collective, name, **case_sizes):
    return isthmus.schedule(collective, name, **case_sizes).simulate(MODEL).time


@pytest.mark.parametrize("collective", WHOLE)
@pytest.mark.parametrize("q", [2, 19])
@pytest.mark.parametrize("name", ["chain", "circulant"])
def test_the_number_of_parts_is_the_best(collective, q, name):
    startup, m = 1000, 40_000
    model = AlphaBeta(startup, 1.0)

    def taken(option):
        schedule = isthmus.schedule(collective, f"{name}({option})", q=q, m=m)
        return schedule.simulate(model).time

    best = min(taken(f"n={n}") for n in range(1, 40, 2 if LONG else 3))
    assert taken(f"startup={startup}") == pytest.approx(best, rel=5e-3)


# At q = 128 and large sizes, against what libraries do.
Q, LARGE = 128, 256 << 20


@pytest.mark.parametrize(
    ("collective", "library"),
    [("inter_bcast", "leader_ring"), ("inter_reduce", "leader_halving")],
)
def test_gain_over_libraries_and_distance_from_the_bound(collective, library):
    bound = log2(Q + 1) * MODEL.alpha + LARGE * MODEL.beta
    ours = time(collective, "circulant", q=Q, m=LARGE)
    theirs = time(collective, library, q=Q, m=LARGE)
    entry = registry.find(collective, "circulant").given(startup=STARTUP_ELEMENTS)
    claimed = entry.cost(Q + 1, LARGE, 2e-6, 1 / 12e9)
    assert ours == pytest.approx(claimed, rel=1e-5)
    assert theirs >= 2.7 * ours and ours <= 1.1 * bound


def test_what_stands_between_an_ordered_reduction_and_the_bound():
    """A chain of 128 leaves takes time to fill: 1.5 GB come within a tenth of the
    bound."""
    cost = registry.find("inter_reduce", "chain").cost
    for m, most, gain in ((LARGE, 1.25, 2.4), (1536 << 20, 1.1, 2.7)):
        bound = log2(Q + 1) * MODEL.alpha + m * MODEL.beta
        ours = cost(Q + 1, m, MODEL.alpha, MODEL.beta)
        library = registry.find("inter_reduce", "leader_halving").cost
        assert ours <= most * bound
        assert library(Q + 1, m, MODEL.alpha, MODEL.beta) >= gain * ours


@pytest.mark.parametrize("collective", ["inter_gather", "inter_scatter"])
def test_gain_of_gather_and_scatter(collective):
    k = 1 << 20
    bound = log2(Q + 1) * MODEL.alpha + Q * k * MODEL.beta
    assert time(collective, "binomial", q=Q, k=k) == pytest.approx(bound, rel=1e-12)
    for name in ("linear", "mixed"):
        assert time(collective, name, q=Q, k=k) <= 1.1 * bound
        assert time(collective, "leader", q=Q, k=k) >= 1.9 * time(
            collective, name, q=Q, k=k
        )


@pytest.mark.parametrize("q", [1, 2, 3, 5, 7, 12, 100])
@pytest.mark.parametrize("collective", ["inter_gather", "inter_scatter"])
def test_the_tree_meets_both_bounds_for_every_group(collective, q):
    least = log2(q + 1) * MODEL.alpha + q * 64 * MODEL.beta
    assert time(collective, "binomial", q=q, k=64) == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize("collective", ["inter_gatherv", "inter_scatterv"])
def test_a_giant_goes_straight(collective):
    """At the bottom of a tree, all ranks above would wait for the giant."""
    counts = [100] * 127
    counts[126] = 10_000_000
    bound = log2(128) * MODEL.alpha + sum(counts) * MODEL.beta
    assert time(collective, "mixed", counts=counts) <= bound + MODEL.alpha
    assert time(collective, "binomial", counts=counts) > 6 * bound
    assert time(collective, "linear", counts=counts) > bound + 100 * MODEL.alpha


def test_small_and_large_blocks_lie_in_their_places():
    counts = [2, 90, 3, 1, 70, 80, 4]
    schedule = isthmus.schedule("inter_gatherv", "mixed(size=50)", counts=counts)
    schedule.verify()
    root = schedule.rank(0)
    assert [c.frm for c in root[-1].comm] == [2, 5, 6]
    # of vertices 4 to 7 the small ones come as one, to two places
    (last,) = root[-2].comm
    assert [(s.start, s.size) for s in last.data] == [(95, 1), (246, 4)]


def test_a_scatter_is_a_gather_backwards():
    blocks = Leaves(Even(5, 4))
    for v in range(6):
        forth = registry.find("inter_gather", "binomial").program(6, v, blocks)
        back = trim(backwards(backwards(forth)))
        again = registry.find("inter_gather", "binomial").program(6, v, blocks)
        assert [r.comm for r in back if r.comm] == [
            r.comm for r in trim(again) if r.comm
        ]
    library = isthmus.schedule("allgatherv", "library", counts=[1, 1]).program(0)
    with pytest.raises(ValueError, match="no reverse"):
        list(backwards(library))
    reduction = isthmus.schedule("inter_reduce", "linear", q=2, m=1).program(0)
    with pytest.raises(ValueError, match="no reverse"):
        list(backwards(reduction))


def test_linear_takes_one_step_of_a_leaf():
    rounds = isthmus.schedule("inter_gather", "linear", q=4096, k=1).rank(17)
    (only,) = rounds
    assert only.comm == (Send(0, only.comm[0].data),)


#: the machine of the report on costs: 15 us, 6 MB/s
SLOW = AlphaBeta(15e-6, 1 / 6e6)


@pytest.mark.parametrize("name", ["chain", "circulant"])
@pytest.mark.parametrize("collective", ["inter_bcast", "inter_reduce"])
def test_the_cost_is_that_of_the_best_number_of_parts(collective, name):
    """A schedule with the start-up as an option takes the time of the cost."""
    entry, q, m = registry.find(collective, name), 127, 1 << 20
    best = entry.cost(q + 1, m, SLOW.alpha, SLOW.beta)
    startup = SLOW.alpha / SLOW.beta
    timeline = isthmus.schedule(
        collective, f"{name}(startup={startup})", q=q, m=m
    ).simulate(SLOW)
    assert timeline.time == pytest.approx(best, rel=0.02)
    costs = (entry.given(n=n).cost for n in range(1, 6000, 1 if LONG else 10))
    least = min(cost(q + 1, m, SLOW.alpha, SLOW.beta) for cost in costs)
    assert best <= least <= best * (1 + (0 if LONG else 1e-3))


def test_parts_are_in_the_cost_of_pipelined():
    def cost(parts):
        entry = registry.named("inter_allgather", f"pipelined(parts={parts})")
        return entry.cost(4, 4, 1000, 1000, 1.0, 1.0, None)

    first, second, third = map(cost, (1, 2, 3))
    assert third - second == second - first > 0
