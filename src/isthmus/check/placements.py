"""The placements on nodes on which algorithms are verified."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

#: the node of each rank
Nodes = tuple[int, ...]
#: for all nodes, the number of ranks of each group
Loads = tuple[tuple[int, ...], ...]


def all_placements(n: int, earlier_nodes: Nodes = ()) -> Iterator[Nodes]:
    """All placements of n ranks, up to the names of the nodes.

    A rank is on the node of an earlier rank or on the next new node, so that no
    placement comes twice.
    """
    if len(earlier_nodes) == n:
        yield earlier_nodes
        return
    for node in range(max(earlier_nodes, default=-1) + 2):
        yield from all_placements(n, (*earlier_nodes, node))


def loads(left: tuple[int, ...], max_load: tuple[int, ...] = ()) -> Iterator[Loads]:
    """All ways to divide ranks of each group among nodes, up to the order of nodes.

    A node has at most the load before, in the order of tuples, so that no division
    comes twice.
    """
    if not any(left):
        yield ()
        return
    for load in product(*(range(n + 1) for n in left)):
        if any(load) and load <= (max_load or left):
            rest = tuple(n - k for n, k in zip(left, load, strict=True))
            for further_loads in loads(rest, load):
                yield (load, *further_loads)


def in_a_row(node_loads: Loads) -> Nodes:
    """The placement in which the ranks of a group on a node follow each other."""
    return tuple(
        node
        for group in zip(*node_loads, strict=True)
        for node, n in enumerate(group)
        for _ in range(n)
    )


def scattered(nodes: Nodes, groups: tuple[int, ...], rng: np.random.Generator) -> Nodes:
    """The placement with the ranks of each group in a random order."""
    ends = np.cumsum(groups)[:-1]
    parts = (rng.permutation(part) for part in np.split(np.array(nodes), ends))
    return tuple(np.concatenate([*parts]).tolist())


def placements(
    groups: tuple[int, ...], max_ranks: int, rng: np.random.Generator
) -> Iterator[Nodes]:
    """All placements of up to `max_ranks` ranks; of more, all up to the order of ranks
    in a group, each in a row and scattered.

    All placements of more ranks would be too many: 877 of seven ranks.
    """
    if sum(groups) <= max_ranks:
        yield from all_placements(sum(groups))
        return
    for nodes in map(in_a_row, loads(groups)):
        yield nodes
        yield scattered(nodes, groups, rng)


def random_placement(groups: tuple[int, ...], rng: np.random.Generator) -> Nodes:
    """A random placement, on any number of nodes."""
    n = sum(groups)
    return tuple(rng.integers(rng.integers(1, n + 1), size=n).tolist())
