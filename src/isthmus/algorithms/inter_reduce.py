"""Reduce from the leaves of a group to a root outside it.

The root is vertex 0 of p and contributes nothing; the leaves are vertices 1 to p - 1.
They contribute "send", and the result is the root's "recv".
"""

from __future__ import annotations

from ..ir import Index, Program
from ..registry import algorithm
from . import bcast, reduce


@algorithm("inter_reduce", paper="folklore", cost=bcast.binomial_cost)
def binomial(p: int, v: Index, m: int) -> Program:
    """The root itself is the root of a tree: subtrees of leaves hand up their results.

    ceil(log2 p) rounds, each of all, in rank order. Room for two messages.
    """
    return reduce.ordered(p, v, m, gives=v > 0)
