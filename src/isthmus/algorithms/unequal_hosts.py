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
from .parts import gather
from .parts.patterns import ring, tree
from .parts.reduce_mirrored import mirrored

BANIKAZEMI = "Banikazemi, Moorthy, Panda 1998"
#: (source, target), in the order in which a rank sends
Edges = list[tuple[int, int]]
Tree = Callable[[int, int, int, Hosts | None], Edges]


def fastest_node_first(p: int, root: int, size: int, hosts: Hosts | None) -> Edges:
    """The fastest host that has nothing yet gets it from whoever can hand it over
    first: slow hosts come last, and are leaves.

    Where ranks share a node, one of each comes first and the others get it there, so
    that it comes through the node's port once.
    """
    hosts = hosts or Hosts.equal(p)
    own, node = hosts.own(size), hosts.node_numbers
    place = _places(p, root, node)
    # who has it, from when on it can send, and from when on its node's port is free
    have, free = np.array([root]), np.zeros(1)
    port = np.zeros(int(node.max()) + 1)
    edges: Edges = []
    others = (r for r in range(p) if r != root)
    for x in sorted(others, key=lambda r: (own[r], place[r], r)):
        is_near, at_port = node[have] == node[x], port[node[have]]
        starts = np.where(is_near, free, np.maximum(free, at_port))
        ends = starts + hosts.times(have, np.full_like(have, x), size)
        if place[x]:
            ends = np.where(is_near, ends, np.inf)
        i = int(ends.argmin())
        frm = int(have[i])
        edges.append((frm, x))
        free[i] = ends[i]
        if node[frm] != node[x]:
            port[node[frm]] = starts[i] + hosts.wire(frm, size)
        have, free = np.append(have, x), np.append(free, ends[i])
    return edges


def _places(p: int, root: int, node: np.ndarray) -> list[int]:
    """How many ranks of its node come before each, on the way round from the root."""
    before: Counter[int] = Counter()
    place = [0] * p
    for k in range(p):
        r = (root + k) % p
        place[r] = before[int(node[r])]
        before[int(node[r])] += 1
    return place


