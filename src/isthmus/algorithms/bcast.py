"""Broadcasts of a buffer from rank 0 of a group, as building blocks."""

from __future__ import annotations

from ..ir import Index, Program, Recv, Round, Send
from ..layout import Shares
from ..program import then
from .allgatherv import ring
from .patterns import log2, tree


def binomial(p: int, r: Index, total: int) -> Program:
    """Whoever has all of it sends all of it on: ceil(log2 p) rounds, each of all."""
    whole = Shares(1, total)[0]
    for step, below, above in reversed(list(tree(p, r))):
        yield Round((Recv(r - step, whole, below), Send(r + step, whole, above)))


def _segments(p: int) -> int:
    """So many that filling the chain adds an eighth."""
    return max(8 * (p - 1), 1)


def chain(p: int, r: Index, total: int) -> Program:
    """Segments flow down the chain of ranks: close to one transfer of all of it."""
    n = min(_segments(p), max(total, 1))
    segments = Shares(n, total)
    for t in range(n + p - 2):
        yield Round(
            (
                Recv(r - 1, segments[t - r + 1], r > 0),
                Send(r + 1, segments[t - r], r < p - 1),
            )
        )


def chain_cost(p: int, total: float, alpha: float, beta: float) -> float:
    """The time until the last rank has all."""
    n = _segments(p)
    return (n + p - 2) * (alpha + total / n * beta) if p > 1 else 0.0


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


def scatter_allgather_cost(p: int, total: float, alpha: float, beta: float) -> float:
    """The time until all have all, for p a power of two."""
    startups = log2(p) + p - 1
    return startups * alpha + 2 * (1 - 1 / p) * total * beta
