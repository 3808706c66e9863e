"""Allgatherv on nodes of several ranks, in place: nothing enters a node twice.

The blocked ring over places, in which the ranks of a node are neighbours: only the last
of them, the tail, sends to another node, and only the first, the head, receives from
another node. At the end of its rounds a head would receive the pieces of its own node,
all the way round and through the network. The tail of the node has these pieces by
then, so the head takes them from the tail.

Both ends of every message are in one round, so no rank waits for ever: the partners of
a rank that is furthest behind are in the rank's round as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..schedules.ir import Index, Program, Recv, Round, Send
from ..schedules.layout import Blocks, pick
from ..schedules.registry import algorithm
from .allgatherv_blocked_ring import pipeline, sizes, table
from .parts.patterns import STARTUP_ELEMENTS, turns_cost
from .parts.piece_size import piece_size


@dataclass(frozen=True)
class Places:
    """The ring, node after node: the rank of each place, and the ends of its node."""

    rank: np.ndarray
    head: np.ndarray
    tail: np.ndarray


def lowest_ranks(nodes: Sequence[Hashable]) -> np.ndarray:
    """The lowest rank on the node of each rank."""
    lowest: dict[Hashable, int] = {}
    return np.array([lowest.setdefault(node, r) for r, node in enumerate(nodes)])


def places(p: int, nodes: Sequence[Hashable]) -> Places:
    """Nodes in the order of their lowest ranks; without `nodes`, a single node."""
    nodes = nodes if len(nodes) else (0,) * p
    if len(nodes) != p:
        raise ValueError(f"nodes names the nodes of {len(nodes)} ranks; there are {p}")
    lowest = lowest_ranks(nodes)
    rank = np.argsort(lowest, kind="stable")
    node_of_place = lowest[rank]
    head, tail_end = (
        np.searchsorted(node_of_place, node_of_place, side)
        for side in ("left", "right")
    )
    return Places(rank, head, tail_end - 1)


@algorithm("allgatherv", paper="Träff et al. 2008, observation 1", cost=turns_cost)
def node_ring(
    p: int,
    r: Index,
    blocks: Blocks,
    nodes: Sequence[Hashable] = (),
    rule: str = "",
    size: int = 0,
    startup: float = STARTUP_ELEMENTS,
) -> Program:
    """The blocked ring from node to node, where no node receives its own blocks.

    nodes[i] is the node of rank i. As many rounds as the blocked ring; of m elements, a
    node with m' elements receives m - m', all by one rank and from one rank.
    """
    ring = places(p, nodes)
    size = piece_size(sizes(blocks), rule, size, startup)
    ring_pieces = pipeline(blocks, ring.rank, size, r)
    columns = (ring.rank, ring.head, ring.tail)
    rank, heads, tails = (table(column, r) for column in columns)
    n, first = ring_pieces.n, ring_pieces.first
    own, piece = ring_pieces.own, ring_pieces.piece

    def pieces_of_node(place: Index) -> Index:
        return first[tails[place]] + own[tails[place]] - first[heads[place]]

    place = table(np.argsort(ring.rank), r)[r]
    left, right = (place - 1) % p, (place + 1) % p
    head, tail = heads[place], tails[place]
    # the round from which pieces are the own node's, and the rounds with any pieces
    foreign = n - pieces_of_node(place)
    lacks, head_lacks = n - own[place], n - own[head]
    right_lacks = n - pick(place == tail, pieces_of_node(right), own[right])
    predecessor = pick(place == head, tail, left)
    for k in range(ring_pieces.rounds):
        source = pick(k < foreign, rank[left], rank[predecessor])
        sends_back = (place == tail) & (foreign <= k) & (k < head_lacks)
        yield Round(
            (
                Recv(source, piece((first[place] - 1 - k) % n), k < lacks),
                Send(rank[right], piece((first[right] - 1 - k) % n), k < right_lacks),
                Send(rank[head], piece((first[head] - 1 - k) % n), sends_back),
            )
        )