def speed_partitioned(p: int, root: int, size: int, hosts: Hosts | None) -> Edges:
    """A binomial tree on a chain that begins at the root, then has the ranks from the
    root on, the fastest hosts first: subtrees are neighbours of about one speed.

    Hosts of about one speed are a class, which keeps its order, as what is measured of
    equal hosts varies; ranks of one node are neighbours, those of the root's the first.
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
    """The class of each rank by the time of its messages, the fastest first: a class
    ends where one takes MIN_UNEQUAL_RATIO times as long as the first of it."""
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
    for s, x in edges:
        steps.append(free[s])
        free[s] = free[x] = free[s] + 1
    frm, to = np.full((2, max(free), p), -1)
    for t, (s, x) in zip(steps, edges, strict=True):
        to[t, s], frm[t, x] = x, s
    return frm, to


def _down(p: int, r: Index, total: int, edges: Edges) -> Program:
    """Messages with all data down a tree."""
    whole = Shares(1, total)[0]
    for frm, to in zip(*_timetable(p, edges), strict=True):
        above, below = frm[r], to[r]
        yield Round((Recv(above, whole, above >= 0), Send(below, whole, below >= 0)))


def _preorder(p: int, root: int, edges: Edges) -> list[int]:
    """All ranks, each followed by its subtrees."""
    children: list[list[int]] = [[] for _ in range(p)]
    for s, x in edges:
        children[s].append(x)
    order, pending = [], [root]
    while pending:
        order.append(r := pending.pop())
        pending += reversed(children[r])
    return order


def _up(p: int, r: Index, blocks: Blocks, root: int, edges: Edges) -> Program:
    """The blocks of subtrees up a tree.

    A rank that has others below holds their blocks in "tmp", its own block first.
    """
    sizes = np.asarray(blocks.size(np.arange(p))) * np.ones(p, np.int64)
    order = _preorder(p, root, edges)
    place, start = np.empty(p, np.int64), np.empty(p, np.int64)
    place[order] = np.arange(p)
    start[order] = np.cumsum(sizes[order]) - sizes[order]
    subtree_ranks, subtree_elements = np.ones(p, np.int64), sizes.copy()
    for s, x in reversed(edges):
        subtree_ranks[s] += subtree_ranks[x]
        subtree_elements[s] += subtree_elements[x]
    own, top = Span("send", 0, sizes[r]), r == root
    leaf = (subtree_ranks[r] == 1) & (top ^ True)
    inner = (leaf | top) ^ True
    (mine,) = blocks[root]
    yield Round(
        then=(
            Copy(own, Span(mine.buf, mine.start, own.size), top),
            Copy(own, Span("tmp", 0, own.size), inner),
        )
    )
    # what would come down last goes up first
    for frm, to in zip(*(x[::-1] for x in _timetable(p, edges)), strict=True):
        above, below, child = frm[r], to[r], int(to[root])
        come = (
            order[place[child] : place[child] + subtree_ranks[child]]
            if child >= 0
            else []
        )
        held = Span("tmp", start[below] - start[r], subtree_elements[below])
        yield Round(
            (
                Recv(child, tuple(blocks[x][0] for x in come), top & bool(come)),
                Recv(below, (held,), (below >= 0) & (top ^ True)),
                Send(above, (own,), (above >= 0) & leaf),
                Send(
                    above, (Span("tmp", 0, subtree_elements[r]),), (above >= 0) & inner
                ),
            )
        )


def _register(name: str, edges: Tree) -> None:
    """Bcast, Reduce, Gather and Scatter by a tree, inside a group and between a root
    and the leaves of another group."""

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

    for_blocks = {"cost": gather.cost, "own_counts": True}
    for_messages: dict[str, Any] = {"cost": bcast.binomial_cost}
    sums = for_messages | {"commutative": True}
    idea = " ".join((edges.__doc__ or "").partition(":")[0].split())
    for words, program, collectives, how in (
        ("All of it", bcast_, ("bcast",), for_messages),
        ("All of it", _between(bcast_), ("inter_bcast",), for_messages),
        ("Sums", reduce_, ("reduce",), sums),
        ("Sums", inter_reduce, ("inter_reduce",), sums),
        ("Blocks", gather_, ("gatherv",), for_blocks),
        ("Blocks", _between(gather_), ("inter_gather", "inter_gatherv"), for_blocks),
        ("Blocks", scatter_, ("scatterv",), for_blocks),
        ("Blocks", _between(scatter_), ("inter_scatter", "inter_scatterv"), for_blocks),
    ):
        program.__doc__ = f"{words} by a tree for unequal hosts: {idea}."
        algorithm(*collectives, paper=BANIKAZEMI, name=name, **how)(program)


def _between(program: Callable[..., Program]) -> Callable[..., Program]:
    """A program with root r as one with a root outside the group, which is vertex 0."""

    def rooted_elsewhere(
        p: int, v: Index, data: Any, hosts: Hosts | None = None
    ) -> Program:
        return program(p, v, data, 0, hosts)

    return rooted_elsewhere


_register("fastest_node_first", fastest_node_first)
_register("speed_partitioned", speed_partitioned)


def ring_order(p: int, hosts: Hosts | None) -> np.ndarray:
    """The ranks of a ring, from the fastest host to the slowest.

    So slow hosts are neighbours, and the fewest links are slow.
    """
    speed = (hosts or Hosts.equal(p)).own(1)
    return np.argsort(speed, kind="stable")


@algorithm(
    "allgatherv",
    paper="after Banikazemi, Moorthy, Panda 1998",
    cost=lambda p, k, alpha, beta: (p - 1) * (alpha + k * beta),
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
    for come, go, _ in ring(p, place):
        yield Round((Recv(before, blocks[order[come]]), Send(after, blocks[order[go]])))
