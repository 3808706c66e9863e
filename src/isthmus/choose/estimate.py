"""Rough times of an allgatherv inside a group: for a choice, not for a prediction.

A round takes a start-up, then the time of the longest message on its wire, or the time
of all messages together in a shared memory or on a shared processor, if longer.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from ..algorithms.allgatherv_circulant import best_n, volumes
from ..algorithms.parts.patterns import log2
from ..algorithms.parts.piece_size import best, pieces
from ..algorithms.parts.stages import RING_BYTES_PER_RANK
from ..cost.machine import LibraryCalls, Machine

#: the most parts of a plan: with more, the plan takes longer to make than parts save
MAX_PARTS = 32


def _time(machine: Machine, rounds: int, longest: float, total: float) -> float:
    """The seconds of rounds with `longest` bytes in their longest messages, and `total`
    bytes of all ranks."""
    crowded = machine.levels[-1].together * total / machine.sharing
    return float(machine.alpha * rounds + max(machine.beta * longest, crowded))


def ring_bytes(machine: Machine) -> int:
    """The bytes a rank from which a ring takes less time than few rounds.

    On a network, where the partners of few rounds change, blocks that hide the
    start-ups of a ring's rounds.
    """
    if machine.changing <= 1:
        return RING_BYTES_PER_RANK
    return int(machine.startup_bytes)


def parts(p: int, q: int, a: int, b: int, machine: Machine) -> int:
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


def ring(counts: np.ndarray, machine: Machine, size: int = 0) -> float:
    """The time of the ring, with blocks cut into pieces of a size; uncut if 0."""
    size = size or max(int(counts.max()), 1)
    piece_counts = pieces(counts, size)
    rounds = int(piece_counts.sum() - piece_counts.min())
    longest = rounds * min(size, int(counts.max()))
    return _time(machine, rounds, longest, (len(counts) - 1) * int(counts.sum()))


def doubling(counts: np.ndarray, machine: Machine) -> float:
    """The time of Bruck's algorithm and of recursive doubling: windows of 1, 2, 4, …
    blocks."""
    p, m = len(counts), int(counts.sum())
    ends = np.concatenate(([0], np.cumsum(np.tile(counts, 2))))
    total, blocks_so_far = 0.0, 1
    while blocks_so_far < p:
        n = min(blocks_so_far, p - blocks_so_far)
        longest = (ends[n : n + p] - ends[:p]).max()
        total += _time(machine, 1, machine.far * longest, n * m)
        blocks_so_far += n
    return total


def pat(counts: np.ndarray, machine: Machine) -> float:
    """The time of PAT, whose messages go far with one block, then nearer with ever more
    blocks. The port of a node takes messages out of the node one after another."""
    p, m = len(counts), int(counts.sum())
    ranks, node = np.arange(p), machine.units(p)[0]
    total = 0.0
    for level in reversed(range(log2(p))):
        step = 1 << level
        behind = np.arange(0, p - step, 2 * step)
        sent = counts[(ranks[:, None] - behind) % p].sum(1)
        leaves_node = node != np.roll(node, -step)
        by_port = np.bincount(node, sent * leaves_node).max()
        longest = max(sent.max(), machine.changing * by_port)
        total += _time(machine, 1, longest, len(behind) * m)
    return total


def circulant(counts: np.ndarray, machine: Machine) -> float:
    """The time of all broadcasts at once on a circulant graph, in the best number of
    parts."""
    p, m, n = len(counts), int(counts.sum()), best_n(counts, machine.startup_bytes)
    filling, full = volumes(counts)
    longest = machine.far * (full + (filling - full) / n)
    return _time(machine, n - 1 + log2(p), longest, (p - 1) * m)


def library(counts: np.ndarray, machine: Machine) -> float:
    """The time of the MPI library's own call: few rounds or a ring, chosen well."""
    calls = machine.library or LibraryCalls()
    best = ring(counts, machine, calls.piece_bytes)
    if not calls.piece_bytes:
        best = min(best, doubling(counts, machine))
    return calls.slowdown * best


def ours(counts: np.ndarray, machine: Machine) -> dict[str, float]:
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
    if machine.sharing > 1:
        times["pat"] = pat(counts, machine)
    return times
