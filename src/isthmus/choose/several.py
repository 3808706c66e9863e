"""The default algorithm of an Allgather(v) among several groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..algorithms.multi_allgatherv import best_size, ring_rounds
from ..algorithms.parts.patterns import log2
from ..cost.machine import Machine
from . import estimate
from .between import cheapest
from .choose import MAX_DIRECT_PEERS, Choice


def _direct(counts: Sequence[np.ndarray], machine: Machine) -> float:
    """The time of the direct algorithm: each rank sends its block to all ranks of the
    remote groups."""
    n = sum(len(k) for k in counts)
    peers = [n - len(k) for k in counts]
    sent = max(n * int(k.max()) for n, k in zip(peers, counts, strict=True))
    moved = machine.far * max(sent, _received(counts))
    return machine.alpha + (max(peers) - 1) * machine.gap + moved * machine.beta


def _received(counts: Sequence[np.ndarray]) -> int:
    """The most bytes that a rank receives."""
    totals = [int(k.sum()) for k in counts]
    return sum(totals) - min(totals)


def _balanced(counts: Sequence[np.ndarray], machine: Machine) -> float:
    """The time of an exchange of shares between groups, and of an allgather inside each
    group."""
    g, total = len(counts), sum(int(k.sum()) for k in counts)
    stage = [(len(k), total - int(k.sum())) for k in counts]
    first = max(
        (g - 1) * max(int(k.max()) for k in counts), max(m / n for n, m in stage)
    )
    moved = machine.far * (first + max(m - m / n for n, m in stage))
    rounds = g - 1 + max(log2(n) for n, _ in stage)
    return rounds * machine.alpha + moved * machine.beta


def _ring(counts: Sequence[np.ndarray], machine: Machine) -> float:
    """The time of the ring, whose pieces follow each other from group to group."""
    size = best_size(counts, machine.startup_bytes)
    return ring_rounds(counts, size) * (machine.alpha + size * machine.beta)


def allgatherv(counts: Sequence[np.ndarray], machine: Machine) -> Choice:
    """The choice for groups whose ranks contribute `counts` bytes."""
    if len(counts) == 1:
        return Choice("direct", "as there is no other group")
    all_counts = np.concatenate(counts)
    times = {
        "merged+bruck": estimate.doubling(all_counts, machine),
        "merged+circulant": estimate.circulant(all_counts, machine),
        "balanced": _balanced(counts, machine),
        "ring": _ring(counts, machine),
    }
    if len(all_counts) <= MAX_DIRECT_PEERS:
        times["direct"] = _direct(counts, machine)
    return cheapest(times, f"{all_counts.sum()} bytes in {len(counts)} groups")
