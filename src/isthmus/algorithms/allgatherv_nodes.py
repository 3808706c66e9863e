"""Allgatherv on nodes of several ranks, in place: nothing enters a node twice.

The blocked ring over places, in which the ranks of a node are neighbours: only the last
of them, the tail, sends to another node, and only the first, the head, receives from
one. At the end of its rounds a head would receive the pieces of its own node, all the
way round and through the network. It takes them from the tail, which has them by then.

Both ends of every message are in the same round, so nobody waits for ever: the partners
of a rank that is furthest behind are in its round as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..schedules.ir import Index, Program, Recv, Round, Send
from ..schedules.layout import Blocks, pick
from ..schedules.registry import algorithm
from .allgatherv_blocked import blocked_cost, pipeline, sizes, table
from .parts.patterns import STARTUP
from .parts.piece_size import piece_size


@dataclass(frozen=True)
class Places:
    """The ring, node after node: at each place a rank, and where its node has ends."""

    rank: np.ndarray
    head: np.ndarray
    tail: np.ndarray


def places(p: int, nodes: Sequence[Hashable]) -> Places:
    """Nodes in the order of their lowest ranks; where none are given, all is one."""
    nodes = nodes if len(nodes) else (0,) * p
    if len(nodes) != p:
        raise ValueError(f"nodes names the nodes of {len(nodes)} ranks; there are {p}")
    lowest: dict[Hashable, int] = {}
    node = np.array([lowest.setdefault(x, r) for r, x in enumerate(nodes)])
    rank = np.argsort(node, kind="stable")
    found = node[rank]
    head, after = (np.searchsorted(found, found, side) for side in ("left", "right"))
    return Places(rank, head, after - 1)


@algorithm("allgatherv", paper="Träff et al. 2008, observation 1", cost=blocked_cost)
def node_ring(
    p: int,
    r: Index,
    blocks: Blocks,
    nodes: Sequence[Hashable] = (),
    rule: str = "",
    size: int = 0,
    startup: float = STARTUP,
) -> Program:
    """The blocked ring from node to node, where no node receives what it has.

    nodes[i] is the node of rank i. As many rounds as the blocked ring; of m elements, a
    node with m' of its own receives m - m', all of them by one rank and from one.
    """
    ring = places(p, nodes)
    size = piece_size(sizes(blocks), rule, size, startup)
    line = pipeline(blocks, ring.rank, size, r)
    rank, heads, tails = (table(x, r) for x in (ring.rank, ring.head, ring.tail))
    n, first, own, piece = line.n, line.first, line.own, line.piece

    def pieces_of_node(i: Index) -> Index:
        return first[tails[i]] + own[tails[i]] - first[heads[i]]

    i = table(np.argsort(ring.rank), r)[r]
    left, right, head, tail = (i - 1) % p, (i + 1) % p, heads[i], tails[i]
    # until which round the pieces are another node's, and until which there are any
    foreign, lacks, head_lacks = n - pieces_of_node(i), n - own[i], n - own[head]
    right_lacks = n - pick(i == tail, pieces_of_node(right), own[right])
    near = pick(i == head, tail, left)
    for k in range(line.rounds):
        source = pick(k < foreign, rank[left], rank[near])
        back = (i == tail) & (foreign <= k) & (k < head_lacks)
        yield Round(
            (
                Recv(source, piece((first[i] - 1 - k) % n), k < lacks),
                Send(rank[right], piece((first[right] - 1 - k) % n), k < right_lacks),
                Send(rank[head], piece((first[head] - 1 - k) % n), back),
            )
        )
