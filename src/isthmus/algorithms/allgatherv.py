"""Allgatherv inside a group, in place: rank r begins with block r where it belongs."""

from __future__ import annotations

import numpy as np

from ..ir import Index, Library, Program, Recv, Round, Send
from ..layout import Blocks
from ..registry import algorithm
from . import patterns
from .patterns import log2


def _ring_cost(p: int, k: float, alpha: float, beta: float) -> float:
    return (p - 1) * (alpha + k * beta)


def _doubling_cost(p: int, k: float, alpha: float, beta: float) -> float:
    return log2(p) * alpha + (p - 1) * k * beta


@algorithm("allgatherv", paper="folklore", cost=_ring_cost)
def ring(p: int, r: Index, blocks: Blocks) -> Program:
    """Pass on to the right the block that came last from the left.

    p - 1 rounds; every block travels once to every rank, between neighbours only.
    """
    left, right, latest = (r - 1) % p, (r + 1) % p, blocks[r]
    for received, _, _ in patterns.ring(p, r):
        block = blocks[received]
        yield Round((Recv(left, block), Send(right, latest)))
        latest = block


@algorithm("allgatherv", paper="Bruck et al. 1997", cost=_doubling_cost)
def bruck(p: int, r: Index, blocks: Blocks) -> Program:
    """With blocks r..r+have-1 in hand, fetch as many more from rank r+have.

    ceil(log2 p) rounds; every block travels once to every rank.
    """
    have = 1
    while have < p:
        n = min(have, p - have)
        yield Round(
            (
                Recv((r + have) % p, blocks.window(r + have, n)),
                Send((r - have) % p, blocks.window(r, n)),
            )
        )
        have += n


@algorithm(
    "allgatherv",
    paper="Thakur, Rabenseifner, Gropp 2005",
    cost=_doubling_cost,
    needs=lambda p: p & (p - 1) == 0,
)
def recursive_doubling(p: int, r: Index, blocks: Blocks) -> Program:
    """Swap all one has with the partner whose number differs in one bit.

    log2 p rounds, for p a power of two; every block travels once to every rank.
    """
    have = 1
    while have < p:
        partner = r ^ have
        mine, other = r - r % have, partner - partner % have
        yield Round(
            (
                Recv(partner, blocks.range(other, other + have)),
                Send(partner, blocks.range(mine, mine + have)),
            )
        )
        have *= 2


@algorithm("allgatherv", paper="the MPI library", cost=_doubling_cost)
def library(p: int, r: Index, blocks: Blocks) -> Program:
    """Leave it to the MPI library's own Allgatherv inside the group."""
    if p > 1:
        offsets = np.asarray(blocks.offset(np.arange(p + 1))).tolist()
        yield Round((Library(0, blocks.buf, tuple(offsets)),))
