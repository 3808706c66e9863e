"""Alltoall and Alltoallv among several groups.

Each rank has a block for each rank of the other groups. Each function is the program of
rank x of group i. `send[y]` is the block for the y-th rank of all other groups,
`recv[y]` the place of the block from that rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from ..schedules.ir import Index, Mask, Program, Recv, Round, Send
from ..schedules.layout import Blocks, Side, clip
from ..schedules.registry import algorithm
from .multi_allgatherv import turns

Sides = tuple[Side, ...]
#: a rank of another group, and whether that rank exists
Peer = tuple[Side, Index, Mask]


def _turns_cost(
    ps: Sequence[int], ks: Sequence[float], alpha: float, beta: float
) -> float:
    """An upper bound of the time of `rotated`."""
    return turns(ps) * (alpha + max(ks) * beta)


def _peers(i: int, x: Index, sides: Sides, direction: int) -> Iterator[Peer]:
    """The targets of rank x of group i by turn (direction 1), or the sources (-1)."""
    g = len(sides)
    for t in range(1, g):
        turns_with_group = max(max(sides[j].n, sides[(j + t) % g].n) for j in range(g))
        there = sides[(i + direction * t) % g]
        circle = max(there.n, sides[i].n)
        for u in range(turns_with_group):
            y = (x + direction * u) % circle
            yield there, clip(y, 0, there.n - 1), (y < there.n) & (u < circle)


def place(sides: Sides, i: int, there: Side, y: Index) -> Index:
    """The place of rank y of a group among the ranks of all groups but group i."""
    own = sides[i]
    return there.base + y - (own.n if there.base > own.base else 0)


@algorithm("multi_alltoallv", paper="isthmus", cost=_turns_cost)
def rotated(
    i: int, x: Index, sides: Sides, send: Blocks, recv: Blocks, window: int = 32
) -> Program:
    """Everyone exchanges with everyone of the other groups, many at a time.

    In turn (t, u) a rank sends to the t-th group after its own, and there to the rank u
    further on. With groups of equal size the turns are as many as a rank has blocks to
    send; `window` of them are in flight at once.
    """
    targets, sources = (_peers(i, x, sides, direction) for direction in (1, -1))
    while in_flight := list(islice(zip(sources, targets, strict=True), window)):
        comm: list[Recv | Send] = []
        for (there, y, exists), _ in in_flight:
            comm.append(Recv(there.base + y, recv[place(sides, i, there, y)], exists))
        for _, (there, y, exists) in in_flight:
            comm.append(Send(there.base + y, send[place(sides, i, there, y)], exists))
        yield Round(tuple(comm))
