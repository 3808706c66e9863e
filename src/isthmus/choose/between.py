"""Which algorithm of a collective between groups, by default.

Only from values that every rank with a part in it knows: the cheapest of a few, by the
cost that each of them claims.
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
from ..schedules.hosts import Hosts
from ..schedules.registry import find, named
from . import unequal_hosts
from .choose import Choice
from .estimate import Machine

#: what an algorithm may be: without node memory, with it, or the library's own call
FLAT, NODE_AWARE, LIBRARY = "flat", "node_aware", "native"
#: the flat algorithm for long vectors from or to a root
CHAIN = "chain"
#: up to so many times the longest message that was tried, the library's call counts
BEYOND = 4


def check(collective: str, name: str, commutative: bool = True) -> None:
    """Refuse what is unknown, or combines in any order where that matters."""
    entry = named(collective, name)
    if entry.commutative and not commutative:
        raise ValueError(
            f"{name!r} combines in any order, and the operator is not commutative"
        )


def cheapest(times: dict[str, float], what: str) -> Choice:
    """The algorithm that takes the least time."""
    best = min(times, key=lambda name: times[name])
    listed = ", ".join(f"{name} {1e6 * t:.0f} µs" for name, t in times.items())
    return Choice(best, f"for {what}: {listed}")


def _pipelined(fill: int, m: int, machine: Machine, byte: float = 1.0) -> float:
    """In the best number of parts, after `fill` rounds that fill the pipeline."""
    alpha, moved = machine.alpha, m * byte * machine.beta
    return (fill + 1) * alpha + moved + 2 * sqrt(fill * alpha * moved)


def whole(
    collective: str,
    q: int,
    m: int,
    machine: Machine,
    commutative: bool = True,
    hosts: Hosts | None = None,
) -> Choice:
    """Bcast and Reduce, of m bytes between a root and q others; `hosts` if these are
    unequal."""
    what = f"{m} bytes, a root and {q} others"
    if hosts is not None:
        known = hosts, m, machine.startup, commutative
        return cheapest(unequal_hosts.times(collective, *known, q=q), what)
    # what arrives is combined, before it goes on
    byte = 1.5 if COLLECTIVES[collective].combines else 1.0
    p, cost = q + 1, (machine.alpha, byte * machine.beta)
    times = {
        "binomial": find(collective, "binomial").cost(p, m, *cost),
        CHAIN: _pipelined(q - 1, m, machine, byte),
    }
    if commutative:
        # the one that a rank sends to changes, and the one that it receives from too
        byte *= machine.changing**2
        times["circulant"] = _pipelined(log2(p) - 1, m, machine, byte)
    else:
        times["reduce_scatter"] = find(collective, "reduce_scatter").cost(p, m, *cost)
    return cheapest(times, what)


def blocks(
    collective: str, q: int, k: int, machine: Machine, hosts: Hosts | None = None
) -> Choice:
    """Gather and Scatter, of k bytes a rank between a root and q others; `hosts` if
    these are unequal."""
    what = f"{k} bytes a rank, a root and {q} others"
    if hosts is not None:
        found = unequal_hosts.times(collective, hosts, k, machine.startup, q=q)
        return cheapest(found, what)
    moved = q * k * machine.beta
    times = {
        "linear": machine.alpha + q * machine.message + moved,
        # blocks that wait in the tree are copied once more
        "binomial": log2(q + 1) * machine.alpha + 1.5 * moved,
    }
    return cheapest(times, what)


def combined(
    collective: str, p: int, q: int, m: int, machine: Machine, commutative: bool
) -> Choice:
    """Allreduce and Reduce_scatter, of m bytes a rank of groups of p and q."""

    def cost(name: str, byte: float = 1.0) -> float:
        found = find(collective, name).cost
        return float(found(p, q, m, machine.alpha, byte * machine.beta))

    shares = "bruck" if commutative else "ordered"
    in_shares = {shares: cost(shares, machine.changing)}
    # among equals the first is taken: direct copies nothing between two processes
    if COLLECTIVES[collective].gets == VECTOR:
        times = {"direct": cost("direct"), **in_shares, "doubling": cost("doubling")}
    else:
        times = {"direct": cost("direct", machine.changing), **in_shares}
        if commutative:
            times["paced"] = cost("direct", 1 + 1 / PIECE_STARTUPS)
    return cheapest(times, f"{m} bytes in groups of {p} and {q}")


def exchange(p: int, q: int, k: int, machine: Machine) -> Choice:
    """Alltoall, of k bytes at most from one to another of groups of p and q."""
    most, moved = max(p, q), max(p, q) * k * machine.beta
    bruck = find("inter_alltoall", "bruck").cost
    further = (most - 1) * machine.message
    changing = machine.changing if most > 1 else 1.0
    times = {
        "rotated": machine.alpha + further + moved * changing,
        "paced": most * machine.alpha + moved * (1 + 1 / PIECE_STARTUPS),
        "bruck": bruck(p, q, k, k, machine.alpha, machine.beta),
    }
    return cheapest(times, f"blocks of {k} bytes in groups of {p} and {q}")


def runs(nodes: Sequence[int]) -> int:
    """How often a chain of ranks comes to the node that it comes to most often."""
    starts = [n for i, n in enumerate(nodes) if i == 0 or nodes[i - 1] != n]
    return max(Counter(starts).values())


def per_byte(
    collective: str, p: int, q: int, machine: Machine, runs: int
) -> dict[str, tuple[float, float]]:
    """What a byte of a short and of a long block or vector takes on the port of a node.

    One that all ranks of a node need, or add to, crosses once with node memory, and
    once for each of them without; but a chain of ranks comes to a node once if those
    of the node follow each other, and its partners do not change. The MPI library has
    its own ways, and once is the least.
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
        return dict.fromkeys((NODE_AWARE, FLAT, LIBRARY), (flat, flat))
    found = {NODE_AWARE: (port, port), FLAT: (flat, flat), LIBRARY: (port, port)}
    if record.is_rooted:
        found |= {
            NODE_AWARE: (port, port * machine.changing),
            CHAIN: (flat, port * runs),
        }
    return found


