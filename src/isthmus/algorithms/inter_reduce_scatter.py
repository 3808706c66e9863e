"""Reduce_scatter between two groups.

Each function says what rank r of the group `here` does. Everyone contributes all of
"send"; `here.blocks` is how the sum of the other group is cut for the ranks of this
one, `there.blocks` how the sum of this group is cut for the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..schedules.ir import Index, Program, Recv, Reduce, Round, Send, Span
from ..schedules.layout import Even, Side
from ..schedules.registry import algorithm
from .parts.inter_shares import Scheme, commutative, ordered as by_rank, sums_across
from .parts.patterns import STARTUP, is_power
from .parts.turns import first_partner, paced_cost, partners, piece, piece_size
from .reduce_scatter import both_parts, bruck_cost, in_order, pairwise_cost

BOTH = ("inter_reduce_scatter", "inter_reduce_scatter_block")


@algorithm(
    *BOTH,
    paper="folklore",
    cost=lambda p, q, n, alpha, beta: max(p, q) * (alpha + n / min(p, q) * beta),
    other_counts=True,
)
def direct(r: Index, here: Side, there: Side) -> Program:
    """Everyone sends each of the other group its block, to be combined there.

    max(p, q) rounds of a block, for any operator. Where p = q no element travels in
    vain; else ranks of the smaller group get more vectors than they send.
    """
    size, most = here.blocks.size(r), max(here.n, there.n)
    sent = there.blocks.within("send")
    for t in range(most):
        target, i = (r + t) % most, (r - t) % most
        comm, steps = in_order(r, i, there.n, size, there.base + i, i < there.n)
        send = Send(there.base + target, sent[target], target < there.n)
        yield Round((*comm, send), steps)
    yield both_parts(r, there.n, size)


@algorithm(
    *BOTH,
    paper="isthmus",
    cost=lambda p, q, n, alpha, beta, startup=None: paced_cost(
        p, q, n / min(p, q), alpha, beta, startup
    ),
    other_counts=True,
    commutative=True,
)
def paced(r: Index, here: Side, there: Side, startup: float = STARTUP) -> Program:
    """As `direct`, in turns in which two partners swap, piece by piece.

    The next piece goes when the partner's has come. max(p, q) turns, combined in any
    order. `startup` is the number of elements that pass in the time of a start-up.
    Scratch for a block.
    """
    sent, came = there.blocks.within("send"), Even(1, here.blocks.size(r), "tmp")
    first, each = first_partner(r, here, there), piece_size(startup)
    for j in partners(r, here, there):
        peer, real, begins = there.base + j, j < there.n, j == first
        longest = max(np.max(sent.size(j)), np.max(came.size(0)))
        for start in range(0, longest, each):
            incoming = piece(came, 0, start, each)
            total = piece(came.within("recv"), 0, start, each)
            yield Round(
                (
                    Recv(peer, total, real & begins),
                    Recv(peer, incoming, real & (begins ^ True)),
                    Send(peer, piece(sent, j, start, each), real),
                ),
                (Reduce(incoming[0], total[0], real & (begins ^ True)),),
            )


def across_cost(p: int, q: int, n: float, alpha: float, beta: float) -> float:
    """Handing over the shares, where the larger group is a multiple of the smaller."""
    return -(-max(p, q) // min(p, q)) * alpha + n / min(p, q) * beta


def ordered_cost(p: int, n: float, alpha: float, beta: float) -> float:
    """Reducing into shares in rank order."""
    return (bruck_cost if is_power(p) else pairwise_cost)(p, n, alpha, beta)


def _scattered(
    r: Index, here: Side, there: Side, way: Callable[[int], Scheme]
) -> Program:
    ways, wanted = (way(here.n), way(there.n)), (here.blocks, there.blocks)
    return sums_across(
        r, here, there, here.blocks.total, ways, wanted, Span("recv", 0, 0)
    )


@algorithm(
    *BOTH,
    paper="Rabenseifner 2004, halving; Kang, Träff et al. 2019, the exchange",
    cost=lambda p, q, n, alpha, beta: (
        max(ordered_cost(p, n, alpha, beta), ordered_cost(q, n, alpha, beta))
        + across_cost(p, q, n, alpha, beta)
    ),
    other_counts=True,
)
def ordered(r: Index, here: Side, there: Side) -> Program:
    """Reduce into equal shares inside each group, then hand them where they belong.

    For any operator: log2 p rounds and the exchange, or p - 1 if p is not a power of
    two. Every element is sent about once.
    """
    return _scattered(r, here, there, by_rank)


@algorithm(
    *BOTH,
    paper="Träff 2024, on circulant graphs; Kang, Träff et al. 2019, the exchange",
    cost=lambda p, q, n, alpha, beta: (
        bruck_cost(max(p, q), n, alpha, beta) + across_cost(p, q, n, alpha, beta)
    ),
    other_counts=True,
    commutative=True,
)
def bruck(r: Index, here: Side, there: Side) -> Program:
    """The same in as few rounds for any group, combined in any order.

    ceil(log2 p) rounds and the exchange.
    """
    return _scattered(r, here, there, commutative)
