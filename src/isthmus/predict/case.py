"""The case of a prediction: a collective, the groups, the bytes, the nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .. import distributions
from ..collectives.collective import BETWEEN, NOTHING, Collective
from ..collectives.records import COLLECTIVES, schedule
from ..schedules.schedule import Schedule
from ..verify.contracts import Contract


@dataclass(frozen=True)
class Case:
    """A collective of one or two groups, and the contribution of each process in bytes.

    `each` has a size for each group: of a block, of the vector of a sum, of the block
    for each process in an alltoall. A rooted collective has a single size, because only
    the root sends or only the root receives. Between groups the first group is then the
    root alone, and the size is of all its data, or of the block of each process of the
    second group.
    """

    collective: str
    groups: tuple[int, ...]
    each: tuple[int, ...]
    #: of block sizes, for allgatherv inside one group; `each` is then the average
    distribution: str = "regular"
    #: processes of a node, in order; 0 for a node for each process
    per_node: int = 0

    @property
    def record(self) -> Collective:
        """The record of the collective."""
        return COLLECTIVES[self.collective]

    @property
    def _has_single_root(self) -> bool:
        """Whether the first group is a root alone."""
        return self.record.is_rooted and self.record.groups == BETWEEN

    @property
    def counts(self) -> list[int]:
        """The bytes of every process of a single group."""
        (p,), (k,) = self.groups, self.each
        return distributions.counts(self.distribution, p, p * k)

    @property
    def nodes(self) -> tuple[int, ...]:
        """The node of each process; empty without `per_node`.

        A root of another group has a node of its group, unless all processes fit on one
        node.
        """
        per_node, processes = self.per_node, sum(self.groups)
        if not per_node:
            return ()
        if self._has_single_root and processes > per_node:
            return 0, *(1 + r // per_node for r in range(processes - 1))
        return tuple(r // per_node for r in range(processes))

    @property
    def contract(self) -> Contract:
        """The contract of the collective, for every algorithm."""
        return self.record.promise(self.sizes)

    def doubled(self) -> Case:
        """A copy with twice the bytes."""
        return replace(self, each=tuple(2 * k for k in self.each))

    def schedule(self, name: str) -> Schedule:
        """The schedule of an algorithm for all ranks; an element is a byte."""
        nodes = self.nodes if self.per_node else ()
        return schedule(self.collective, name, nodes=nodes, **self.sizes)

    @property
    def claimed(self) -> tuple[int, ...]:
        """The sizes that closed forms take."""
        if self.record.gives == NOTHING:
            return self.groups
        if len(self.groups) == 1 or self._has_single_root:
            return sum(self.groups), self.each[0]
        if self.record.combines:
            return (*self.groups, self.each[0])
        return (*self.groups, *self.each)

    @property
    def sizes(self) -> dict[str, Any]:
        """The sizes of the schedule, by the names of its parameters."""
        of_bytes = self.record.of_bytes
        assert of_bytes is not None, self.collective
        if self.distribution != "regular":
            return of_bytes(self.counts)
        block_bytes = self.each * len(self.groups)  # a rooted case has one size
        return of_bytes(
            *([k] * n for n, k in zip(self.groups, block_bytes, strict=False))
        )
