"""Gather(v) from the leaves of a group to a root outside it.

The root is vertex 0 of p, and its block is empty. The blocks of the leaves, vertices 1
to p - 1, go from "send" to their places in the root's "recv".
"""

from __future__ import annotations

from ..ir import Copy, Index, Program, Recv, Round, Send, Span, Spans
from ..layout import Blocks, Mapped
from ..registry import algorithm
from . import gather
from .patterns import outer

BOTH = ("inter_gather", "inter_gatherv")


def _own(v: Index, blocks: Blocks) -> Spans:
    return (Span("send", 0, blocks.size(v)),)


def linear_cost(p: int, k: float, alpha: float, beta: float) -> float:
    """One message after the other at the root."""
    return (p - 1) * (alpha + k * beta)


@algorithm(*BOTH, paper="Silva, Silva 1999; MPICH", cost=linear_cost)
def linear(p: int, v: Index, blocks: Blocks) -> Program:
    """Every leaf sends its block straight to the root, which awaits them all at once.

    One round, of p - 1 messages at the root. A leaf knows no block but its own.
    """
    if outer(v):
        yield Round(tuple(Recv(i, blocks[i]) for i in range(1, p)))
    else:
        yield Round((Send(0, _own(v, blocks)),))


@algorithm(*BOTH, paper="folklore", cost=gather.cost, own_counts=True)
def binomial(p: int, v: Index, blocks: Blocks) -> Program:
    """The root itself is the root of a tree: subtrees of leaves hand up their blocks.

    ceil(log2 p) rounds, and every byte comes to the root once. A leaf knows the blocks
    of its own subtree, and holds them in "tmp".
    """
    own, begin = _own(v, blocks), blocks.offset(v)
    held = Mapped(p, lambda i: blocks.offset(i) - begin, "recv" if outer(v) else "tmp")
    yield Round(then=(Copy(own[0], held[v][0], gather.alone(p, v) ^ True),))
    yield from gather.up(p, v, held, own)
