"""The nodes and hosts of ranks, as options of algorithms.

An algorithm asks for facts by the names of its options: the node of each rank, the
speed of each host, the node memory of a chunk, the elements that pass in the time of a
start-up. The options of a verified schedule and of a run are set alike, so equal
placements give equal rounds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ..algorithms.parts.stages import RING_BYTES_PER_RANK
from ..schedules.hosts import Hosts
from ..schedules.registry import Algorithm


@dataclass(frozen=True, slots=True)
class Placement:
    """The node of each rank, and the properties of nodes and hosts.

    Unknown properties leave the defaults of an algorithm.
    """

    nodes: tuple[Hashable, ...] = ()
    hosts: Hosts | None = None
    #: the bytes of a chunk in node memory; 0 if unknown
    chunk_bytes: int = 0
    #: the bytes that pass in the time of a start-up; 0 if unknown
    startup_bytes: float = 0.0
    #: the least bytes a rank for which the stage of an algorithm is a ring
    ring_bytes: int = RING_BYTES_PER_RANK

    def configured(self, algorithm: Algorithm, unit: int) -> Algorithm:
        """The algorithm with its options for this placement, of elements of `unit`
        bytes; options in the algorithm's name stay, since the caller asked for them."""
        options: dict[str, object] = {"nodes": self.nodes}
        if self.hosts is not None:
            options["hosts"] = self.hosts.on(self.nodes).in_units(unit)
        if self.chunk_bytes and algorithm.node_memory:
            options["size"] = self.chunk_bytes
        if self.startup_bytes:
            options["startup"] = max(self.startup_bytes / unit, 1.0)
        return algorithm.default(**options).in_units(unit)

    @property
    def unequal_hosts(self) -> Hosts | None:
        """The hosts with the ranks that share each; None unless known to be unequal."""
        if self.hosts is None or not self.hosts.unequal:
            return None
        return self.hosts.on(self.nodes)

    def only(self, ranks: Iterable[int]) -> Placement:
        """The placement of a subset of the ranks, in the given order."""
        subset = tuple(ranks)
        hosts = self.hosts and self.hosts.only(subset)
        nodes = tuple(self.nodes[r] for r in subset) if self.nodes else ()
        chunk, startup = self.chunk_bytes, self.startup_bytes
        return Placement(nodes, hosts, chunk, startup, self.ring_bytes)


#: the placement of ranks on unknown nodes and hosts
UNPLACED = Placement()
