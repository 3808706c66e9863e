"""The placements on nodes that algorithms are verified on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

#: the node of each rank
Nodes = tuple[int, ...]
#: how many ranks of each group a node has, for all nodes
Loads = tuple[tuple[int, ...], ...]


def every(n: int, before: Nodes = ()) -> Iterator[Nodes]:
    """All placements of n ranks, up to the names of the nodes: a rank is on the node of
    one before it, or on the next new one."""
    if len(before) == n:
        yield before
        return
    for node in range(max(before, default=-1) + 2):
        yield from every(n, (*before, node))


def loads(left: tuple[int, ...], most: tuple[int, ...] = ()) -> Iterator[Loads]:
    """All ways to divide ranks of each group among nodes, up to the order of nodes: no
    node has more, in the order of tuples, than the one before it."""
    if not any(left):
        yield ()
        return
    for load in product(*(range(n + 1) for n in left)):
        if any(load) and load <= (most or left):
            rest = tuple(n - k for n, k in zip(left, load, strict=True))
            for others in loads(rest, load):
                yield (load, *others)


def in_a_row(found: Loads) -> Nodes:
    """The placement in which the ranks of a group on one node follow each other."""
    return tuple(
        node
        for group in zip(*found, strict=True)
        for node, n in enumerate(group)
        for _ in range(n)
    )


def scattered(nodes: Nodes, groups: tuple[int, ...], rng: np.random.Generator) -> Nodes:
    """The placement with the ranks of each group in a random order."""
    ends = np.cumsum(groups)[:-1]
    parts = (rng.permutation(part) for part in np.split(np.array(nodes), ends))
    return tuple(np.concatenate([*parts]).tolist())


def placements(
    groups: tuple[int, ...], few: int, rng: np.random.Generator
) -> Iterator[Nodes]:
    """All placements of up to so few ranks; of more, all up to the order of ranks in a
    group, each in a row and scattered."""
    if sum(groups) <= few:
        yield from every(sum(groups))
        return
    for nodes in map(in_a_row, loads(groups)):
        yield nodes
        yield scattered(nodes, groups, rng)


def anywhere(groups: tuple[int, ...], rng: np.random.Generator) -> Nodes:
    """A random placement, on any number of nodes."""
    n = sum(groups)
    return tuple(rng.integers(rng.integers(1, n + 1), size=n).tolist())
