"""Barrier between two groups: messages without data.

Each function is the program of rank r of the local group, `here`. No rank of either
group goes on before all ranks of both have come.
"""

from __future__ import annotations

from ..schedules.ir import Index, Program, Recv, Round, Send
from ..schedules.layout import Side
from ..schedules.registry import algorithm
from .parts.patterns import is_power, log2


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
    """The time of a round for each bit, and of one more to fold the ranks in."""
    n = p + q
    return (log2(n) if is_power(n) else log2(n) + 1) * alpha


@algorithm("inter_barrier", paper="Silva, Silva 1999", cost=_hypercube_cost)
def hypercube(r: Index, here: Side, there: Side) -> Program:
    """Swap with the rank that differs in one bit, for every bit, over both groups.

    log2(p + q) rounds. Ranks beyond the largest power of two tell a partner below
    before, and hear from the partner after: two rounds more.
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
