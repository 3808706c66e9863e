"""What a prediction is asked for: a collective, the groups, the bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from . import distributions
from .collectives import schedule
from .schedules import Schedule

#: collectives of one group in which one process has or gets everything
ROOTED = ("bcast", "reduce")
#: collectives of a root and another group, of all it has or gets, or of a block each
WHOLE = ("inter_bcast", "inter_reduce")
BLOCKS = ("inter_gather", "inter_gatherv", "inter_scatter", "inter_scatterv")


@dataclass(frozen=True)
class Case:
    """A collective of one or two groups, and the bytes each process of one gives; those
    of the root, if only it has or gets them. The first of two groups is then the root
    alone, and the bytes are all of them, or those of each process of the other."""

    collective: str
    groups: tuple[int, ...]
    each: tuple[int, ...]
    #: of allgatherv inside one group; `each` is then the average
    distribution: str = "regular"

    @property
    def counts(self) -> list[int]:
        """The bytes of every process of the one group."""
        (p,), (k,) = self.groups, self.each
        return distributions.counts(self.distribution, p, p * k)

    @property
    def totals(self) -> tuple[int, ...]:
        """The bytes that each group gives."""
        if self.collective in ROOTED + WHOLE + BLOCKS:
            return self.each
        return tuple(n * k for n, k in zip(self.groups, self.each, strict=True))

    @property
    def most(self) -> int:
        """The bytes that some process must receive."""
        if self.collective in ROOTED:
            return self.each[0] if self.groups[0] > 1 else 0
        if self.collective in WHOLE + BLOCKS:
            return self.each[0] * (self.groups[1] if self.collective in BLOCKS else 1)
        if len(self.groups) == 1:
            return sum(self.counts) - min(self.counts)
        return max(self.totals)

    def doubled(self) -> Case:
        """The same with twice the bytes."""
        return replace(self, each=tuple(2 * k for k in self.each))

    def schedule(self, name: str) -> Schedule:
        """What all ranks do; an element is a byte."""
        return schedule(self.collective, name, **self._sizes())

    def _sizes(self) -> dict[str, Any]:
        if self.collective == "inter_allgather":
            values = (*self.groups, *self.each)
            return dict(zip(("p", "q", "ka", "kb"), values, strict=True))
        if self.collective in ROOTED:
            return {"p": self.groups[0], "m": self.each[0], "root": 0}
        if self.collective in WHOLE:
            return {"q": self.groups[1], "m": self.each[0]}
        if self.collective in BLOCKS and not self.collective.endswith("v"):
            return {"q": self.groups[1], "k": self.each[0]}
        if self.collective in BLOCKS:
            return {"counts": list(self.each) * self.groups[1]}
        if self.collective == "allgatherv":
            return {"counts": self.counts}
        lists = ([k] * n for n, k in zip(self.groups, self.each, strict=True))
        return dict(zip(("a", "b"), lists, strict=True))
