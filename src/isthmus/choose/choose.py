"""The default algorithm of allgathers, from values on which all ranks agree.

In the model a round costs a start-up, a message a little, a byte its share. The costs
are in a tuning file (see `tuning`). Without a file, costs between groups are a rough
guess for a shared-memory node: they only decide between algorithms, so their ratios
matter and not their values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt

import numpy as np

from ..algorithms.moving_entry import EXTRA_ROUNDS
from ..algorithms.parts.patterns import log2
from ..algorithms.parts.stages import stage_for
from ..cost.machine import Level, LibraryCalls, Machine
from . import estimate

#: the costs of messages in the memory of a node, until they are measured
BUILT_IN = Machine((Level(None, 8e-6, 2e-10, gap=1e-6),), library=LibraryCalls())
#: the costs of messages between nodes, until they are measured; bytes whose partner
#: changes take as much longer on labs with TCP
NETWORK = Machine(
    (Level(None, 1e-5, 1e-9, gap=1e-6, changing=1.25),), library=LibraryCalls()
)
#: for fewer bytes in all, nothing beats the MPI library's own call inside a group
SHORT_BYTES = 1 << 16

#: the most peers of a direct exchange: with more, a block crosses a wire too often
MAX_DIRECT_PEERS = 16

#: the largest share of the library's time that an algorithm may take to be chosen
#: instead, since both times are estimates
MARGIN = 0.85
#: the margin in shared memory if the library does not cut long blocks into pieces: its
#: loss on short blocks says little about long ones (measured with Open MPI)
MARGIN_OF_UNCUT_BLOCKS = 0.65
#: the most bytes that a C int can count
MAX_INT = (1 << 31) - 1


def _direct(p: int, q: int, a: int, b: int, largest: int, machine: Machine) -> float:
    """The time of the direct algorithm: each rank sends its block to all ranks of the
    remote group, and receives that group's total."""
    peers = max(p, q)
    nbytes = machine.far * max(a, b, peers * largest)
    return _round(machine, peers) + nbytes * machine.beta


def _round(machine: Machine, messages: int) -> float:
    """The seconds of a round with short messages, as many from each rank."""
    return machine.alpha + (messages - 1) * machine.gap


def _balanced(p: int, q: int, a: int, b: int, largest: int, machine: Machine) -> float:
    """The time of an exchange of shares, then an allgather in each group."""
    few, many = sorted((p, q))
    ring_bytes = estimate.ring_bytes(machine)
    rounds = max(
        n - 1 if stage_for(n, nbytes, ring_bytes) == "ring" else log2(n)
        for n, nbytes in ((p, b), (q, a))
    )
    moved = (max(a, b) + machine.sharing * largest) * machine.beta
    return _round(machine, ceil(many / few)) + rounds * machine.alpha + moved


def _moving_entry(p: int, q: int, a: int, b: int, machine: Machine) -> float:
    """The time of the moving entry, with pieces of the best size: the rounds of the
    data, and the extra rounds of the algorithm."""
    moved = max(a, b) * machine.beta
    extra = EXTRA_ROUNDS * max(p, q) * machine.alpha
    return moved + extra + 2 * sqrt(moved * extra)


def inter_allgatherv(
    p: int,
    q: int,
    a: int,
    b: int,
    largest: int,
    is_irregular: bool,
    machine: Machine = BUILT_IN,
) -> str:
    """The algorithm for groups of p and q ranks that send a and b bytes, in blocks of
    at most `largest`."""
    direct, balanced = (
        cost(p, q, a, b, largest, machine) for cost in (_direct, _balanced)
    )
    # for a giant block on a network: in shared memory no port rests meanwhile
    if is_irregular and machine.changing > 1:
        ring = _moving_entry(p, q, a, b, machine)
        if ring <= MARGIN * min(direct, balanced):
            return "moving_entry"
    if max(p, q) <= MAX_DIRECT_PEERS and direct <= balanced:
        return "direct"
    parts = estimate.parts(p, q, a, b, machine)
    if parts > 1:
        return f"pipelined(parts={parts})"
    few, many = sorted((p, q))
    return "balanced" if is_irregular or many % few else "segmented"


@dataclass(frozen=True)
class Choice:
    """An algorithm, and the reason for the choice."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}, {self.why}"


def faster_than_library(
    ours: dict[str, float], library: float, case: str, machine: Machine
) -> Choice:
    """The best algorithm if clearly faster than the library's call, else the call.

    The call is no candidate on a machine without a description of such calls.
    """
    best = min(ours, key=lambda name: ours[name])
    level, calls = machine.levels[-1], machine.library
    shares_memory = level.together > 0 and level.changing <= 1
    is_uncut = shares_memory and calls is not None and not calls.piece_bytes
    if calls is None:
        library = inf
    won = ours[best] <= (MARGIN_OF_UNCUT_BLOCKS if is_uncut else MARGIN) * library
    times = ", ".join(f"{name} {1e6 * t:.0f} µs" for name, t in ours.items())
    why = (
        f"for {case}: {times}, library {1e6 * library:.0f} µs, as messages take "
        f"{1e6 * machine.alpha:.1f} µs and {1e9 * machine.beta:.3f} ns a byte"
    )
    return Choice(best if won else "library", why)


def allgatherv(
    counts: np.ndarray,
    machine: Callable[[], Machine],
    is_irregular: bool = True,
    nodes: Sequence[int] = (),
) -> Choice:
    """The choice inside a group, for contributions of `counts` bytes.

    The machine is a function, since a communicator measures the costs when they are
    first needed: not below SHORT_BYTES in all. `nodes` has the node of each rank.
    """
    p, m = len(counts), int(counts.sum())
    if p == 1:
        return Choice("ring", "which is a copy for one process")
    if p == 2 and (is_irregular or m >= SHORT_BYTES):
        return Choice("ring", "which is one message each way for two processes")
    if m < SHORT_BYTES:
        return Choice("library", f"for only {m} bytes in all")
    if counts.max() > MAX_INT:
        return Choice("blocked_ring", "for blocks that an int cannot count")
    costs = machine()
    case = f"{m} bytes in {p} blocks, the largest {int(counts.max())}"
    ours = estimate.ours(counts, costs, nodes)
    library = estimate.library(counts, costs)
    return faster_than_library(ours, library, case, costs)
