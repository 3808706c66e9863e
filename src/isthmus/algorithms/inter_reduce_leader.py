"""Reduce from a group to a root outside it as libraries do: through the first leaf, or
one leaf after the other."""

from __future__ import annotations

from ..schedules.ir import Index, Program, Recv, Reduce, Round, Send, Span
from ..schedules.program import pad, shift
from ..schedules.registry import algorithm
from . import inter_bcast, leaders, reduce
from .patterns import log2, outer


@algorithm("inter_reduce", paper="Open MPI, nonblocking", cost=inter_bcast.linear_cost)
def linear(p: int, v: Index, m: int) -> Program:
    """The root takes what every leaf has, the last one's first, and combines it.

    p - 1 rounds, each of all, in rank order. Room for a message at the root.
    """
    own, result, came = (Span(buf, 0, m) for buf in ("send", "recv", "tmp"))
    for i in reversed(range(1, p)):
        if not outer(v):
            yield Round((Send(0, (own,), v == i),))
        elif i == p - 1:
            yield Round((Recv(i, (result,)),))
        else:
            yield Round((Recv(i, (came,)),), (Reduce(came, result),))


def _from_leader(m: int, rounds: int) -> Program:
    """What the root does: wait so many rounds for the first leaf's message."""
    yield from pad(iter(()), rounds)
    yield Round((Recv(1, (Span("recv", 0, m),)),))


@algorithm(
    "inter_reduce", paper="Silva, Silva 1999; MPICH", cost=inter_bcast.leader_cost
)
def leader(p: int, v: Index, m: int) -> Program:
    """Results go up a tree of the leaves, and the first leaf sends all to the root.

    1 + ceil(log2(p - 1)) rounds, each of all, in rank order. Room for two messages.
    """
    if outer(v):
        return _from_leader(m, log2(p - 1))
    return shift(reduce.ordered(p - 1, v - 1, m, root=-1), 1)


def leader_halving_cost(p: int, m: float, alpha: float, beta: float) -> float:
    """All of it twice, and one message."""
    return alpha + m * beta + leaders.halves_cost(p - 1, m, alpha, beta)


@algorithm(
    "inter_reduce",
    paper="Rabenseifner 2004; MPICH, for long messages",
    cost=leader_halving_cost,
)
def leader_halving(p: int, v: Index, m: int) -> Program:
    """The leaves halve what they combine, gather it at the first, which sends all.

    1 + 2 log2(p - 1) rounds, for p - 1 a power of two; all of it travels three times,
    in rank order. Scratch as for `leaders.halves`.
    """
    if outer(v):
        yield from _from_leader(m, leaders.halves_rounds(p - 1))
    else:
        yield from shift(leaders.halves_sum(p - 1, v - 1, m), 1)
        yield Round((Send(0, (Span("tmp", 0, m),), v == 1),))
