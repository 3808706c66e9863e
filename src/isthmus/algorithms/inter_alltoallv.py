"""Alltoall and Alltoallv between two groups.

Each function says what rank r of the group `here` does. `send[j]` is what goes to rank
j of the other group, `recv[j]` where what comes from it belongs. A rank knows no more.
"""

from __future__ import annotations

from ..ir import Index, Program, Recv, Round, Send
from ..layout import Blocks, Side
from ..registry import algorithm

BOTH = ("inter_alltoall", "inter_alltoallv")


def _turns_cost(
    p: int, q: int, ka: float, kb: float, alpha: float, beta: float
) -> float:
    return max(p, q) * (alpha + max(ka, kb) * beta)


@algorithm(*BOTH, paper="folklore", cost=_turns_cost)
def rotated(
    r: Index, here: Side, there: Side, send: Blocks, recv: Blocks, window: int = 32
) -> Program:
    """Everyone swaps with everyone, each beginning with another, many at a time.

    max(p, q) turns, of which `window` are in flight at once; in each turn a rank has
    one partner at the most, to which it sends and from which it receives.
    """
    most, turn = max(here.n, there.n), 1 if here.base < there.base else -1
    for first in range(0, most, window):
        turns = range(first, min(first + window, most))
        partners = [(r + turn * t) % most for t in turns]
        yield Round(
            (
                *(Recv(there.base + j, recv[j], j < there.n) for j in partners),
                *(Send(there.base + j, send[j], j < there.n) for j in partners),
            )
        )
