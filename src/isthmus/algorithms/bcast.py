"""Broadcasts of a buffer from rank 0 of a group, as building blocks."""

from __future__ import annotations

from ..ir import Index, Program, Recv, Round, Send
from ..layout import Shares
from ..program import then
from .allgatherv import ring
from .patterns import tree


def binomial(p: int, r: Index, total: int) -> Program:
    """Whoever has all of it sends all of it on: ceil(log2 p) rounds, each of all."""
    whole = Shares(1, total)[0]
    for step, below, above in reversed(list(tree(p, r))):
        yield Round((Recv(r - step, whole, below), Send(r + step, whole, above)))


def chain(p: int, r: Index, total: int) -> Program:
    """Segments flow down the chain of ranks: close to one transfer of all of it.

    8 (p - 1) segments, so that filling the chain adds an eighth.
    """
    n = min(max(8 * (p - 1), 1), max(total, 1))
    segments = Shares(n, total)
    for t in range(n + p - 2):
        yield Round(
            (
                Recv(r - 1, segments[t - r + 1], r > 0),
                Send(r + 1, segments[t - r], r < p - 1),
            )
        )


def _scatter(p: int, r: Index, pieces: Shares) -> Program:
    """Halve what is in hand down the tree, until everyone has its own piece."""
    for step, below, above in reversed(list(tree(p, r))):
        yield Round(
            (
                Recv(r - step, pieces.range(r, r + step), below),
                Send(r + step, pieces.range(r + step, r + 2 * step), above),
            )
        )


def scatter_allgather(p: int, r: Index, total: int) -> Program:
    """Scatter, then a ring: all of it travels twice, as in MPICH for long messages."""
    pieces = Shares(p, total)
    return then(_scatter(p, r, pieces), ring(p, r, pieces))
