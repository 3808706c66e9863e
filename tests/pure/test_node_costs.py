"""Closed forms of node-aware collectives, against the simulator."""

from __future__ import annotations

import pytest

import isthmus
from isthmus.algorithms.node_costs import Cluster
from isthmus.cost.hierarchy import Hierarchy, Level, Memory
from isthmus.schedules.registry import find
from sampling import some

#: seconds a message and a byte: many start-ups in a byte's time, and few
NETWORKS = [(2e-6, 1 / 12e9), (1e-7, 1 / 12e9), (3e-5, 1 / 1.2e8)]
FREE, COPIES = Memory(), Memory(1 / 10e9, 1 / 100e9, 1e-6)
BETWEEN = ("allgather", "allreduce", "reduce_scatter", "alltoall", "barrier")
ROOTED = ("bcast", "reduce", "gather", "scatter")
INSIDE = ("allgatherv", "allreduce", "reduce_scatter", "alltoall", "barrier")


def by_turns(names, networks):
    """Each collective on a network, the following collective on the following
    network."""
    return [
        (name, network)
        for i, name in enumerate(names)
        for network in some(networks, len(networks), i)
    ]


def sizes(collective, p, k):
    """The sizes of a schedule, and the arguments of the closed form."""
    m, blocks = p * k, [k] * p
    return {
        "inter_allgather": ({"p": p, "q": p, "ka": k, "kb": k}, (p, p, k, k)),
        "inter_allreduce": ({"p": p, "q": p, "m": m}, (p, p, m)),
        "inter_reduce_scatter": ({"a": blocks, "b": blocks}, (p, p, m)),
        "inter_alltoall": ({"p": p, "q": p, "ka": k, "kb": k}, (p, p, k, k)),
        "inter_barrier": ({"p": p, "q": p}, (p, p)),
        "inter_bcast": ({"q": p, "m": m}, (p + 1, m)),
        "inter_reduce": ({"q": p, "m": m}, (p + 1, m)),
        "inter_gather": ({"q": p, "k": k}, (p + 1, k)),
        "inter_scatter": ({"q": p, "k": k}, (p + 1, k)),
        "allgatherv": ({"counts": blocks}, (p, k)),
        "allreduce": ({"p": p, "m": m}, (p, m)),
        "reduce_scatter": ({"counts": blocks}, (p, m)),
        "alltoall": ({"p": p, "k": k}, (p, k)),
        "barrier": ({"p": p}, (p,)),
        "bcast": ({"p": p, "m": m, "root": 0}, (p, m)),
        "reduce": ({"p": p, "m": m, "root": 0}, (p, m)),
        "gatherv": ({"counts": blocks, "root": 0}, (p, k)),
        "scatterv": ({"counts": blocks, "root": 0}, (p, k)),
    }[collective]


def memory(collective, nodes, n, k):
    """The bytes of a node's memory that a call takes at once."""
    p, m = nodes * n, nodes * n * k
    name = collective.removeprefix("inter_")
    if name in ("reduce_scatter", "allreduce"):
        return n * m + (m if name == "allreduce" else m // nodes)
    if name == "alltoall":
        return 2 * n * p * k
    return m + (n * k if collective == "inter_allgather" else 0)


def simulated_and_claimed(
    collective, nodes, n, k, network, node, gamma=0.0, chunks=1, is_single=False
):
    """The simulated time and the time of the closed form, for a number of chunks."""
    case_sizes, claimed = sizes(collective, nodes * n, k)
    alpha, beta = network
    size = max(memory(collective, nodes, n, k) // chunks, 1)
    name = f"node_aware(startup={alpha / beta}, size={size})"
    if "barrier" in collective:
        name = "node_aware"
    ranks = isthmus.schedule(collective, name, **case_sizes).n
    where = [r // n for r in range(ranks)]
    if collective.removeprefix("inter_") in ROOTED and ranks == nodes * n + 1:
        where = [nodes, *where[:-1]]
    if is_single:
        where, size = [0] * ranks, 1 << 20
        name = "node_aware" if "barrier" in collective else f"node_aware(size={size})"
    node_schedule = isthmus.schedule(collective, name, nodes=where, **case_sizes)
    levels = Level(ranks, 5e-7, 1 / 8e9), Level(None, *network)
    machine = Hierarchy(levels, gamma, placement=tuple(where), memory=node)
    cluster = Cluster(
        ranks if is_single else n,
        *network,
        node.alone,
        node.together,
        gamma,
        node.meeting,
        size,
    )
    form = find(collective, "node_aware").cost
    return node_schedule.simulate(machine).time, form(*claimed, cluster)


@pytest.mark.parametrize(
    ("name", "network"), by_turns([*BETWEEN, *ROOTED], NETWORKS[::2])
)
def test_exact_between_groups_where_memory_is_not_the_limit(name, network):
    for nodes, n, k, chunks in [(4, 2, 4096, 4), (2, 4, 64, 1)]:
        case = f"inter_{name}", nodes, n, k, network, FREE
        simulated, claimed = simulated_and_claimed(*case, chunks=chunks)
        assert claimed == pytest.approx(simulated, rel=1e-3), (nodes, n, k)


@pytest.mark.parametrize(("name", "network"), by_turns(INSIDE, NETWORKS[::2]))
def test_exact_inside_a_group_where_memory_is_not_the_limit(name, network):
    for nodes, n, k, chunks in [(4, 2, 4096, 4), (2, 4, 64, 1)]:
        simulated, claimed = simulated_and_claimed(
            name, nodes, n, k, network, FREE, chunks=chunks
        )
        assert claimed == pytest.approx(simulated, rel=1e-3), (nodes, n, k)


@pytest.mark.parametrize("name", [*BETWEEN, *ROOTED])
def test_exact_on_one_node(name):
    """But for a reduce, where the root combines alone."""
    case = f"inter_{name}", 1, 6, 100, NETWORKS[0], COPIES
    simulated, claimed = simulated_and_claimed(*case, gamma=5e-11, is_single=True)
    assert claimed == pytest.approx(simulated, rel=0.01 if name == "reduce" else 1e-9)


@pytest.mark.parametrize(("name", "network"), by_turns([*BETWEEN, *ROOTED], NETWORKS))
def test_close_between_groups_where_copies_take_time(name, network):
    for nodes, n, k, chunks in [(4, 2, 1 << 14, 4), (2, 4, 64, 1)]:
        case = f"inter_{name}", nodes, n, k, network, COPIES
        simulated, claimed = simulated_and_claimed(*case, gamma=5e-11, chunks=chunks)
        assert claimed == pytest.approx(simulated, rel=0.2), (nodes, n, k)


@pytest.mark.parametrize("name", ["bcast", "reduce", "gatherv", "scatterv"])
def test_of_the_same_size_where_the_root_is_on_a_node(name):
    """The root's own node needs less; the closed form is for a root elsewhere."""
    for nodes, n, k, chunks in [(4, 2, 1 << 14, 4), (2, 4, 64, 1)]:
        case = name, nodes, n, k, NETWORKS[0], COPIES
        simulated, claimed = simulated_and_claimed(*case, gamma=5e-11, chunks=chunks)
        assert claimed / 1.7 < simulated < 1.7 * claimed, (nodes, n, k)
