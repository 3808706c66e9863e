"""Barrier between two groups through one process of each group.

Each function is the program of rank r of the local group, `here`.
"""

from __future__ import annotations

from ...schedules.ir import Index, Program, Recv, Round, Send
from ...schedules.layout import Side
from ...schedules.program import pad, shift
from ...schedules.registry import algorithm
from ..inter_barrier import circle
from ..parts.patterns import log2, tree


def _down(r: Index, here: Side) -> Program:
    """Messages from the leader down a tree to all ranks of the group."""
    for step, below, above in reversed(list(tree(here.n, r))):
        own = here.base + r
        yield Round((Recv(own - step, (), below), Send(own + step, (), above)))


def _up(r: Index, here: Side) -> Program:
    """Messages from all ranks of a group up a tree to the leader."""
    for step, below, above in tree(here.n, r):
        own = here.base + r
        yield Round((Recv(own + step, (), above), Send(own - step, (), below)))


def _across(r: Index, there: Side, sends: bool = True, receives: bool = True) -> Round:
    """A message from leader to leader."""
    return Round(
        (
            Recv(there.base, (), (r == 0) & receives),
            Send(there.base, (), (r == 0) & sends),
        )
    )


@algorithm(
    "inter_barrier",
    paper="Open MPI: an Allreduce of one number",
    cost=lambda p, q, alpha, beta: (2 * log2(max(p, q)) + 1) * alpha,
)
def leaders(r: Index, here: Side, there: Side) -> Program:
    """All ranks tell their leader, the leaders each other and then all ranks.

    2 ceil(log2 p) + 1 rounds.
    """
    yield from pad(_up(r, here), log2(max(here.n, there.n)))
    yield _across(r, there)
    yield from _down(r, here)


@algorithm(
    "inter_barrier",
    paper="MPICH",
    cost=lambda p, q, alpha, beta: (log2(max(p, q)) + log2(p) + log2(q) + 2) * alpha,
)
def local_first(r: Index, here: Side, there: Side) -> Program:
    """A barrier inside each group, then a broadcast to the remote group, and one back.

    About 3 log p + 2 rounds.
    """
    yield from pad(shift(circle(here.n, r), here.base), log2(max(here.n, there.n)))
    first = here.base < there.base
    yield _across(r, there, first, not first)
    yield from pad(iter(()), log2(there.n)) if first else _down(r, here)
    yield _across(r, there, not first, first)
    yield from _down(r, here) if first else ()
