"""Which algorithm, by default: only from values that every rank agrees on.

The model is one of rounds: a round costs a start, each of its messages a little, each
byte its share. What they cost is in a tuning file (see `tuning`). Without one, between
groups it is a rough guess for one shared-memory node: it only decides between
algorithms, so ratios matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from ..algorithms.moving_entry import EXTRA_ROUNDS
from ..algorithms.parts.stages import stage_for
from . import estimate
from .estimate import Machine

#: what messages cost where nobody has measured it
BUILT_IN = Machine(alpha=8e-6, beta=2e-10)
#: the same between nodes, until it is measured
NETWORK = Machine(alpha=1e-5, beta=1e-9)

#: beyond this many peers, the same block would cross the same wire too often
PEERS = 16

#: ours must take less than this share of the library's time, both being estimates
MARGIN = 0.85
#: the same in one memory if the library does not cut long blocks into pieces: what it
#: loses on short ones says little of long ones there (measured with Open MPI)
MARGIN_WHOLE = 0.65
#: more bytes than this an int cannot count
LIMIT = (1 << 31) - 1


def _direct(p: int, q: int, a: int, b: int, largest: int, machine: Machine) -> float:
    """Everyone sends its block to everyone, and receives the other group's total."""
    peers = max(p, q)
    nbytes = machine.far * max(a, b, peers * largest)
    return machine.alpha + peers * machine.message + nbytes * machine.beta


def _balanced(p: int, q: int, a: int, b: int, largest: int, machine: Machine) -> float:
    """An exchange of shares, then an allgather in each group."""
    few, many = sorted((p, q))
    rounds = 1 + max(
        n - 1 if stage_for(n, nbytes, machine.ring) == "ring" else (n - 1).bit_length()
        for n, nbytes in ((p, b), (q, a))
    )
    messages = ceil(many / few) + rounds
    moved = (max(a, b) + machine.sharing * largest) * machine.beta
    return rounds * machine.alpha + messages * machine.message + moved


def _moving_entry(p: int, q: int, a: int, b: int, machine: Machine) -> float:
    """Pieces of the best size, and the rounds that come on top of those of the data."""
    moved = max(a, b) * machine.beta
    extra = EXTRA_ROUNDS * max(p, q) * machine.alpha
    return moved + extra + 2 * sqrt(moved * extra)


def inter_allgatherv(
    p: int,
    q: int,
    a: int,
    b: int,
    largest: int,
    v: bool,
    machine: Machine = BUILT_IN,
    own_counts: bool = False,
) -> str:
    """For groups of p and q that send a and b bytes, in blocks up to `largest`;
    `own_counts` says that ranks know the counts of their own group, or can ask."""
    direct, balanced = (
        cost(p, q, a, b, largest, machine) for cost in (_direct, _balanced)
    )
    # a giant block on a network: in one memory no port rests while it is handed out
    if own_counts and v and machine.changing > 1:
        ring = _moving_entry(p, q, a, b, machine)
        if ring <= MARGIN * min(direct, balanced):
            return "moving_entry"
    if max(p, q) <= PEERS and direct <= balanced:
        return "direct"
    parts = estimate.parts(p, q, a, b, machine)
    if parts > 1:
        return f"pipelined(parts={parts})"
    few, many = sorted((p, q))
    return "balanced" if v or many % few else "segmented"


@dataclass(frozen=True)
class Choice:
    """An algorithm, and why."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}, {self.why}"


def weighed(
    ours: dict[str, float], library: float, what: str, machine: Machine
) -> Choice:
    """Ours if it is clearly faster than the library's."""
    best = min(ours, key=lambda name: ours[name])
    one_memory = machine.gamma > 0 and machine.changing <= 1
    whole = one_memory and not machine.piece
    won = ours[best] <= (MARGIN_WHOLE if whole else MARGIN) * library
    times = ", ".join(f"{x} {1e6 * t:.0f} µs" for x, t in ours.items())
    why = (
        f"for {what}: {times}, library {1e6 * library:.0f} µs, as messages take "
        f"{1e6 * machine.alpha:.1f} µs and {1e9 * machine.beta:.3f} ns a byte"
    )
    return Choice(best if won else "library", why)


def allgatherv(
    counts: np.ndarray,
    machine: Callable[[], Machine],
    v: bool = True,
    small: int = BUILT_IN.small,
    nodes: Sequence[int] = (),
) -> Choice:
    """Inside one group, for contributions of so many bytes, which may be unequal (v).

    What messages cost is asked for only where it matters: not below `small` in all.
    `nodes` has the node of every rank.
    """
    p, m = len(counts), int(counts.sum())
    if p == 1:
        return Choice("ring", "which is a copy for one process")
    if p == 2 and (v or m >= small):
        return Choice("ring", "which is one message each way for two processes")
    if m < small:
        return Choice("library", f"for only {m} bytes in all")
    if counts.max() > LIMIT:
        return Choice("blocked_ring", "for blocks that an int cannot count")
    found = machine()
    what = f"{m} bytes in {p} blocks, the largest {int(counts.max())}"
    times = estimate.ours(counts, found, nodes), estimate.library(counts, found)
    return weighed(*times, what, found)
