"""Alltoall and Alltoallv between two groups.

Each function is the program of rank r of the local group, `here`. `send[j]` is the
block for rank j of the remote group, `recv[j]` the place of the block from rank j. A
rank knows no other sizes.
"""

from __future__ import annotations

import numpy as np

from ..schedules.ir import Index, Mask, Program, Recv, Round, Send, Span
from ..schedules.layout import Blocks, Side, pick
from ..schedules.registry import algorithm
from .parts.patterns import STARTUP_ELEMENTS, log2
from .parts.turns import paced_cost, partners, piece, piece_size

INTER_ALLTOALLS = ("inter_alltoall", "inter_alltoallv")


def _turns_cost(
    p: int, q: int, ka: float, kb: float, alpha: float, beta: float
) -> float:
    """The time of max(p, q) turns of the larger block."""
    return max(p, q) * (alpha + max(ka, kb) * beta)


@algorithm(
    *INTER_ALLTOALLS,
    paper="Silva, Silva 1999; Open MPI",
    cost=lambda p, q, ka, kb, alpha, beta: (p + q - 1) * (alpha + max(ka, kb) * beta),
)
def linear(r: Index, here: Side, there: Side, send: Blocks, recv: Blocks) -> Program:
    """Everyone swaps with everyone in rank order, all at once.

    One round; the ranks of one group post receives first, of the other group sends. All
    begin with rank 0 and wait for their turn at that rank: p + q - 1 turns.
    """
    ranks = range(there.n)
    receives = tuple(Recv(there.base + j, recv[j]) for j in ranks)
    sends = tuple(Send(there.base + j, send[j]) for j in ranks)
    yield Round(receives + sends if here.base < there.base else sends + receives)


@algorithm(*INTER_ALLTOALLS, paper="MPICH", cost=_turns_cost)
def pairwise(r: Index, here: Side, there: Side, send: Blocks, recv: Blocks) -> Program:
    """In round t send to the rank t further on, receive from the rank t before.

    max(p, q) rounds, one after the other, each as long as its largest block.
    """
    turns = max(here.n, there.n)
    for t in range(turns):
        target, source = (r + t) % turns, (r - t) % turns
        yield Round(
            (
                Recv(there.base + source, recv[source], source < there.n),
                Send(there.base + target, send[target], target < there.n),
            )
        )


@algorithm(*INTER_ALLTOALLS, paper="folklore", cost=_turns_cost)
def rotated(
    r: Index, here: Side, there: Side, send: Blocks, recv: Blocks, window: int = 32
) -> Program:
    """Everyone swaps with everyone, each beginning with another rank, many at a time.

    max(p, q) turns, of which `window` are in flight at once; in each turn a rank sends
    to, and receives from, at most one partner.
    """
    partners_by_turn = partners(r, here, there)
    for first in range(0, len(partners_by_turn), window):
        in_flight = partners_by_turn[first : first + window]
        yield Round(
            (
                *(Recv(there.base + j, recv[j], j < there.n) for j in in_flight),
                *(Send(there.base + j, send[j], j < there.n) for j in in_flight),
            )
        )


@algorithm(
    *INTER_ALLTOALLS,
    paper="isthmus",
    cost=lambda p, q, ka, kb, alpha, beta, startup=None: paced_cost(
        p, q, max(ka, kb), alpha, beta, startup
    ),
)
def paced(
    r: Index,
    here: Side,
    there: Side,
    send: Blocks,
    recv: Blocks,
    startup: float = STARTUP_ELEMENTS,
) -> Program:
    """The turns of `rotated` one by one, in pieces that two partners swap.

    The next piece goes when the partner's has come, since over TCP a message without
    such an answer would take from the rate of the message that its receiver waits for
    (see `turns`). max(p, q) turns, each of as many rounds as the longer block has
    pieces. `startup` is the number of elements that pass in the time of a start-up.
    """
    piece_elements = piece_size(startup)
    for j in partners(r, here, there):
        longest = max(np.max(send.size(j)), np.max(recv.size(j)))
        for start in range(0, longest, piece_elements):
            yield Round(
                (
                    Recv(
                        there.base + j,
                        piece(recv, j, start, piece_elements),
                        j < there.n,
                    ),
                    Send(
                        there.base + j,
                        piece(send, j, start, piece_elements),
                        j < there.n,
                    ),
                )
            )


