"""Reduce inside a group, to any root; also building blocks.

Everyone contributes "send"; the result is the root's "recv".
"""

from __future__ import annotations

from ..schedules.ir import Copy, Index, Mask, Program, Recv, Reduce, Round, Send, Span
from ..schedules.layout import Shares
from ..schedules.registry import algorithm
from . import bcast
from .parts.patterns import STARTUP_ELEMENTS, tree
from .parts.reduce_mirrored import mirrored


def ordered(p: int, r: Index, total: int, root: int = 0, gives: Mask = True) -> Program:
    """Subtrees of consecutive ranks hand up their combined vectors, in rank order.

    A rank that does not give has no "send". Scratch for two messages, which take turns
    to be the one that arrives.
    """
    own, result = Span("send", 0, total), Span("recv", 0, total)
    buffers = Span("tmp", 0, total), Span("tmp", total, total)
    combined, arrivals = own, 0 * r
    for level, (step, below, above) in enumerate(tree(p, r)):
        # the sum takes the place of the higher ranks' part; the last of all
        # arrivals is at rank 0
        last = root == 0 and 2 * step >= p
        arrived = result if last else buffers[level % 2]
        own_sum = Span("tmp", (arrivals - 1) % 2 * total, total)
        yield Round(
            (
                Recv(r + step, (arrived,), above),
                Send(r - step, (own,), below & (arrivals == 0)),
                Send(r - step, (own_sum,), below & (arrivals > 0)),
            ),
            (Reduce(combined, arrived, above & (gives | (arrivals > 0))),),
        )
        combined, arrivals = arrived, arrivals + above
    if root:
        yield Round((Recv(0, (result,), r == root), Send(root, (combined,), r == 0)))
    elif p == 1:
        yield Round(then=(Copy(own, result),))


@algorithm("reduce", paper="folklore", cost=bcast.binomial_cost)
def binomial(p: int, r: Index, total: int, root: int) -> Program:
    """Subtrees of consecutive ranks hand up their combined vectors, in rank order.

    ceil(log2 p) rounds of all data, to rank 0, and one more to another root. Scratch
    for two messages.
    """
    return ordered(p, r, total, root)


@algorithm("reduce", paper="folklore", cost=bcast.chain_cost, commutative=True)
def chain(p: int, r: Index, total: int, root: int, n: int = 0) -> Program:
    """Segments flow up the chain of ranks, and every rank adds its own.

    n + p - 2 rounds of an n-th, in any order. Scratch for all data, but none at the
    root.
    """
    n = n or min(bcast.segments(p), max(total, 1))
    forth = bcast.chain(p, r, total, root, n)
    return mirrored(forth, Shares(n, total), r == root)


@algorithm(
    "reduce",
    paper="Träff 2025, circulant graphs",
    cost=bcast.circulant_cost,
    commutative=True,
)
def circulant(
    p: int,
    r: Index,
    total: int,
    root: int,
    n: int = 0,
    startup: float = STARTUP_ELEMENTS,
) -> Program:
    """The broadcast on a circulant graph backwards, in as few rounds.

    n - 1 + ceil(log2 p) rounds; everyone sends every part once, combined in any order.
    Scratch for all data and a part, at the root for a part.
    """
    n = n or bcast.parts(p, total, startup)
    forth = bcast.circulant(p, r, total, root, n)
    pieces = Shares(n, total)
    return mirrored(forth, pieces, r == root, incoming=int(pieces.size(0)))
