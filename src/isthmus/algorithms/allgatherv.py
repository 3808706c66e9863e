"""Allgatherv inside a group, in place: rank r begins with block r where it belongs."""

from __future__ import annotations

from ..schedules.ir import Index, Program, Recv, Round, Send
from ..schedules.layout import Blocks
from ..schedules.registry import algorithm
from .parts import patterns
from .parts.patterns import doubling_cost, log2, turns_cost


@algorithm("allgatherv", paper="folklore", cost=turns_cost)
def ring(p: int, r: Index, blocks: Blocks) -> Program:
    """Pass on to the right the block that came last from the left.

    p - 1 rounds; every block travels once to every rank, between neighbours only.
    """
    left, right, latest = (r - 1) % p, (r + 1) % p, blocks[r]
    for received, _, _ in patterns.ring(p, r):
        block = blocks[received]
        yield Round((Recv(left, block), Send(right, latest)))
        latest = block


@algorithm("allgatherv", paper="Bruck et al. 1997", cost=doubling_cost)
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
    cost=doubling_cost,
    needs=lambda p: p & (p - 1) == 0,
)
def recursive_doubling(p: int, r: Index, blocks: Blocks) -> Program:
    """Swap all blocks in hand with the partner whose rank differs in one bit.

    log2 p rounds, for p a power of two; every block travels once to every rank.
    """
    have = 1
    while have < p:
        partner = r ^ have
        own_first, partner_first = r - r % have, partner - partner % have
        yield Round(
            (
                Recv(partner, blocks.range(partner_first, partner_first + have)),
                Send(partner, blocks.range(own_first, own_first + have)),
            )
        )
        have *= 2


@algorithm(
    "allgatherv",
    paper="Chen, Zhang, Zhang, Yuan 2005",
    cost=lambda p, k, alpha, beta: p // 2 * alpha + (p - 1) * k * beta,
    needs=lambda p: p == 1 or p % 2 == 0,
)
def neighbor_exchange(p: int, r: Index, blocks: Blocks) -> Program:
    """Swap with the two neighbours in turn: one block, then always the latest pair.

    p / 2 rounds, for even p; every block travels once to every rank, between neighbours
    only.
    """
    direction = 1 - 2 * (r % 2)  # even ranks begin to the right
    latest = blocks[r]
    for k in range(p // 2):
        partner = (r + direction) % p
        # pairs come alternately from both sides, each from a rank further away
        pair = (r // 2 + direction * ((k + 1) // 2)) % (p // 2) * 2
        block = blocks.range(pair, pair + 2) if k else blocks[partner]
        yield Round((Recv(partner, block), Send(partner, latest)))
        latest = block if k else blocks.range(pair, pair + 2)
        direction = -direction


@algorithm("allgatherv", paper="Jeaugey 2025 (PAT)", cost=doubling_cost)
def pat(p: int, r: Index, blocks: Blocks, aggregation: int = 0) -> Program:
    """Bruck's distances in reverse order: one block far away first, then more nearer.

    ceil(log2 p) rounds; every block travels once to every rank. `aggregation` bounds
    the blocks of a message, at the price of more rounds.
    """
    for level in reversed(range(log2(p))):
        distance = 1 << level
        subtree = range(0, p - distance, 2 * distance)
        blocks_per_message = aggregation or len(subtree)
        for first in range(0, len(subtree), blocks_per_message):
            sources = subtree[first : first + blocks_per_message]
            arriving = (blocks[(r - distance - s) % p][0] for s in sources)
            departing = (blocks[(r - s) % p][0] for s in sources)
            yield Round(
                (
                    Recv((r - distance) % p, tuple(arriving)),
                    Send((r + distance) % p, tuple(departing)),
                )
            )
