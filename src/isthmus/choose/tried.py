"""The choice between groups on a communicator: node memory, and times that were tried.

Beside the best algorithm without node memory (see `choice`) a communicator has the
algorithm with node memory and the MPI library's own call. No closed form tells these
apart, so they are tried; before, and between sizes that were tried, the time that bytes
take on the port of a node decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..collectives.collective import BLOCK, BLOCKS, VECTOR
from ..collectives.records import COLLECTIVES
from ..cost.machine import Machine
from .choice import Choice

#: the candidates: without node memory, with node memory, and the library's own call
FLAT, WITH_NODE_MEMORY, LIBRARY_CALL = "flat", "node_aware", "native"
#: the flat algorithm for long vectors from or to a root
CHAIN_ALGORITHM = "chain"
#: the library's call is a candidate up to so many times the longest message tried
MAX_EXTRAPOLATION = 4


def per_byte(
    collective: str, p: int, q: int, machine: Machine
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
        nodes = machine.units(p + q)[0].tolist()
        visits = max(_most_visits(nodes[:p]), _most_visits(nodes[p:]))
        times[CHAIN_ALGORITHM] = flat, port * visits
    return times


def _most_visits(nodes: Sequence[int]) -> int:
    """The most visits that a chain of ranks pays to a node."""
    starts = [n for i, n in enumerate(nodes) if i == 0 or nodes[i - 1] != n]
    return max(Counter(starts).values())


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