def untried(flat: Choice, per_byte: dict[str, tuple[float, float]]) -> Choice:
    """Where ranks share nodes and nothing was tried: node memory, unless the flat
    algorithm is one that takes the port of a node less."""
    if flat.name in per_byte and per_byte[flat.name][1] < per_byte[NODE_AWARE][1]:
        return flat
    return Choice(NODE_AWARE, "as ranks share nodes")


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of each candidate for each size that was tried."""

    sizes: tuple[int, ...]
    seconds: dict[str, tuple[float, ...]]
    #: where a network was tried, with short messages only: see `per_byte`
    per_byte: dict[str, tuple[float, float]]

    def of(self, candidate: str, nbytes: int, flat: str = "") -> float:
        """Between two sizes, and beyond the last, on a line; but no less than the port
        takes, as a few messages in a row may pass without waiting for it. `flat` is the
        algorithm of the flat candidate."""
        sizes, found = self.sizes, self.seconds[candidate]
        port = self.per_byte.get(candidate)
        if candidate == FLAT:
            port = self.per_byte.get(flat, port)
        if nbytes <= sizes[-1] or len(sizes) == 1:
            least = port[0] * nbytes if port else 0.0
            return max(float(np.interp(nbytes, sizes, found)), least)
        slope = max(found[-1] - found[-2], 0.0) / (sizes[-1] - sizes[-2])
        return found[-1] + (port[1] if port else slope) * (nbytes - sizes[-1])

    def best(self, nbytes: int, flat: Choice, candidates: Sequence[str]) -> Choice:
        """The fastest of some candidates."""
        known = (x for x in candidates if x in self.seconds)
        times = {x: self.of(x, nbytes, flat.name) for x in known}
        if self.per_byte and nbytes > BEYOND * self.sizes[-1]:
            times.pop(LIBRARY, None)
        found = min(times, key=lambda x: times[x])
        said = ", ".join(
            f"{flat.name if x == FLAT else x} {1e6 * t:.0f} µs"
            for x, t in times.items()
        )
        name = flat.name if found == FLAT else found
        return Choice(name, f"for {nbytes} bytes, as tried here: {said}")
