"""Trees and rings for hosts of unequal speed, in which nobody waits behind a slow host.

Two trees (Banikazemi, Moorthy and Panda 1998) take the costs of each rank's messages
(`hosts`): for Bcast and Reduce, and for Gather and Scatter, where subtrees are sent as
one message. Without `hosts` all hosts count as equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..schedules.hosts import Hosts
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
    first: slow hosts come last, and are leaves."""
    hosts = hosts or Hosts.equal(p)
    own = hosts.own(size)
    # who has it, and from when on it can send
    have, free = np.array([root]), np.zeros(1)
    edges: Edges = []
    for x in sorted((r for r in range(p) if r != root), key=lambda r: (own[r], r)):
        ends = free + hosts.times(have, np.full_like(have, x), size)
        i = int(ends.argmin())
        edges.append((int(have[i]), x))
        free[i] = ends[i]
        have, free = np.append(have, x), np.append(free, ends[i])
    return edges


def speed_partitioned(p: int, root: int, size: int, hosts: Hosts | None) -> Edges:
    """A binomial tree on a chain that begins at the root, then has the ranks from the
    root on, the fastest hosts first: subtrees are neighbours of about one speed."""
    speed = (hosts or Hosts.equal(p)).own(size)
    around = [(root + k) % p for k in range(1, p)]
    chain = [root, *sorted(around, key=lambda r: float(speed[r]))]
    levels = reversed(list(tree(p, np.arange(p))))
    return [
        (chain[v], chain[v + step])
        for step, _, above in levels
        for v in np.flatnonzero(above).tolist()
    ]


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
