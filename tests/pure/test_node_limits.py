"""Node-aware collectives at the limit of a node's port, on a slow network."""

from __future__ import annotations

import pytest

from isthmus.cli import simulate as sim
from isthmus.cost.placement import on_nodes
from isthmus.predict.case import Case
from isthmus.predict.predict import limit, simulated

MIB = 1 << 20
#: of 8 nodes with 4 ranks, 8 MiB a node: how far from the limit, at the most
CASES = {
    "inter_allgather": ((16, 16), (2 * MIB, 2 * MIB), 1.05),
    "inter_allreduce": ((16, 16), (8 * MIB, 8 * MIB), 1.15),
    "inter_reduce_scatter": ((16, 16), (8 * MIB, 8 * MIB), 1.15),
    "inter_bcast": ((1, 32), (8 * MIB,), 1.10),
    "inter_reduce": ((1, 32), (8 * MIB,), 1.10),
}


@pytest.mark.parametrize("collective", CASES)
def test_close_to_the_limit_of_the_port(collective):
    assert (
        1
        <= of_limit(collective, *CASES[collective][:2], per_node=4)
        < CASES[collective][-1]
    )


#: the same of 32 nodes with 32 ranks
LARGE = {
    "inter_allgather": ((512, 512), (MIB // 4, MIB // 4), 1.15),
    "inter_allreduce": ((512, 512), (8 * MIB, 8 * MIB), 1.15),
    "inter_reduce_scatter": ((512, 512), (8 * MIB, 8 * MIB), 1.15),
    "inter_bcast": ((1, 1024), (8 * MIB,), 1.10),
    "inter_reduce": ((1, 1024), (8 * MIB,), 1.10),
}


@pytest.mark.long
@pytest.mark.parametrize("collective", LARGE)
def test_close_to_the_limit_of_the_port_on_32_nodes_of_32(collective):
    assert (
        1
        <= of_limit(collective, *LARGE[collective][:2], per_node=32)
        < LARGE[collective][-1]
    )


def of_limit(collective, groups, each, per_node):
    """How many times the limit a node-aware algorithm takes."""
    case = Case(collective, groups, each, per_node=per_node)
    model = on_nodes(sim.machine("gigabit-ethernet"), case.nodes)
    return simulated(case, model, "node_aware").time / limit(case, model).seconds
