"""Which algorithm of an Allgather(v) among several groups, by default."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..algorithms.multi_allgatherv import best_size, ring_rounds
from ..algorithms.parts.patterns import log2
from . import estimate
from .between import cheapest
from .choose import PEERS, Choice
from .estimate import Machine


def _direct(counts: Sequence[np.ndarray], machine: Machine) -> float:
    """Everyone sends its block to everyone of the other groups."""
    every = sum(len(k) for k in counts)
    peers = [every - len(k) for k in counts]
    sent = max(n * int(k.max()) for n, k in zip(peers, counts, strict=True))
    moved = machine.far * max(sent, _received(counts))
    return machine.alpha + max(peers) * machine.message + moved * machine.beta


def _received(counts: Sequence[np.ndarray]) -> int:
    """The bytes that a rank receives, at the most."""
    totals = [int(k.sum()) for k in counts]
    return sum(totals) - min(totals)


def _balanced(counts: Sequence[np.ndarray], machine: Machine) -> float:
    """Shares of what each other group has, and an allgather inside each group."""
    g, every = len(counts), sum(int(k.sum()) for k in counts)
    stage = [(len(k), every - int(k.sum())) for k in counts]
    first = max(
        (g - 1) * max(int(k.max()) for k in counts), max(m / n for n, m in stage)
    )
    moved = machine.far * (first + max(m - m / n for n, m in stage))
    rounds = g - 1 + max(log2(n) for n, _ in stage)
    return rounds * machine.alpha + moved * machine.beta


def _ring(counts: Sequence[np.ndarray], machine: Machine) -> float:
    """Pieces that follow each other from group to group."""
    size = best_size(counts, machine.startup)
    return ring_rounds(counts, size) * (machine.alpha + size * machine.beta)


def allgatherv(counts: Sequence[np.ndarray], machine: Machine) -> Choice:
    """Among groups whose ranks contribute so many bytes."""
    if len(counts) == 1:
        return Choice("direct", "as there is no other group")
    every = np.concatenate(counts)
    times = {
        "merged+bruck": estimate.doubling(every, machine),
        "merged+circulant": estimate.circulant(every, machine),
        "balanced": _balanced(counts, machine),
        "ring": _ring(counts, machine),
    }
    if len(every) <= PEERS:
        times["direct"] = _direct(counts, machine)
    return cheapest(times, f"{every.sum()} bytes in {len(counts)} groups")
