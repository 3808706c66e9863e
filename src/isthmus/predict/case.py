"""What a prediction is asked for: a collective, the groups, the bytes, the nodes."""

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
    """A collective of one or two groups, and the bytes each process of one gives: a
    block, the vector of a sum, in an alltoall what goes to each other process. Those of
    the root, if only it has or gets them; between groups the first of the two is then
    the root alone, and the bytes are all of them, or those of each of the others."""

    collective: str
    groups: tuple[int, ...]
    each: tuple[int, ...]
    #: of allgatherv inside one group; `each` is then the average
    distribution: str = "regular"
    #: processes of a node, in order; each has its own if nobody says
    per_node: int = 0

    @property
    def record(self) -> Collective:
        """The record of the collective."""
        return COLLECTIVES[self.collective]

    @property
    def _is_of_one_root(self) -> bool:
        """Whether the first group is a root alone."""
        return self.record.is_rooted and self.record.groups == BETWEEN

    @property
    def counts(self) -> list[int]:
        """The bytes of every process of the one group."""
        (p,), (k,) = self.groups, self.each
        return distributions.counts(self.distribution, p, p * k)

    @property
    def totals(self) -> tuple[int, ...]:
        """The bytes that each group gives."""
        if self.record.is_rooted or self.record.combines:
            return self.each
        return tuple(n * k for n, k in zip(self.groups, self.each, strict=True))

    @property
    def nodes(self) -> tuple[int, ...]:
        """The node of each process; none, if nobody says. A root of another group is
        on a node of that group, unless all fit on one."""
        n, every = self.per_node, sum(self.groups)
        if not n:
            return ()
        if self._is_of_one_root and every > n:
            return 0, *(1 + r // n for r in range(every - 1))
        return tuple(r // n for r in range(every))

    @property
    def contract(self) -> Contract:
        """What is promised, the same by whichever algorithm."""
        return self.record.promise(self.sizes)

    def doubled(self) -> Case:
        """The same with twice the bytes."""
        return replace(self, each=tuple(2 * k for k in self.each))

    def schedule(self, name: str) -> Schedule:
        """What all ranks do; an element is a byte."""
        nodes = self.nodes if self.per_node else ()
        return schedule(self.collective, name, nodes=nodes, **self.sizes)

    @property
    def claimed(self) -> tuple[int, ...]:
        """The sizes that closed forms take."""
        if self.record.gives == NOTHING:
            return self.groups
        if len(self.groups) == 1 or self._is_of_one_root:
            return sum(self.groups), self.each[0]
        if self.record.combines:
            return (*self.groups, self.each[0])
        return (*self.groups, *self.each)

    @property
    def sizes(self) -> dict[str, Any]:
        """The sizes of the schedule."""
        of_bytes = self.record.of_bytes
        assert of_bytes is not None, self.collective
        if self.distribution != "regular":
            return of_bytes(self.counts)
        each = self.each * len(self.groups)  # of a root and others there is one
        return of_bytes(*([k] * n for n, k in zip(self.groups, each, strict=False)))
