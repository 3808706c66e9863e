"""Allgather and Allgatherv between two groups through one process of each group.

Each function is the program of rank r of the local group, `here`.
"""

from __future__ import annotations

from ...schedules.ir import Index, Program, Recv, Round, Send, Span
from ...schedules.layout import (
    Even,
    Side,
)
from ...schedules.program import pad, shift
from ...schedules.registry import Stage, algorithm
from .. import bcast
from ..inter_allgatherv import (
    INTER_ALLGATHERS,
    KANG,
)
from ..parts import gather
from ..parts.patterns import STARTUP_ELEMENTS, doubling_cost, log2, turns_cost


def _roots_swap(
    r: Index, here: Side, there: Side, sends: bool, receives: bool
) -> Round:
    """The round in which the roots send and receive the blocks of their groups."""
    own_data = (Span("tmp", 0, here.blocks.total),)
    remote_data = (Span("recv", 0, there.blocks.total),)
    return Round(
        (
            *((Recv(there.base, remote_data, r == 0),) if receives else ()),
            *((Send(there.base, own_data, r == 0),) if sends else ()),
        )
    )


def _gathered(r: Index, here: Side, there: Side) -> Program:
    """Both groups gather, in an equal number of rounds, so that their roots can swap.

    As in MPICH, blocks of one size go up a tree, other blocks straight to the root.
    """
    even = isinstance(here.blocks, Even)
    program = gather.binomial(r, here) if even else gather.linear(r, here)
    return pad(program, 2 + log2(max(here.n, there.n)))


def _root_gathering_cost(
    p: int,
    q: int,
    ka: float,
    kb: float,
    alpha: float,
    beta: float,
    stage: object,
    startup: float | None = None,
) -> float:
    """Eq. 1, but for the start-ups of the parts and for filling the pipelines."""
    return (
        max(doubling_cost(p, ka, alpha, beta), doubling_cost(q, kb, alpha, beta))
        + alpha
        + max(p * ka, q * kb) * beta
        + max(
            bcast.circulant_cost(p, q * kb, alpha, beta, startup=startup),
            bcast.circulant_cost(q, p * ka, alpha, beta, startup=startup),
        )
    )


@algorithm(
    *INTER_ALLGATHERS,
    paper=f"{KANG}, Eq. 1",
    cost=_root_gathering_cost,
    own_counts=True,
)
def root_gathering(
    r: Index, here: Side, there: Side, stage: Stage, startup: float = STARTUP_ELEMENTS
) -> Program:
    """Gather at a root in each group, let the roots swap, broadcast: all at its best.

    About three times the lower bound, both directions at once; the broadcast is on a
    circulant graph, in the fewest rounds.
    """
    yield from _gathered(r, here, there)
    yield _roots_swap(r, here, there, sends=True, receives=True)
    total = there.blocks.total
    local = bcast.circulant(here.n, r, total, 0, startup=startup)
    yield from shift(local, here.base)


def _sequential_cost(
    p: int, q: int, ka: float, kb: float, alpha: float, beta: float, stage: object
) -> float:
    """Eq. 2, with the start-ups of the ring that ends a broadcast."""
    return (
        max(doubling_cost(p, ka, alpha, beta), doubling_cost(q, kb, alpha, beta))
        + 2 * alpha
        + (p * ka + q * kb) * beta
        + bcast.scatter_allgather_cost(q, p * ka, alpha, beta)
        + bcast.scatter_allgather_cost(p, q * kb, alpha, beta)
    )


@algorithm(
    *INTER_ALLGATHERS,
    paper=f"{KANG}, Eq. 2; MPICH",
    cost=_sequential_cost,
    own_counts=True,
)
def root_gathering_sequential(
    r: Index, here: Side, there: Side, stage: Stage
) -> Program:
    """The algorithm of MPI libraries: gather, then one direction after the other.

    Up to seven times the lower bound.
    """
    yield from _gathered(r, here, there)
    yield from _one_after_the_other(r, here, there)


def _one_after_the_other(r: Index, here: Side, there: Side) -> Program:
    """A's data to B's root and by a broadcast to B, and then B's data to A."""
    local = shift(bcast.scatter_allgather(here.n, r, there.blocks.total, 0), here.base)
    # the local group pauses for the rounds of the remote group's broadcast
    pause = pad(iter(()), log2(there.n) + there.n - 1)
    if here.base < there.base:
        yield _roots_swap(r, here, there, sends=True, receives=False)
        yield from pause
        yield _roots_swap(r, here, there, sends=False, receives=True)
        yield from local
    else:
        yield _roots_swap(r, here, there, sends=False, receives=True)
        yield from local
        yield _roots_swap(r, here, there, sends=True, receives=False)


def _ring_gather_cost(
    p: int, q: int, ka: float, kb: float, alpha: float, beta: float, stage: object
) -> float:
    """Eq. 2 with a ring in place of the tree that gathers."""
    tree = max(doubling_cost(p, ka, alpha, beta), doubling_cost(q, kb, alpha, beta))
    ring = max(turns_cost(n, k, alpha, beta) for n, k in ((p, ka), (q, kb)))
    return _sequential_cost(p, q, ka, kb, alpha, beta, stage) - tree + ring


@algorithm(
    *INTER_ALLGATHERS,
    paper=f"{KANG}, section 5, on MPICH",
    cost=_ring_gather_cost,
    own_counts=True,
)
def root_gathering_ring(r: Index, here: Side, there: Side, stage: Stage) -> Program:
    """Gather by a ring, then one direction after the other: the paper's at 256 nodes.

    As many bytes, but max(p, q) - 1 rounds, each as slow as the slowest link.
    """
    yield from pad(gather.ring(r, here), max(here.n, there.n))
    yield from _one_after_the_other(r, here, there)


def _leader_cost(
    p: int, q: int, ka: float, kb: float, alpha: float, beta: float, stage: object
) -> float:
    """The time for p = q; else a broadcast may wait for sends to the remote group."""
    return max(
        (p + log2(q)) * alpha + (1 + log2(q)) * p * ka * beta,
        (q + log2(p)) * alpha + (1 + log2(p)) * q * kb * beta,
    )


@algorithm(*INTER_ALLGATHERS, paper="Silva, Silva 1999", cost=_leader_cost)
def leader(r: Index, here: Side, there: Side, stage: Stage) -> Program:
    """Everyone sends a block to the remote leader, which broadcasts all of them."""
    receives = (Recv(there.base + i, there.blocks[i], r == 0) for i in range(there.n))
    yield Round((*receives, Send(there.base, here.own(r))))
    yield from shift(bcast.binomial(here.n, r, there.blocks.total, 0), here.base)
