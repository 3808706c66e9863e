"""Rough times of an allgatherv inside a group: for a choice, not for a prediction.

A round takes a start-up, then the time of the longest message on its wire, or the time
of all messages together in a shared memory or on a shared processor, if longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from ..algorithms.allgatherv_circulant import best_n, volumes
from ..algorithms.parts.patterns import log2
from ..algorithms.parts.piece_size import best, pieces
from ..algorithms.parts.stages import RING_BYTES_PER_RANK

#: the most parts of a plan: with more, the plan takes longer to make than parts save
MAX_PARTS = 32
#: the slowdown of bytes whose partner changes, on labs with TCP
CHANGING_PARTNERS_RATIO = 1.25


@dataclass(frozen=True)
class MessageCosts:
    """The costs of messages: alpha seconds for the start-up of a round, beta for a byte
    of a round's longest message, gamma for a byte of all the messages together, and
    `message` for each further message of a round.

    `piece` is the size into which the MPI library cuts long blocks, or 0; the library's
    calls take `library` times the time of equal messages of isthmus. On several nodes,
    `sharing` processes share the port of their node, so messages to far ranks queue.
    Where partners change from message to message, bytes take `changing` times as long.

    Below `small` bytes in all nothing beats the library's single call; from `ring`
    bytes a rank a ring of neighbours beats few rounds.
    """

    alpha: float
    beta: float
    gamma: float = 0.0
    piece: int = 0
    library: float = 1.0
    sharing: int = 1
    message: float = 1e-6
    small: int = 1 << 16
    ring: int = RING_BYTES_PER_RANK
    changing: float = 1.0

    @property
    def startup_bytes(self) -> float:
        """The number of bytes that pass in the time of a start-up."""
        return self.alpha / self.beta

    @property
    def far(self) -> float:
        """The slowdown of messages whose partners differ from round to round."""
        return self.sharing * self.changing

    def on(self, nodes: Sequence[int]) -> MessageCosts:
        """The costs between ranks on `nodes`, of which those of a node share a port; on
        a single node, unchanged."""
        processes = Counter(nodes)
        if len(processes) == 1:
            return self
        sharing = max(processes.values())
        return replace(self, sharing=sharing, changing=CHANGING_PARTNERS_RATIO)

    def time(self, rounds: int, longest: float, together: float) -> float:
        """The seconds of rounds with `longest` bytes in their longest messages, and
        `together` bytes in all."""
        moved = max(self.beta * longest, self.gamma * together)
        return float(self.alpha * rounds + moved)


def parts(p: int, q: int, a: int, b: int, machine: MessageCosts) -> int:
    """The best number of parts for groups of p and q that swap a and b bytes.

    Shorter messages lose less time where ranks get out of step. On a network of 32
    hosts about the best was the root of the longer share, counted in start-ups, as long
    as all start-ups took no more than half of the time of the links.
    """
    if machine.changing <= 1 or max(p, q) == 1:
        return 1
    share, rounds = max(a / q, b / p), max(p, q) - 1
    best = sqrt(share / machine.startup_bytes)
    most = max(a, b) / (2 * rounds * machine.startup_bytes)
    return min(max(round(min(best, most)), 1), MAX_PARTS)


def ring(counts: np.ndarray, machine: MessageCosts, size: int = 0) -> float:
    """The time of the ring, with blocks cut into pieces of a size; uncut if 0."""
    size = size or max(int(counts.max()), 1)
    piece_counts = pieces(counts, size)
    rounds = int(piece_counts.sum() - piece_counts.min())
    longest = rounds * min(size, int(counts.max()))
    return machine.time(rounds, longest, (len(counts) - 1) * int(counts.sum()))


def doubling(counts: np.ndarray, machine: MessageCosts) -> float:
    """The time of Bruck's algorithm and of recursive doubling: windows of 1, 2, 4, …
    blocks."""
    p, m = len(counts), int(counts.sum())
    ends = np.concatenate(([0], np.cumsum(np.tile(counts, 2))))
    total, blocks_so_far = 0.0, 1
    while blocks_so_far < p:
        n = min(blocks_so_far, p - blocks_so_far)
        longest = (ends[n : n + p] - ends[:p]).max()
        total += machine.time(1, machine.far * longest, n * m)
        blocks_so_far += n
    return total


def pat(counts: np.ndarray, machine: MessageCosts, nodes: Sequence[int]) -> float:
    """The time of PAT, whose messages go far with one block, then nearer with ever more
    blocks. The port of a node takes messages out of the node one after another."""
    p, m = len(counts), int(counts.sum())
    ranks, node = np.arange(p), np.asarray(nodes)
    total = 0.0
    for level in reversed(range(log2(p))):
        step = 1 << level
        behind = np.arange(0, p - step, 2 * step)
        sent = counts[(ranks[:, None] - behind) % p].sum(1)
        leaves_node = node != np.roll(node, -step)
        by_port = np.bincount(node, sent * leaves_node).max()
        longest = max(sent.max(), machine.changing * by_port)
        total += machine.time(1, longest, len(behind) * m)
    return total


def circulant(counts: np.ndarray, machine: MessageCosts) -> float:
    """The time of all broadcasts at once on a circulant graph, in the best number of
    parts."""
    p, m, n = len(counts), int(counts.sum()), best_n(counts, machine.startup_bytes)
    filling, full = volumes(counts)
    longest = machine.far * (full + (filling - full) / n)
    return machine.time(n - 1 + log2(p), longest, (p - 1) * m)


def library(counts: np.ndarray, machine: MessageCosts) -> float:
    """The time of the MPI library's own call: few rounds or a ring, chosen well."""
    by_ring, by_doubling = (
        ring(counts, machine, machine.piece),
        doubling(counts, machine),
    )
    best = by_ring if machine.piece else min(by_ring, by_doubling)
    return machine.library * best


def ours(
    counts: np.ndarray, machine: MessageCosts, nodes: Sequence[int] = ()
) -> dict[str, float]:
    """The candidate algorithms of isthmus, and their times."""
    p = len(counts)
    size = best(counts, 1, machine.startup_bytes)
    ring_in_pieces = "node_ring" if machine.sharing > 1 else "blocked_ring"
    few_rounds = "bruck" if p & (p - 1) else "recursive_doubling"
    times = {
        "ring": ring(counts, machine),
        ring_in_pieces: ring(counts, machine, size),
        "circulant": circulant(counts, machine),
        few_rounds: doubling(counts, machine),
    }
    if machine.sharing > 1 and nodes:
        times["pat"] = pat(counts, machine, nodes)
    return times
