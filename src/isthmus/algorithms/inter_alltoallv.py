"""Alltoall and Alltoallv between two groups.

Each function says what rank r of the group `here` does. `send[j]` is what goes to rank
j of the other group, `recv[j]` where what comes from it belongs. A rank knows no more.
"""

from __future__ import annotations

import numpy as np

from ..schedules.ir import Index, Mask, Program, Recv, Round, Send, Span
from ..schedules.layout import Blocks, Side, pick
from ..schedules.registry import algorithm
from .parts.patterns import STARTUP, log2
from .parts.turns import paced_cost, partners, piece, piece_size

BOTH = ("inter_alltoall", "inter_alltoallv")


def _turns_cost(
    p: int, q: int, ka: float, kb: float, alpha: float, beta: float
) -> float:
    return max(p, q) * (alpha + max(ka, kb) * beta)


@algorithm(
    *BOTH,
    paper="Silva, Silva 1999; Open MPI",
    cost=lambda p, q, ka, kb, alpha, beta: (p + q - 1) * (alpha + max(ka, kb) * beta),
    whole_blocks=True,
)
def linear(r: Index, here: Side, there: Side, send: Blocks, recv: Blocks) -> Program:
    """Everyone swaps with everyone in rank order, all at once.

    One round; one group posts its receives first, the other its sends. All begin with
    rank 0 and wait for their turn there: p + q - 1 turns.
    """
    ranks = range(there.n)
    receives = tuple(Recv(there.base + j, recv[j]) for j in ranks)
    sends = tuple(Send(there.base + j, send[j]) for j in ranks)
    yield Round(receives + sends if here.base < there.base else sends + receives)


@algorithm(*BOTH, paper="MPICH", cost=_turns_cost)
def pairwise(r: Index, here: Side, there: Side, send: Blocks, recv: Blocks) -> Program:
    """In round t send to the rank t further on, receive from the one t before.

    max(p, q) rounds, one after the other, each as long as its largest block.
    """
    most = max(here.n, there.n)
    for t in range(most):
        target, source = (r + t) % most, (r - t) % most
        yield Round(
            (
                Recv(there.base + source, recv[source], source < there.n),
                Send(there.base + target, send[target], target < there.n),
            )
        )


@algorithm(*BOTH, paper="folklore", cost=_turns_cost, whole_blocks=True)
def rotated(
    r: Index, here: Side, there: Side, send: Blocks, recv: Blocks, window: int = 32
) -> Program:
    """Everyone swaps with everyone, each beginning with another, many at a time.

    max(p, q) turns, of which `window` are in flight at once; in each turn a rank has
    one partner at the most, to which it sends and from which it receives.
    """
    every = partners(r, here, there)
    for first in range(0, len(every), window):
        some = every[first : first + window]
        yield Round(
            (
                *(Recv(there.base + j, recv[j], j < there.n) for j in some),
                *(Send(there.base + j, send[j], j < there.n) for j in some),
            )
        )


@algorithm(
    *BOTH,
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
    startup: float = STARTUP,
) -> Program:
    """The turns of `rotated` one by one, in pieces that two partners swap.

    The next piece goes when the partner's has come. max(p, q) turns, each of as many
    rounds as the longer block has pieces. `startup` is the number of elements that pass
    in the time of a start-up.
    """
    each = piece_size(startup)
    for j in partners(r, here, there):
        longest = max(np.max(send.size(j)), np.max(recv.size(j)))
        for start in range(0, longest, each):
            yield Round(
                (
                    Recv(there.base + j, piece(recv, j, start, each), j < there.n),
                    Send(there.base + j, piece(send, j, start, each), j < there.n),
                )
            )


def _largest_first(blocks: Blocks, partners: list[Index]) -> np.ndarray:
    """The partners of each lane, those with the largest blocks first; of those that
    differ by less than 16 times or so, in their order."""
    sizes = np.array([blocks.size(j) for j in partners])
    order = np.argsort(-(np.frexp(sizes)[1] // 4), 0, kind="stable")
    return np.take_along_axis(np.array(partners), order, 0)


@algorithm(*BOTH, paper="isthmus", cost=_turns_cost, whole_blocks=True)
def largest_first(
    r: Index, here: Side, there: Side, send: Blocks, recv: Blocks
) -> Program:
    """As `rotated`, but much larger blocks come first, and all are in flight at once.

    Both ends of a message know its size, so all agree on the order and nobody waits in
    a circle. Else a long message makes short ones late that others wait for.
    """
    every = partners(r, here, there)
    sources, targets = (_largest_first(x, every) for x in (recv, send))
    yield Round(
        (
            *(Recv(there.base + j, recv[j], j < there.n) for j in sources),
            *(Send(there.base + j, send[j], j < there.n) for j in targets),
        )
    )


def _bruck_cost(
    p: int, q: int, ka: float, kb: float, alpha: float, beta: float
) -> float:
    """For p = q a power of two and blocks of one size; else about that."""
    n, k = max(p, q), max(ka, kb)
    return log2(p + q) * alpha + (log2(n) * n / 2 + n) * k * beta


@algorithm("inter_alltoall", paper="Bruck et al. 1997", cost=_bruck_cost)
def bruck(r: Index, here: Side, there: Side, send: Blocks, recv: Blocks) -> Program:
    """Blocks travel together, by powers of two round one circle of both groups.

    ceil(log2(p + q)) rounds; a block travels once for every bit of its way, so this is
    for short ones. Scratch for 2 (p + q) blocks.
    """
    n, own = here.n + there.n, here.base + r
    slot = max(send.size(0), recv.size(0))

    def waiting(way: int, gone: int, origin: Index) -> Span:
        """A block on its way, of which it has gone so far; it comes to one of two
        places and leaves from the other."""
        ours = _inside(here, origin)
        crosses = ours != _inside(here, (origin + way) % n)
        size = pick(crosses, pick(ours, send.size(0), recv.size(0)), 0)
        return Span("tmp", (2 * way + gone.bit_count() % 2) * slot, size)

    for level in range(log2(n)):
        step = 1 << level
        leaving: list[Span] = []
        coming: list[Span] = []
        for way in (d for d in range(n) if d & step):
            gone = way % step
            origin, before = (own - gone) % n, (own - gone - step) % n
            first, last = send[(own + way) % n - there.base], recv[before - there.base]
            leaving += [waiting(way, gone, origin)] if gone else first
            coming += [waiting(way, gone + step, before)] if way >> level > 1 else last
        yield Round(
            (
                Recv((own - step) % n, tuple(coming)),
                Send((own + step) % n, tuple(leaving)),
            )
        )


def _inside(side: Side, number: Index) -> Mask:
    """Whether a rank is of a group."""
    return (number >= side.base) & (number < side.base + side.n)
