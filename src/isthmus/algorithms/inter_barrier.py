"""Barrier between two groups: messages without data.

Each function says what rank r of the group `here` does. Nobody of either group goes on
before everyone of both has come.
"""

from __future__ import annotations

from ..ir import Index, Program, Recv, Round, Send
from ..layout import Side
from ..registry import algorithm
from .patterns import log2


@algorithm(
    "inter_barrier",
    paper="Hensgen, Finkel, Manber 1988",
    cost=lambda p, q, alpha, beta: log2(p + q) * alpha,
)
def dissemination(r: Index, here: Side, there: Side) -> Program:
    """Tell the rank 1, 2, 4, … further on, in one circle of both groups.

    ceil(log2(p + q)) rounds.
    """
    n, own, step = here.n + there.n, here.base + r, 1
    while step < n:
        yield Round((Recv((own - step) % n, ()), Send((own + step) % n, ())))
        step *= 2
