"""Barrier between two groups: messages without data.

Each function says what rank r of the group `here` does. Nobody of either group goes on
before everyone of both has come.
"""

from __future__ import annotations

from ..schedules.ir import Index, Program, Recv, Round, Send
from ..schedules.layout import Side
from ..schedules.program import pad, shift
from ..schedules.registry import algorithm
from .patterns import is_power, log2, tree


def circle(n: int, r: Index) -> Program:
    """Tell the rank 1, 2, 4, … further on in a circle of n."""
    for level in range(log2(n)):
        step = 1 << level
        yield Round((Recv((r - step) % n, ()), Send((r + step) % n, ())))


@algorithm(
    "inter_barrier",
    paper="Hensgen, Finkel, Manber 1988",
    cost=lambda p, q, alpha, beta: log2(p + q) * alpha,
)
def dissemination(r: Index, here: Side, there: Side) -> Program:
    """Tell the rank 1, 2, 4, … further on, in one circle of both groups.

    ceil(log2(p + q)) rounds.
    """
    return circle(here.n + there.n, here.base + r)


def _hypercube_cost(p: int, q: int, alpha: float, beta: float) -> float:
    n = p + q
    return (log2(n) if is_power(n) else log2(n) + 1) * alpha


@algorithm("inter_barrier", paper="Silva, Silva 1999", cost=_hypercube_cost)
def hypercube(r: Index, here: Side, there: Side) -> Program:
    """Swap with the rank that differs in one bit, for every bit, over both groups.

    log2(p + q) rounds. Ranks beyond the largest power of two tell one below before, and
    are told after: two rounds more.
    """
    n, own = here.n + there.n, here.base + r
    bits = n.bit_length() - 1
    inside, odd = 1 << bits, n & (n - 1) > 0
    below, above = own >= inside, own + inside < n
    if odd:
        yield Round((Recv(own + inside, (), above), Send(own - inside, (), below)))
    for level in range(bits):
        partner = own ^ 1 << level
        yield Round((Recv(partner, (), own < inside), Send(partner, (), own < inside)))
    if odd:
        yield Round((Recv(own - inside, (), below), Send(own + inside, (), above)))


def _down(r: Index, here: Side) -> Program:
    """From the leader to all of its group."""
    for step, below, above in reversed(list(tree(here.n, r))):
        own = here.base + r
        yield Round((Recv(own - step, (), below), Send(own + step, (), above)))


def _up(r: Index, here: Side) -> Program:
    """From all of a group to its leader."""
    for step, below, above in tree(here.n, r):
        own = here.base + r
        yield Round((Recv(own + step, (), above), Send(own - step, (), below)))


def _across(r: Index, there: Side, sends: bool = True, receives: bool = True) -> Round:
    """From leader to leader."""
    return Round(
        (
            Recv(there.base, (), (r == 0) & receives),
            Send(there.base, (), (r == 0) & sends),
        )
    )


@algorithm(
    "inter_barrier",
    paper="Open MPI: an Allreduce of one number",
    cost=lambda p, q, alpha, beta: (2 * log2(max(p, q)) + 1) * alpha,
)
def leaders(r: Index, here: Side, there: Side) -> Program:
    """All tell their leader, the leaders each other, and then all.

    2 ceil(log2 p) + 1 rounds.
    """
    yield from pad(_up(r, here), log2(max(here.n, there.n)))
    yield _across(r, there)
    yield from _down(r, here)


@algorithm(
    "inter_barrier",
    paper="MPICH",
    cost=lambda p, q, alpha, beta: (log2(max(p, q)) + log2(p) + log2(q) + 2) * alpha,
)
def local_first(r: Index, here: Side, there: Side) -> Program:
    """A barrier inside each group, then a broadcast to the other group, and one back.

    About 3 log p + 2 rounds.
    """
    yield from pad(shift(circle(here.n, r), here.base), log2(max(here.n, there.n)))
    first = here.base < there.base
    yield _across(r, there, first, not first)
    yield from pad(iter(()), log2(there.n)) if first else _down(r, here)
    yield _across(r, there, not first, first)
    yield from _down(r, here) if first else ()
