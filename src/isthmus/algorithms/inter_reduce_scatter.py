"""Reduce_scatter between two groups.

Each function says what rank r of the group `here` does. Everyone contributes all of
"send"; `here.blocks` is how the sum of the other group is cut for the ranks of this
one, `there.blocks` how the sum of this group is cut for the other. Last what libraries
do, through one process of each group.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..schedules.ir import Index, Program, Recv, Reduce, Round, Send, Span
from ..schedules.layout import Even, Side
from ..schedules.program import lay, merge_rounds, pad, shift
from ..schedules.registry import algorithm
from .inter_shares import Scheme, commutative, ordered as by_rank, sums_across
from .leaders import (
    halves_cost,
    halves_rounds,
    halves_sum,
    hand_over,
    scatter,
    scatter_cost,
    tree_cost,
    tree_rounds,
    tree_sum,
)
from .patterns import STARTUP, is_power
from .reduce_scatter import both_parts, bruck_cost, in_order, pairwise_cost
from .turns import first_partner, paced_cost, partners, piece, piece_size

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


def _leader_cost(p: int, q: int, n: float, alpha: float, beta: float) -> float:
    sums = tree_cost(max(p, q), n, alpha, beta)
    return sums + max(p, q) * alpha + n * beta


@algorithm(
    "inter_reduce_scatter_block",
    paper="Silva, Silva 1999",
    cost=_leader_cost,
    name="leader",
    other_counts=True,
)
def _leader(r: Index, here: Side, there: Side) -> Program:
    """Sum up at the leaders, which send everyone of the other group its block.

    ceil(log2 p) rounds of all, then one of max(p, q) messages, both ways at once.
    """
    total, own = here.blocks.total, Span("recv", 0, here.blocks.size(r))
    program = shift(tree_sum(here.n, r, total), here.base)
    yield from pad(program, tree_rounds(max(here.n, there.n)))
    blocks = there.blocks.within("tmp")
    sends = (Send(there.base + j, blocks[j], r == 0) for j in range(there.n))
    yield Round((Recv(there.base, (own,)), *sends))


@algorithm(
    "inter_reduce_scatter",
    paper="Silva, Silva 1999",
    cost=lambda p, q, n, alpha, beta: alpha + _leader_cost(p, q, n, alpha, beta),
    other_counts=True,
)
def leader(r: Index, here: Side, there: Side) -> Program:
    """Sum up at the leaders, which send everyone of the other group its block.

    ceil(log2 p) rounds of all, then one of max(p, q) messages, both ways at once. Only
    leaders need to know how the other group's blocks are cut: they swap the counts,
    here a message without data, before they take part in the first round of the sum,
    in which all others have begun.
    """
    counts = hand_over(r, there, (), ())
    return merge_rounds(iter((counts,)), _leader(r, here, there))


def _remote_reduce_cost(p: int, q: int, n: float, alpha: float, beta: float) -> float:
    return (
        halves_cost(p, n, alpha, beta)
        + halves_cost(q, n, alpha, beta)
        + 2 * tree_cost(2, n, alpha, beta)
        + max(scatter_cost(p, n, alpha, beta), scatter_cost(q, n, alpha, beta))
    )


@algorithm(*BOTH, paper="MPICH", cost=_remote_reduce_cost)
def remote_reduce(r: Index, here: Side, there: Side) -> Program:
    """Reduce one group to the other's leader, then back, then scatter in each group.

    All of it travels seven times, three for each direction, which come one after the
    other.
    """
    total = here.blocks.total
    program = lay(halves_sum(here.n, r, total), {"tmp": ("tmp", total)})
    local = shift(program, here.base)
    # the other group's sum is as many rounds in which this one does nothing
    pause = pad(iter(()), halves_rounds(there.n))
    own, other = Span("tmp", total, total), Span("tmp", 0, total)
    if here.base < there.base:
        yield from pause
        yield hand_over(r, there, None, (other,))
        yield from local
        yield hand_over(r, there, (own,), None)
    else:
        yield from local
        yield hand_over(r, there, (own,), None)
        yield from pause
        yield hand_over(r, there, None, (other,))
    yield scatter(r, here, here.blocks.within("tmp"))


@algorithm(
    *BOTH,
    paper="Open MPI",
    cost=lambda p, q, n, alpha, beta: (
        max(p, q) * (alpha + n * beta)
        + max(scatter_cost(p, n, alpha, beta), scatter_cost(q, n, alpha, beta))
    ),
)
def linear(r: Index, here: Side, there: Side) -> Program:
    """Everyone sends all it has to the other leader, which scatters the sum.

    max(p, q) vectors arrive at a leader, one after the other.
    """
    total = here.blocks.total
    whole = Span("send", 0, total)
    grown, incoming = Span("tmp", 0, total), Span("tmp", total, total)
    for t in range(max(here.n, there.n)):
        # the last comes first: each is put before those that are there
        i, first = there.n - 1 - t, t == 0
        came = grown if first else incoming
        taken = (r == 0) & (i >= 0)
        yield Round(
            (
                Recv(there.base + i, (came,), taken),
                Send(there.base, (whole,), r == here.n - 1 - t),
            ),
            () if first else (Reduce(incoming, grown, taken),),
        )
    yield scatter(r, here, here.blocks.within("tmp"))
