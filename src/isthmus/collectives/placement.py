"""Where the ranks of a schedule are, and what an algorithm may take from that.

An algorithm asks for what it needs by the names of its options: the node of every rank,
the speed of its host, how much node memory a chunk may take, how many elements pass in
the time of a start-up. A schedule that is verified and one that runs are told alike,
so the two have the same rounds where their placements are the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ..algorithms.parts.stages import RING_BYTES_PER_RANK
from ..schedules.hosts import Hosts
from ..schedules.registry import Algorithm


@dataclass(frozen=True, slots=True)
class Placement:
    """The node of every rank, and what is known of nodes and hosts.

    All amounts are in bytes; what is not known stays as an algorithm has it.
    """

    nodes: tuple[Hashable, ...] = ()
    hosts: Hosts | None = None
    #: of a node's memory, that a chunk takes
    chunk_bytes: int = 0
    #: that pass in the time of a start-up
    startup_bytes: float = 0.0
    #: a rank, from which on the stage of an algorithm is a ring
    ring_bytes: int = RING_BYTES_PER_RANK

    def told(self, algorithm: Algorithm, unit: int) -> Algorithm:
        """The algorithm with the options that it has for all that, of elements of
        `unit` bytes; what its name sets stays."""
        known: dict[str, object] = {"nodes": self.nodes}
        if self.hosts is not None:
            known["hosts"] = self.hosts.on(self.nodes).in_units(unit)
        if self.chunk_bytes and algorithm.node_memory:
            known["size"] = self.chunk_bytes
        if self.startup_bytes:
            known["startup"] = max(self.startup_bytes / unit, 1.0)
        return algorithm.default(**known).in_units(unit)

    @property
    def unequal_hosts(self) -> Hosts | None:
        """The hosts, if they are known to be unequal, and which ranks share one."""
        if self.hosts is None or not self.hosts.unequal:
            return None
        return self.hosts.on(self.nodes)

    def only(self, ranks: Iterable[int]) -> Placement:
        """The placement of some ranks, in their order."""
        few = tuple(ranks)
        hosts = self.hosts and self.hosts.only(few)
        nodes = tuple(self.nodes[r] for r in few) if self.nodes else ()
        chunk, startup = self.chunk_bytes, self.startup_bytes
        return Placement(nodes, hosts, chunk, startup, self.ring_bytes)


#: of ranks of which nothing is known
UNPLACED = Placement()
