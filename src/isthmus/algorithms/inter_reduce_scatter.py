"""Reduce_scatter between two groups.

Each function is the program of rank r of the local group, `here`. Everyone contributes
all of "send"; `here.blocks` is how the sum of the remote group is cut for the local
ranks, `there.blocks` how the sum of the local group is cut for the remote ranks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..schedules.ir import Index, Program, Recv, Reduce, Round, Send, Span
from ..schedules.layout import Even, Side
from ..schedules.registry import algorithm
from .parts.inter_shares import Scheme, commutative, ordered as by_rank, sums_across
from .parts.patterns import STARTUP_ELEMENTS, is_power
from .parts.turns import first_partner, paced_cost, partners, piece, piece_size
from .reduce_scatter import both_parts, bruck_cost, in_order, pairwise_cost

INTER_REDUCE_SCATTERS = ("inter_reduce_scatter", "inter_reduce_scatter_block")


@algorithm(
    *INTER_REDUCE_SCATTERS,
    paper="folklore",
    cost=lambda p, q, n, alpha, beta: max(p, q) * (alpha + n / min(p, q) * beta),
    other_counts=True,
)
def direct(r: Index, here: Side, there: Side) -> Program:
    """Everyone sends each remote rank a block, to be combined by the receiver.

    max(p, q) rounds of a block, for any operator. Where p = q no element travels in
    vain; else ranks of the smaller group get more vectors than they send.
    """
    block_size, turns = here.blocks.size(r), max(here.n, there.n)
    sent = there.blocks.within("send")
    for t in range(turns):
        target, i = (r + t) % turns, (r - t) % turns
        comm, steps = in_order(r, i, there.n, block_size, there.base + i, i < there.n)
        send = Send(there.base + target, sent[target], target < there.n)
        yield Round((*comm, send), steps)
    yield both_parts(r, there.n, block_size)


@algorithm(
    *INTER_REDUCE_SCATTERS,
    paper="isthmus",
    cost=lambda p, q, n, alpha, beta, startup=None: paced_cost(
        p, q, n / min(p, q), alpha, beta, startup
    ),
    other_counts=True,
    commutative=True,
)
def paced(
    r: Index, here: Side, there: Side, startup: float = STARTUP_ELEMENTS
) -> Program:
    """As `direct`, in turns in which two partners swap, piece by piece.

    The next piece goes when the partner's has come. max(p, q) turns, combined in any
    order. `startup` is the number of elements that pass in the time of a start-up.
    Scratch for a block.
    """
    sent, arrived = there.blocks.within("send"), Even(1, here.blocks.size(r), "tmp")
    first, piece_elements = first_partner(r, here, there), piece_size(startup)
    for j in partners(r, here, there):
        peer, has_partner, is_first = there.base + j, j < there.n, j == first
        longest = max(np.max(sent.size(j)), np.max(arrived.size(0)))
        for start in range(0, longest, piece_elements):
            incoming = piece(arrived, 0, start, piece_elements)
            total = piece(arrived.within("recv"), 0, start, piece_elements)
            yield Round(
                (
                    Recv(peer, total, has_partner & is_first),
                    Recv(peer, incoming, has_partner & (is_first ^ True)),
                    Send(peer, piece(sent, j, start, piece_elements), has_partner),
                ),
                (Reduce(incoming[0], total[0], has_partner & (is_first ^ True)),),
            )


def across_cost(p: int, q: int, n: float, alpha: float, beta: float) -> float:
    """The time to swap shares, where the larger group is a multiple of the smaller."""
    return -(-max(p, q) // min(p, q)) * alpha + n / min(p, q) * beta


def ordered_cost(p: int, n: float, alpha: float, beta: float) -> float:
    """The time to reduce into shares in rank order."""
    return (bruck_cost if is_power(p) else pairwise_cost)(p, n, alpha, beta)


def _scattered(
    r: Index, here: Side, there: Side, scheme_for: Callable[[int], Scheme]
) -> Program:
    """Reduce into shares inside each group, then hand over the wanted blocks."""
    schemes = (scheme_for(here.n), scheme_for(there.n))
    wanted = (here.blocks, there.blocks)
    return sums_across(
        r, here, there, here.blocks.total, schemes, wanted, Span("recv", 0, 0)
    )


@algorithm(
    *INTER_REDUCE_SCATTERS,
    paper="Rabenseifner 2004, halving; Kang, Träff et al. 2019, the exchange",
    cost=lambda p, q, n, alpha, beta: (
        max(ordered_cost(p, n, alpha, beta), ordered_cost(q, n, alpha, beta))
        + across_cost(p, q, n, alpha, beta)
    ),
    other_counts=True,
)
def ordered(r: Index, here: Side, there: Side) -> Program:
    """Reduce into equal shares inside each group, then hand over the wanted blocks.

    For any operator: log2 p rounds and the exchange, or p - 1 if p is not a power of
    two. Every element is sent about once.
    """
    return _scattered(r, here, there, by_rank)


@algorithm(
    *INTER_REDUCE_SCATTERS,
    paper="Träff 2024, on circulant graphs; Kang, Träff et al. 2019, the exchange",
    cost=lambda p, q, n, alpha, beta: (
        bruck_cost(max(p, q), n, alpha, beta) + across_cost(p, q, n, alpha, beta)
    ),
    other_counts=True,
    commutative=True,
)
def bruck(r: Index, here: Side, there: Side) -> Program:
    """Reduce into shares in the fewest rounds for any group, combined in any order.

    ceil(log2 p) rounds and the exchange.
    """
    return _scattered(r, here, there, commutative)
