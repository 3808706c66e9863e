"""The default algorithm of a collective between groups: the cheapest of a few.

The costs are those that the algorithms claim. The choice depends only on values that
all participating ranks know, since ranks that choose differently would hang.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..algorithms.parts.patterns import log2
from ..algorithms.parts.turns import PIECE_STARTUPS
from ..collectives.collective import BLOCK, BLOCKS, VECTOR
from ..collectives.records import COLLECTIVES
from ..cost.machine import Machine
from ..schedules.hosts import Hosts
from ..schedules.registry import find, named
from . import unequal_hosts
from .choose import Choice

#: the candidates: without node memory, with node memory, and the library's own call
FLAT, WITH_NODE_MEMORY, LIBRARY_CALL = "flat", "node_aware", "native"
#: the flat algorithm for long vectors from or to a root
CHAIN_ALGORITHM = "chain"
#: the library's call is a candidate up to so many times the longest message tried
MAX_EXTRAPOLATION = 4


def check(collective: str, name: str, commutative: bool = True) -> None:
    """Refuse an unknown algorithm, or an algorithm that needs a commutative operator
    if the operator is not."""
    entry = named(collective, name)
    if entry.commutative and not commutative:
        raise ValueError(
            f"{name!r} combines in any order, and the operator is not commutative"
        )


def cheapest(times: dict[str, float], case: str) -> Choice:
    """The algorithm of the least time; the reason names the case and all times."""
    best = min(times, key=lambda name: times[name])
    listed = ", ".join(f"{name} {1e6 * t:.0f} µs" for name, t in times.items())
    return Choice(best, f"for {case}: {listed}")


def _pipelined(fill: int, m: int, machine: Machine, slowdown: float = 1.0) -> float:
    """The time of m bytes in the best number of parts, after `fill` rounds that fill
    the pipeline. A byte takes `slowdown` times beta."""
    alpha, moved = machine.alpha, m * slowdown * machine.beta
    return (fill + 1) * alpha + moved + 2 * sqrt(fill * alpha * moved)


def rooted_vector(
    collective: str,
    q: int,
    m: int,
    machine: Machine,
    commutative: bool = True,
    hosts: Hosts | None = None,
) -> Choice:
    """The algorithm of Bcast or Reduce, of m bytes between a root and q ranks.

    `hosts` is None unless hosts are unequal.
    """
    case = f"{m} bytes, a root and {q} others"
    if hosts is not None:
        arguments = hosts, m, machine.startup_bytes, commutative
        return cheapest(unequal_hosts.times(collective, *arguments, q=q), case)
    # a reduction combines received data before they are sent on
    slowdown = 1.5 if COLLECTIVES[collective].combines else 1.0
    p, cost = q + 1, (machine.alpha, slowdown * machine.beta)
    times = {
        "binomial": find(collective, "binomial").cost(p, m, *cost),
        CHAIN_ALGORITHM: _pipelined(q - 1, m, machine, slowdown),
    }
    if commutative:
        # the partners change of the sends as well as of the receives
        slowdown *= machine.changing**2
        times["circulant"] = _pipelined(log2(p) - 1, m, machine, slowdown)
    else:
        times["reduce_scatter"] = find(collective, "reduce_scatter").cost(p, m, *cost)
    return cheapest(times, case)


def rooted_blocks(
    collective: str, q: int, k: int, machine: Machine, hosts: Hosts | None = None
) -> Choice:
    """The algorithm of Gather or Scatter, of k bytes a rank between a root and q ranks.

    `hosts` is None unless hosts are unequal.
    """
    case = f"{k} bytes a rank, a root and {q} others"
    if hosts is not None:
        simulated = unequal_hosts.times(
            collective, hosts, k, machine.startup_bytes, q=q
        )
        return cheapest(simulated, case)
    moved = q * k * machine.beta
    times = {
        "linear": machine.alpha + (q - 1) * machine.gap + moved,
        # blocks that wait in the tree are copied once more
        "binomial": log2(q + 1) * machine.alpha + 1.5 * moved,
    }
    return cheapest(times, case)


def reduction(
    collective: str, p: int, q: int, m: int, machine: Machine, commutative: bool
) -> Choice:
    """The algorithm of Allreduce or Reduce_scatter, of m bytes a rank, between groups
    of p and q."""

    def cost(name: str, slowdown: float = 1.0) -> float:
        claimed = find(collective, name).cost
        return float(claimed(p, q, m, machine.alpha, slowdown * machine.beta))

    shares = "bruck" if commutative else "ordered"
    in_shares = {shares: cost(shares, machine.changing)}
    # among equals the first wins: direct copies nothing between two processes
    if COLLECTIVES[collective].gets == VECTOR:
        times = {"direct": cost("direct"), **in_shares, "doubling": cost("doubling")}
    else:
        times = {"direct": cost("direct", machine.changing), **in_shares}
        if commutative:
            times["paced"] = cost("direct", 1 + 1 / PIECE_STARTUPS)
    return cheapest(times, f"{m} bytes in groups of {p} and {q}")


def alltoall(p: int, q: int, k: int, machine: Machine) -> Choice:
    """The algorithm of Alltoall between groups of p and q, of blocks of at most k
    bytes."""
    most, moved = max(p, q), max(p, q) * k * machine.beta
    bruck = find("inter_alltoall", "bruck").cost
    further = (most - 1) * machine.gap
    changing = machine.changing if most > 1 else 1.0
    times = {
        "rotated": machine.alpha + further + moved * changing,
        "paced": most * machine.alpha + moved * (1 + 1 / PIECE_STARTUPS),
        "bruck": bruck(p, q, k, k, machine.alpha, machine.beta),
    }
    return cheapest(times, f"blocks of {k} bytes in groups of {p} and {q}")


def most_visits(nodes: Sequence[int]) -> int:
    """The most visits that a chain of ranks pays to a node."""
    starts = [n for i, n in enumerate(nodes) if i == 0 or nodes[i - 1] != n]
    return max(Counter(starts).values())


def per_byte(
    collective: str, p: int, q: int, machine: Machine, visits: int
) -> dict[str, tuple[float, float]]:
    """Of each candidate the seconds that a byte of a short and of a long block or
    vector takes on the port of a node.

    A byte that all ranks of a node need, or add to, crosses the port once with node
    memory, and once for each rank without; but a chain visits a node once if the ranks
    of the node follow each other, and its partners do not change. The MPI library is
    taken to cross the port once, which is the least.
    """
    record = COLLECTIVES[collective]
    bytes_ = 1
    if not record.is_rooted and record.gives == BLOCK:
        bytes_ = max(p, q)
    elif not record.is_rooted and record.gets == VECTOR:
        bytes_ = 2
    port = bytes_ * machine.beta
    flat = machine.sharing * port
    if record.gives == BLOCKS or (record.is_rooted and record.gives != VECTOR):
        return dict.fromkeys((WITH_NODE_MEMORY, FLAT, LIBRARY_CALL), (flat, flat))
    times = {
        WITH_NODE_MEMORY: (port, port),
        FLAT: (flat, flat),
        LIBRARY_CALL: (port, port),
    }
    if record.is_rooted:
        times[WITH_NODE_MEMORY] = port, port * machine.changing
        times[CHAIN_ALGORITHM] = flat, port * visits
    return times


def untried(flat: Choice, per_byte: dict[str, tuple[float, float]]) -> Choice:
    """The choice before a trial where ranks share nodes: node memory, unless the flat
    algorithm occupies the port of a node for less time."""
    if flat.name in per_byte and per_byte[flat.name][1] < per_byte[WITH_NODE_MEMORY][1]:
        return flat
    return Choice(WITH_NODE_MEMORY, "as ranks share nodes")


@dataclass(frozen=True, slots=True)
class TrialTimes:
    """The measured seconds of each candidate, for each size of a trial."""

    sizes: tuple[int, ...]
    seconds: dict[str, tuple[float, ...]]
    #: see `per_byte`; empty unless the trial was on a network, with short messages only
    per_byte: dict[str, tuple[float, float]]

    def of(self, candidate: str, nbytes: int, flat: str = "") -> float:
        """The seconds of a candidate: on a line between two sizes, and beyond the last.

        They are no less than the time on the port, since the few messages of a trial
        may pass in a burst. `flat` is the algorithm of the flat candidate.
        """
        sizes, seconds = self.sizes, self.seconds[candidate]
        port = self.per_byte.get(candidate)
        if candidate == FLAT:
            port = self.per_byte.get(flat, port)
        if nbytes <= sizes[-1] or len(sizes) == 1:
            least = port[0] * nbytes if port else 0.0
            return max(float(np.interp(nbytes, sizes, seconds)), least)
        slope = max(seconds[-1] - seconds[-2], 0.0) / (sizes[-1] - sizes[-2])
        return seconds[-1] + (port[1] if port else slope) * (nbytes - sizes[-1])

    def best(self, nbytes: int, flat: Choice, candidates: Sequence[str]) -> Choice:
        """The fastest of the candidates that were tried."""
        tried = (name for name in candidates if name in self.seconds)
        times = {name: self.of(name, nbytes, flat.name) for name in tried}
        if self.per_byte and nbytes > MAX_EXTRAPOLATION * self.sizes[-1]:
            times.pop(LIBRARY_CALL, None)
        algorithms = {name: name for name in times} | {FLAT: flat.name}
        listed = ", ".join(
            f"{algorithms[name]} {1e6 * t:.0f} µs" for name, t in times.items()
        )
        best = min(times, key=lambda name: times[name])
        reason = f"for {nbytes} bytes, as tried here: {listed}"
        return Choice(algorithms[best], reason)
