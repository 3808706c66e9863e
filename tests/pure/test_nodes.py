"""The ring from node to node: the data that enter a node, by which rank, and the
gain."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import isthmus
from isthmus.algorithms.allgatherv_node_ring import node_ring, places
from isthmus.cost.machine import Level, Machine
from isthmus.schedules import registry
from isthmus.schedules.ir import Recv, Send
from isthmus.schedules.layout import Uneven
from isthmus.schedules.program import trim
from sampling import LONG, some

COUNT = st.one_of(st.just(0), st.integers(0, 60))
#: the count of each rank and its node: any number of nodes of any sizes, scattered
PLACED = st.lists(st.tuples(COUNT, st.integers(0, 5)), min_size=1, max_size=20)


def node_ring_schedule(counts, nodes, options=""):
    return isthmus.schedule(
        "allgatherv", "node_ring" + options, counts=counts, nodes=nodes
    )


def messages(ranks, kind):
    """Rank, peer and size of every message of a kind."""
    for r, rounds in enumerate(ranks):
        for c in (c for x in rounds for c in x.comm if isinstance(c, kind)):
            yield r, c.to if kind is Send else c.frm, sum(s.size for s in c.data)


def check(schedule, counts, nodes):
    """Verify; every rank receives its missing data once, and so does every node, by one
    rank."""
    schedule.verify()
    ranks = schedule.all_ranks()
    assert ranks == [schedule.rank(r) for r in range(schedule.n)]
    m, own, into, received = sum(counts), Counter(), Counter(), Counter()
    for k, node in zip(counts, nodes, strict=True):
        own[node] += k
    for r, peer, size in messages(ranks, Recv):
        received[r] += size
        into[nodes[r]] += size if nodes[peer] != nodes[r] else 0
    assert [received[r] for r in range(schedule.n)] == [m - k for k in counts]
    assert all(into[node] == m - own[node] for node in nodes)
    for kind in (Send, Recv):
        ends = messages(ranks, kind)
        doors = {r for r, peer, _ in ends if nodes[r] != nodes[peer]}
        assert len(doors) == len({nodes[r] for r in doors})


@settings(max_examples=150 if LONG else 40)
@given(PLACED, st.sampled_from(["", "(size=1)", "(size=7)", "(rule=sqrt,startup=9)"]))
def test_a_node_receives_what_it_lacks_through_one_rank(placed, options):
    counts, nodes = [k for k, _ in placed], [x for _, x in placed]
    check(node_ring_schedule(counts, nodes, options), counts, nodes)


@pytest.mark.parametrize("p", some(range(1, 14), 3))
def test_placements_that_machines_have(p):
    rng = np.random.default_rng(p)
    counts = (rng.integers(0, 40, p) * rng.integers(0, 2, p)).tolist()
    for size in (1, 2, 3, 4):
        for nodes in ([r // size for r in range(p)], [r % size for r in range(p)]):
            check(node_ring_schedule(counts, nodes, "(size=5)"), counts, nodes)


@pytest.mark.parametrize("nodes", [[], [4] * 7, [3, 9, 1, 0, 2, 8, 7], list("gfedcba")])
def test_on_one_node_or_one_each_it_is_the_blocked_ring(nodes):
    counts = [30, 0, 7, 7, 100, 1, 0]
    plain = isthmus.schedule("allgatherv", "blocked_ring(size=10)", counts=counts)
    assert (
        node_ring_schedule(counts, nodes, "(size=10)").all_ranks() == plain.all_ranks()
    )


def test_the_nodes_follow_each_other_by_their_lowest_ranks():
    ring = places(6, ["b", "a", "b", "c", "a", "b"])
    assert ring.rank.tolist() == [0, 2, 5, 1, 4, 3]
    assert ring.head.tolist() == [0, 0, 0, 3, 3, 5]
    assert ring.tail.tolist() == [2, 2, 2, 4, 4, 5]


def times(counts, nodes, each):
    """The blocked ring and the node ring, where ranks of a node share ports."""
    levels = (Level(each, 1e-7, 1e-11), Level(None, 2e-6, 1e-10))
    machine = Machine(levels, placement=tuple(nodes))
    blocked = isthmus.schedule("allgatherv", "blocked_ring", counts=counts)
    return [
        x.simulate(machine).time for x in (blocked, node_ring_schedule(counts, nodes))
    ]


@pytest.mark.parametrize("each", [2, 4, 8])
def test_scattered_over_nodes_it_wins_by_the_ranks_of_a_node(each):
    many = 8
    nodes = [r % many for r in range(each * many)]
    for counts in ([1 << 20] * len(nodes), [1 << 25] + [0] * (len(nodes) - 1)):
        blocked, by_nodes = times(counts, nodes, each)
        # every node's port carries all data once for each of its ranks, or once less
        # start-ups of the ranks of a node overlap
        assert 0.75 * each < blocked / by_nodes < 1.3 * each


@pytest.mark.parametrize("each", [1, 2, 4])
def test_in_blocks_of_ranks_it_is_no_worse(each):
    nodes = [r // each for r in range(8 * each)]
    for counts in (
        [1 << 20] * len(nodes),
        [1 << 25] + [0] * (len(nodes) - 1),
        [(r * 7919) % 100_000 for r in range(len(nodes))],
    ):
        blocked, by_nodes = times(counts, nodes, each)
        assert by_nodes <= blocked * (1 + 1e-12)


def test_nodes_must_fit_and_cannot_be_text():
    with pytest.raises(ValueError, match="nodes has 2 entries for 3 ranks"):
        node_ring_schedule([1, 2, 3], [0, 0])
    with pytest.raises(ValueError, match="the nodes of 2 ranks; there are 3"):
        trim(node_ring(3, 0, Uneven([1, 2, 3]), nodes=(0, 1)))
    with pytest.raises(ValueError, match="nodes cannot be written in a name"):
        registry.named("allgatherv", "node_ring(nodes=0,0,1)")


def test_nodes_reach_the_program():
    entry = registry.named("allgatherv", "node_ring(size=4)").given(nodes=(0, 1, 0, 1))
    blocks = Uneven([9, 0, 3, 5])
    wanted = node_ring_schedule([9, 0, 3, 5], [0, 1, 0, 1], "(size=4)").rank(2)
    assert trim(entry.program(4, 2, blocks)) == wanted
    assert wanted[0].comm[0].frm == 0


def test_others_do_not_mind_nodes():
    sizes = {"counts": [1, 2, 3]}
    plain = isthmus.schedule("allgatherv", "ring", **sizes)
    placed = isthmus.schedule("allgatherv", "ring", **sizes, nodes=[0, 1, 0])
    assert plain.all_ranks() == placed.all_ranks()
