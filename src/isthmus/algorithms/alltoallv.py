"""Alltoall and Alltoallv inside a group.

`send[j]` is what goes to rank j, `recv[j]` where what comes from it belongs. A rank
knows no more.
"""

from __future__ import annotations

from ..schedules.ir import Copy, Index, Program, Recv, Round, Send, Span
from ..schedules.layout import Blocks
from ..schedules.registry import algorithm
from .patterns import log2

BOTH = ("alltoall", "alltoallv")


def _turns_cost(p: int, k: float, alpha: float, beta: float) -> float:
    return (p - 1) * (alpha + k * beta)


def _own(r: Index, send: Blocks, recv: Blocks) -> Round:
    """The block for oneself."""
    return Round(then=(Copy(send[r][0], recv[r][0]),))


@algorithm(*BOTH, paper="MPICH; Open MPI", cost=_turns_cost)
def pairwise(p: int, r: Index, send: Blocks, recv: Blocks) -> Program:
    """In round t send to the rank t further on, receive from the one t before.

    p - 1 rounds, one after the other, each as long as its largest block.
    """
    yield _own(r, send, recv)
    for t in range(1, p):
        target, source = (r + t) % p, (r - t) % p
        yield Round((Recv(source, recv[source]), Send(target, send[target])))


@algorithm(*BOTH, paper="folklore", cost=_turns_cost)
def rotated(p: int, r: Index, send: Blocks, recv: Blocks, window: int = 32) -> Program:
    """Everyone sends to everyone, each beginning with the next one, many at a time.

    p - 1 turns, of which `window` are in flight at once.
    """
    yield _own(r, send, recv)
    for first in range(1, p, window):
        turns = range(first, min(first + window, p))
        yield Round(
            (
                *(Recv((r - t) % p, recv[(r - t) % p]) for t in turns),
                *(Send((r + t) % p, send[(r + t) % p]) for t in turns),
            )
        )


def _bruck_cost(p: int, k: float, alpha: float, beta: float) -> float:
    """In each round the blocks whose way has that bit."""
    hops = sum(way.bit_count() for way in range(p))
    return log2(p) * alpha + hops * k * beta


@algorithm("alltoall", paper="Bruck et al. 1997", cost=_bruck_cost)
def bruck(p: int, r: Index, send: Blocks, recv: Blocks) -> Program:
    """Blocks travel together, by powers of two round the circle of ranks.

    ceil(log2 p) rounds; a block travels once for every bit of its way, so this is for
    short ones. Room for 2 p blocks.
    """
    each = send.size(0)

    def waiting(way: int, gone: int) -> Span:
        """A block on its way, of which it has gone so far; it comes to one of two
        places and leaves from the other."""
        return Span("tmp", (2 * way + gone.bit_count() % 2) * each, each)

    yield _own(r, send, recv)
    for level in range(log2(p)):
        step = 1 << level
        leaving: list[Span] = []
        coming: list[Span] = []
        for way in (d for d in range(p) if d & step):
            gone, last = way % step, way >> level == 1
            leaving += [waiting(way, gone)] if gone else send[(r + way) % p]
            coming += recv[(r - way) % p] if last else [waiting(way, gone + step)]
        yield Round(
            (
                Recv((r - step) % p, tuple(coming)),
                Send((r + step) % p, tuple(leaving)),
            )
        )
