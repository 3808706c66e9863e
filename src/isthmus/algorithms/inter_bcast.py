"""Bcast from a root to another group, of a buffer in "recv".

The root is vertex 0 of p, the leaves are vertices 1 to p - 1. What is known inside a
group serves as it is, if the root counts as one of it.
"""

from __future__ import annotations

from ..ir import Index, Program
from ..registry import algorithm
from . import bcast


@algorithm("inter_bcast", paper="folklore", cost=bcast.binomial_cost)
def binomial(p: int, v: Index, m: int) -> Program:
    """The root itself is the root of a tree: whoever has all of it sends it on.

    ceil(log2 p) rounds, each of all: for short messages.
    """
    return bcast.binomial(p, v, m, 0)