def _largest_first(blocks: Blocks, partners: list[Index]) -> np.ndarray:
    """The partners of each rank, the partner with the largest block first.

    Partners whose blocks differ by less than about 16 times stay in their order: nearly
    equal blocks would otherwise be in another order on every rank, and partners would
    not meet.
    """
    sizes = np.array([blocks.size(j) for j in partners])
    order = np.argsort(-(np.frexp(sizes)[1] // 4), 0, kind="stable")
    return np.take_along_axis(np.array(partners), order, 0)


@algorithm(*INTER_ALLTOALLS, paper="isthmus", cost=_turns_cost)
def largest_first(
    r: Index, here: Side, there: Side, send: Blocks, recv: Blocks
) -> Program:
    """As `rotated`, but much larger blocks come first, and all are in flight at once.

    A long message that began late would delay short ones for which ranks wait. Both
    ends of a message know its size, so all agree on the order and nobody waits in a
    circle.
    """
    partners_by_turn = partners(r, here, there)
    sources, targets = (
        _largest_first(blocks, partners_by_turn) for blocks in (recv, send)
    )
    yield Round(
        (
            *(Recv(there.base + j, recv[j], j < there.n) for j in sources),
            *(Send(there.base + j, send[j], j < there.n) for j in targets),
        )
    )


def _bruck_cost(
    p: int, q: int, ka: float, kb: float, alpha: float, beta: float
) -> float:
    """The time for p = q a power of two and blocks of one size; roughly, for others."""
    n, k = max(p, q), max(ka, kb)
    return log2(p + q) * alpha + (log2(n) * n / 2 + n) * k * beta


@algorithm("inter_alltoall", paper="Bruck et al. 1997", cost=_bruck_cost)
def bruck(r: Index, here: Side, there: Side, send: Blocks, recv: Blocks) -> Program:
    """Blocks travel together, by powers of two round one circle of both groups.

    ceil(log2(p + q)) rounds. A block travels once for every bit of its way, so the
    algorithm is for short blocks. Scratch for 2 (p + q) blocks.
    """
    n, own = here.n + there.n, here.base + r
    slot_size = max(send.size(0), recv.size(0))

    def stored_block(way: int, travelled: int, origin: Index) -> Span:
        """The scratch of a block from `origin` after a part of its way.

        A block arrives at one of two places and leaves from the other, since both may
        happen in one round.
        """
        is_local = _inside(here, origin)
        crosses = is_local != _inside(here, (origin + way) % n)
        size = pick(crosses, pick(is_local, send.size(0), recv.size(0)), 0)
        return Span("tmp", (2 * way + travelled.bit_count() % 2) * slot_size, size)

    for level in range(log2(n)):
        step = 1 << level
        leaving_spans: list[Span] = []
        arriving_spans: list[Span] = []
        for way in (d for d in range(n) if d & step):
            travelled = way % step
            origin, before = (own - travelled) % n, (own - travelled - step) % n
            first, last = send[(own + way) % n - there.base], recv[before - there.base]
            leaving_spans += (
                [stored_block(way, travelled, origin)] if travelled else first
            )
            arriving_spans += (
                [stored_block(way, travelled + step, before)]
                if way >> level > 1
                else last
            )
        yield Round(
            (
                Recv((own - step) % n, tuple(arriving_spans)),
                Send((own + step) % n, tuple(leaving_spans)),
            )
        )


def _inside(side: Side, number: Index) -> Mask:
    """Whether a group contains a rank."""
    return (number >= side.base) & (number < side.base + side.n)
