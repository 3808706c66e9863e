"""Trees and rings for hosts of unequal speed, in which nobody waits behind a slow host.

Two trees (Banikazemi, Moorthy and Panda 1998) take the costs of each rank's messages
(`hosts`): for Bcast and Reduce, and for Gather and Scatter, where subtrees are sent as
one message. Without `hosts` all hosts count as equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from ..schedules.hosts import MIN_UNEQUAL_RATIO, Hosts
from ..schedules.ir import Copy, Index, Program, Recv, Round, Send, Span
from ..schedules.layout import Blocks, Shares
from ..schedules.program import backwards
from ..schedules.registry import algorithm
from . import bcast
from .parts.patterns import doubling_cost, ring, tree, turns_cost
from .parts.reduce_mirrored import mirrored

BANIKAZEMI = "Banikazemi, Moorthy, Panda 1998"
#: (source, target), in the order in which a rank sends
Edges = list[tuple[int, int]]
Tree = Callable[[int, int, int, Hosts | None], Edges]


def fastest_node_first(p: int, root: int, size: int, hosts: Hosts | None) -> Edges:
    """The fastest host not yet in the tree hangs on the rank that can serve it first.

    Slow hosts thereby come last, and are leaves. Where ranks share a node, one rank of
    each node comes first and hands the data on, so that they pass the node's port once.
    """
    hosts = hosts or Hosts.equal(p)
    own, node = hosts.own(size), hosts.node_numbers
    place = _places(p, root, node)
    # the ranks with the data, and the times from which they and their ports can send
    ranks_with_data, free = np.array([root]), np.zeros(1)
    port_free = np.zeros(int(node.max()) + 1)
    edges: Edges = []
    other_ranks = (r for r in range(p) if r != root)
    for target in sorted(other_ranks, key=lambda r: (own[r], place[r], r)):
        is_near = node[ranks_with_data] == node[target]
        port_time = port_free[node[ranks_with_data]]
        starts = np.where(is_near, free, np.maximum(free, port_time))
        ends = starts + hosts.times(
            ranks_with_data, np.full_like(ranks_with_data, target), size
        )
        if place[target]:
            ends = np.where(is_near, ends, np.inf)
        i = int(ends.argmin())
        source = int(ranks_with_data[i])
        edges.append((source, target))
        free[i] = ends[i]
        if node[source] != node[target]:
            port_free[node[source]] = starts[i] + hosts.wire(source, size)
        ranks_with_data = np.append(ranks_with_data, target)
        free = np.append(free, ends[i])
    return edges


def _places(p: int, root: int, node: np.ndarray) -> list[int]:
    """The number of ranks of its node before each rank, on the way from the root."""
    before: Counter[int] = Counter()
    place = [0] * p
    for k in range(p):
        r = (root + k) % p
        place[r] = before[int(node[r])]
        before[int(node[r])] += 1
    return place


def speed_partitioned(p: int, root: int, size: int, hosts: Hosts | None) -> Edges:
    """A binomial tree whose subtrees are neighbours of about one speed.

    The tree is on a chain that begins at the root, then has the ranks from the root on,
    the fastest hosts first. Hosts of about one speed are a class, in which ranks keep
    their order, since measured times of equal hosts vary. Ranks of a node are
    neighbours, the root's node first.
    """
    hosts = hosts or Hosts.equal(p)
    around = [(root + k) % p for k in range(1, p)]
    speed_class = _classes(hosts.own(size))
    node = hosts.node_numbers
    first = {int(node[r]): k for k, r in reversed(list(enumerate(around)))}

    def key(r: int) -> tuple[bool, int, int]:
        return bool(node[r] != node[root]), speed_class[r], first[int(node[r])]

    chain = [root, *sorted(around, key=key)]
    levels = reversed(list(tree(p, np.arange(p))))
    return [
        (chain[v], chain[v + step])
        for step, _, above in levels
        for v in np.flatnonzero(above).tolist()
    ]


def _classes(times: np.ndarray) -> list[int]:
    """The class of each rank by the time of its messages, the fastest class first.

    A class ends at the first rank that takes MIN_UNEQUAL_RATIO times as long as the
    fastest of the class.
    """
    classes, number, first = [0] * len(times), 0, float(times.min())
    for r in np.argsort(times, kind="stable").tolist():
        if times[r] > MIN_UNEQUAL_RATIO * first:
            number, first = number + 1, float(times[r])
        classes[r] = number
    return classes


def _timetable(p: int, edges: Edges) -> tuple[np.ndarray, np.ndarray]:
    """For each step the source and the target of every rank; -1 for none."""
    free = [0] * p
    steps = []
    for source, target in edges:
        steps.append(free[source])
        free[source] = free[target] = free[source] + 1
    sources, targets = np.full((2, max(free), p), -1)
    for t, (source, target) in zip(steps, edges, strict=True):
        targets[t, source], sources[t, target] = target, source
    return sources, targets


def _down(p: int, r: Index, total: int, edges: Edges) -> Program:
    """Messages with all data down a tree."""
    whole = Shares(1, total)[0]
    for sources, targets in zip(*_timetable(p, edges), strict=True):
        parent, child = sources[r], targets[r]
        yield Round((Recv(parent, whole, parent >= 0), Send(child, whole, child >= 0)))


def _preorder(p: int, root: int, edges: Edges) -> list[int]:
    """All ranks, each before its subtrees."""
    children: list[list[int]] = [[] for _ in range(p)]
    for source, target in edges:
        children[source].append(target)
    order, pending = [], [root]
    while pending:
        order.append(r := pending.pop())
        pending += reversed(children[r])
    return order


def _up(p: int, r: Index, blocks: Blocks, root: int, edges: Edges) -> Program:
    """The blocks of subtrees up a tree.

    A rank with ranks below holds their blocks in "tmp", its own block first.
    """
    sizes = np.asarray(blocks.size(np.arange(p))) * np.ones(p, np.int64)
    order = _preorder(p, root, edges)
    place, start = np.empty(p, np.int64), np.empty(p, np.int64)
    place[order] = np.arange(p)
    start[order] = np.cumsum(sizes[order]) - sizes[order]
    subtree_ranks, subtree_elements = np.ones(p, np.int64), sizes.copy()
    for parent_rank, rank_below in reversed(edges):
        subtree_ranks[parent_rank] += subtree_ranks[rank_below]
        subtree_elements[parent_rank] += subtree_elements[rank_below]
    own, top = Span("send", 0, sizes[r]), r == root
    leaf = (subtree_ranks[r] == 1) & (top ^ True)
    inner = (leaf | top) ^ True
    (own_place,) = blocks[root]
    yield Round(
        then=(
            Copy(own, Span(own_place.buf, own_place.start, own.size), top),
            Copy(own, Span("tmp", 0, own.size), inner),
        )
    )
    # the last message down is the first one up
    for sources, targets in zip(
        *(table[::-1] for table in _timetable(p, edges)), strict=True
    ):
        parent, child, root_child = sources[r], targets[r], int(targets[root])
        arriving_ranks = (
            order[place[root_child] : place[root_child] + subtree_ranks[root_child]]
            if root_child >= 0
            else []
        )
        child_blocks = Span("tmp", start[child] - start[r], subtree_elements[child])
        yield Round(
            (
                Recv(
                    root_child,
                    tuple(blocks[i][0] for i in arriving_ranks),
                    top & bool(arriving_ranks),
                ),
                Recv(child, (child_blocks,), (child >= 0) & (top ^ True)),
                Send(parent, (own,), (parent >= 0) & leaf),
                Send(
                    parent,
                    (Span("tmp", 0, subtree_elements[r]),),
                    (parent >= 0) & inner,
                ),
            )
        )


def _register(name: str, edges: Tree) -> None:
    """Register Bcast, Reduce, Gather and Scatter by a tree.

    Both for a root inside the group and for a root and the leaves of another group.
    """

    def bcast_(
        p: int, r: Index, total: int, root: int, hosts: Hosts | None = None
    ) -> Program:
        return _down(p, r, total, edges(p, root, total, hosts))

    def reduce_(
        p: int, r: Index, total: int, root: int, hosts: Hosts | None = None
    ) -> Program:
        forth = bcast_(p, r, total, root, hosts)
        return mirrored(forth, Shares(1, total), r == root, incoming=total)

    def inter_reduce(p: int, v: Index, m: int, hosts: Hosts | None = None) -> Program:
        forth = bcast_(p, v, m, 0, hosts)
        return mirrored(forth, Shares(1, m), v == 0, v > 0, incoming=m)

    def gather_(
        p: int, r: Index, blocks: Blocks, root: int, hosts: Hosts | None = None
    ) -> Program:
        return _up(p, r, blocks, root, edges(p, root, blocks.total // p, hosts))

    def scatter_(
        p: int, r: Index, blocks: Blocks, root: int, hosts: Hosts | None = None
    ) -> Program:
        return backwards(gather_(p, r, blocks, root, hosts))

    for_blocks: dict[str, Any] = {"cost": doubling_cost, "own_counts": True}
    for_messages: dict[str, Any] = {"cost": bcast.binomial_cost}
    sums: dict[str, Any] = {**for_messages, "commutative": True}
    idea = (edges.__doc__ or "").partition("\n")[0]
    for words, program, collectives, claims in (
        ("All data", bcast_, ("bcast",), for_messages),
        ("All data", _between(bcast_), ("inter_bcast",), for_messages),
        ("Sums", reduce_, ("reduce",), sums),
        ("Sums", inter_reduce, ("inter_reduce",), sums),
        ("Blocks", gather_, ("gatherv",), for_blocks),
        ("Blocks", _between(gather_), ("inter_gather", "inter_gatherv"), for_blocks),
        ("Blocks", scatter_, ("scatterv",), for_blocks),
        ("Blocks", _between(scatter_), ("inter_scatter", "inter_scatterv"), for_blocks),
    ):
        program.__doc__ = f"{words} by a tree for unequal hosts: {idea}"
        algorithm(*collectives, paper=BANIKAZEMI, name=name, **claims)(program)


def _between(program: Callable[..., Program]) -> Callable[..., Program]:
    """A program with root r, for a root outside the group, which is vertex 0."""

    def rooted_elsewhere(
        p: int, v: Index, data: Any, hosts: Hosts | None = None
    ) -> Program:
        return program(p, v, data, 0, hosts)

    return rooted_elsewhere


_register("fastest_node_first", fastest_node_first)
_register("speed_partitioned", speed_partitioned)


def ring_order(p: int, hosts: Hosts | None) -> np.ndarray:
    """The ranks of a ring, from the fastest host to the slowest.

    Slow hosts come next to each other, so that the fewest links are slow.
    """
    speed = (hosts or Hosts.equal(p)).own(1)
    return np.argsort(speed, kind="stable")


@algorithm(
    "allgatherv",
    paper="after Banikazemi, Moorthy, Panda 1998",
    cost=turns_cost,
)
def ordered_ring(
    p: int, r: Index, blocks: Blocks, hosts: Hosts | None = None
) -> Program:
    """A ring in which slow hosts are neighbours: the fewest links are slow.

    p - 1 rounds, as in `ring`.
    """
    order = ring_order(p, hosts)
    place = np.argsort(order)[r]
    after, before = order[(place + 1) % p], order[(place - 1) % p]
    for arriving, departing, _ in ring(p, place):
        yield Round(
            (
                Recv(before, blocks[order[arriving]]),
                Send(after, blocks[order[departing]]),
            )
        )
