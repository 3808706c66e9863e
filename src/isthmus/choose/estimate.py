"""What an allgatherv inside a group takes, roughly: to choose, not to predict.

A round takes a start-up, then the time of the longest message on its wire, or that of
all messages together where they share one memory or one processor: whichever is longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..algorithms.allgatherv_circulant import best_n, volumes
from ..algorithms.parts.patterns import log2
from ..algorithms.parts.piece_size import best, pieces
from ..algorithms.parts.stages import RING_BYTES_PER_RANK

#: no plan has more: it would take longer to make than it gains
MOST_LAPS = 32


@dataclass(frozen=True)
class Machine:
    """What messages cost: alpha seconds to start one, beta a byte of the longest of a
    round, gamma a byte of all of them together, `message` each further one of a round.

    `piece` is the size into which the MPI library cuts long blocks, if it does; its
    calls take `library` times what the same messages would take from here. So many
    processes as `sharing` says share the way out of their node, if there are several
    nodes: messages to far ranks queue for it. Where partners change from message to
    message, bytes take `changing` times as long.

    Below `small` bytes in all nothing beats the library's single call; from `ring`
    bytes a rank neighbours beat few rounds.
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
    def startup(self) -> float:
        """The bytes that pass in the time of a start-up."""
        return self.alpha / self.beta

    @property
    def far(self) -> float:
        """How many times longer messages take that go to other ranks in each round."""
        return self.sharing * self.changing

    def time(self, rounds: int, longest: float, together: float) -> float:
        """So many rounds, with so many bytes in their longest messages and in all."""
        moved = max(self.beta * longest, self.gamma * together)
        return float(self.alpha * rounds + moved)


def parts(p: int, q: int, a: int, b: int, machine: Machine) -> int:
    """In how many parts groups of p and q best swap what they have, a and b bytes.

    Shorter messages lose less where they get out of step. On a network of 32 hosts
    about the best was the root of the longer share in start-ups, as long as all
    start-ups took no more than half of the time of the links.
    """
    if machine.changing <= 1 or max(p, q) == 1:
        return 1
    share, rounds = max(a / q, b / p), max(p, q) - 1
    best = sqrt(share / machine.startup)
    most = max(a, b) / (2 * rounds * machine.startup)
    return min(max(round(min(best, most)), 1), MOST_LAPS)


def ring(counts: np.ndarray, machine: Machine, size: int = 0) -> float:
    """The ring, with blocks cut into pieces of a size; whole, if none is given."""
    size = size or max(int(counts.max()), 1)
    found = pieces(counts, size)
    rounds = int(found.sum() - found.min())
    longest = rounds * min(size, int(counts.max()))
    return machine.time(rounds, longest, (len(counts) - 1) * int(counts.sum()))


def doubling(counts: np.ndarray, machine: Machine) -> float:
    """Bruck's algorithm and recursive doubling: windows of 1, 2, 4, … blocks."""
    p, m = len(counts), int(counts.sum())
    ends = np.concatenate(([0], np.cumsum(np.tile(counts, 2))))
    total, have = 0.0, 1
    while have < p:
        n = min(have, p - have)
        longest = (ends[n : n + p] - ends[:p]).max()
        total += machine.time(1, machine.far * longest, n * m)
        have += n
    return total


def pat(counts: np.ndarray, machine: Machine, nodes: Sequence[int]) -> float:
    """PAT: of one block far, then of more and more nearer ones; of what leaves a node,
    the port takes one after the other."""
    p, m = len(counts), int(counts.sum())
    at, where = np.arange(p), np.asarray(nodes)
    total = 0.0
    for level in reversed(range(log2(p))):
        step = 1 << level
        behind = np.arange(0, p - step, 2 * step)
        sent = counts[(at[:, None] - behind) % p].sum(1)
        out = np.bincount(where, sent * (where != np.roll(where, -step))).max()
        longest = max(sent.max(), machine.changing * out)
        total += machine.time(1, longest, len(behind) * m)
    return total


def circulant(counts: np.ndarray, machine: Machine) -> float:
    """All broadcasts at once on a circulant graph, in the best number of parts."""
    p, m, n = len(counts), int(counts.sum()), best_n(counts, machine.startup)
    filling, full = volumes(counts)
    longest = machine.far * (full + (filling - full) / n)
    return machine.time(n - 1 + log2(p), longest, (p - 1) * m)


def library(counts: np.ndarray, machine: Machine) -> float:
    """The MPI library's own call: few rounds or a ring, as long as it chooses well."""
    known = ring(counts, machine, machine.piece), doubling(counts, machine)
    return machine.library * (known[0] if machine.piece else min(known))


def ours(
    counts: np.ndarray, machine: Machine, nodes: Sequence[int] = ()
) -> dict[str, float]:
    """The algorithms that may be chosen, and their times."""
    p = len(counts)
    size = best(counts, 1, machine.startup)
    found = {
        "ring": ring(counts, machine),
        "node_ring" if machine.sharing > 1 else "blocked_ring": ring(
            counts, machine, size
        ),
        "circulant": circulant(counts, machine),
        "bruck" if p & (p - 1) else "recursive_doubling": doubling(counts, machine),
    }
    if machine.sharing > 1 and nodes:
        found["pat"] = pat(counts, machine, nodes)
    return found
