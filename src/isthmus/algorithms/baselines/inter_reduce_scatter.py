"""Reduce_scatter between two groups through one process of each group.

Each function is the program of rank r of the local group, `here`.
"""

from __future__ import annotations

from ...schedules.ir import Index, Program, Recv, Reduce, Round, Send, Span
from ...schedules.layout import Side
from ...schedules.program import lay, merge_rounds, pad, shift
from ...schedules.registry import algorithm
from ..inter_reduce_scatter import (
    INTER_REDUCE_SCATTERS,
)
from ..parts.leaders import (
    halves_cost,
    halves_rounds,
    halves_sum,
    hand_over,
    scatter,
    tree_cost,
    tree_rounds,
    tree_sum,
)
from ..reduce_scatter import pairwise_cost


def _leader_cost(p: int, q: int, n: float, alpha: float, beta: float) -> float:
    """The time of a tree in the larger group, and of messages in turn at a leader."""
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
    """Sum up at the leaders, which send everyone of the remote group a block.

    ceil(log2 p) rounds of all data, then one of max(p, q) messages, both ways at once.
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
    """Sum up at the leaders, which send everyone of the remote group a block.

    ceil(log2 p) rounds of all data, then one of max(p, q) messages, both ways at once.
    Only leaders need to know how the remote group's blocks are cut: leaders swap the
    counts, here a message without data, before their part in the first round of the
    sum, which all other ranks have begun.
    """
    counts = hand_over(r, there, (), ())
    return merge_rounds(iter((counts,)), _leader(r, here, there))


def _remote_reduce_cost(p: int, q: int, n: float, alpha: float, beta: float) -> float:
    """The time of two reductions and messages in turn, and of the slower scatter."""
    return (
        halves_cost(p, n, alpha, beta)
        + halves_cost(q, n, alpha, beta)
        + 2 * tree_cost(2, n, alpha, beta)
        + max(pairwise_cost(p, n, alpha, beta), pairwise_cost(q, n, alpha, beta))
    )


@algorithm(*INTER_REDUCE_SCATTERS, paper="MPICH", cost=_remote_reduce_cost)
def remote_reduce(r: Index, here: Side, there: Side) -> Program:
    """Reduce one group to the other's leader, then back, then scatter in each group.

    All data travel seven times: three times in each direction, one direction after the
    other, and once more to scatter.
    """
    total = here.blocks.total
    program = lay(halves_sum(here.n, r, total), {"tmp": ("tmp", total)})
    local = shift(program, here.base)
    # the local group pauses for the rounds of the remote group's sum
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
    *INTER_REDUCE_SCATTERS,
    paper="Open MPI",
    cost=lambda p, q, n, alpha, beta: (
        max(p, q) * (alpha + n * beta)
        + max(pairwise_cost(p, n, alpha, beta), pairwise_cost(q, n, alpha, beta))
    ),
)
def linear(r: Index, here: Side, there: Side) -> Program:
    """Everyone sends all data to the remote leader, which scatters the sum.

    max(p, q) vectors arrive at a leader in turn.
    """
    total = here.blocks.total
    whole = Span("send", 0, total)
    sum_at_leader, incoming = Span("tmp", 0, total), Span("tmp", total, total)
    for t in range(max(here.n, there.n)):
        # the last rank's vector comes first: earlier ranks are combined from the left
        i, first = there.n - 1 - t, t == 0
        destination = sum_at_leader if first else incoming
        receives = (r == 0) & (i >= 0)
        yield Round(
            (
                Recv(there.base + i, (destination,), receives),
                Send(there.base, (whole,), r == here.n - 1 - t),
            ),
            () if first else (Reduce(incoming, sum_at_leader, receives),),
        )
    yield scatter(r, here, here.blocks.within("tmp"))
