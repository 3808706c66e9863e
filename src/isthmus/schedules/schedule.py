"""A collective of all ranks as plain data: the contract, and a program for each rank.

Every part of the package reads schedules, so this file imports no other part. The
methods that verify, draw and explore are in `facade.py`, above what they lead to.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .ir import Index, Program, Round
from .program import per_rank, trim

if TYPE_CHECKING:
    from ..cost.timeline import Timeline
    from ..verify.contracts import Contract


class Model(Protocol):
    """A machine that takes a time for everything."""

    def simulate(self, schedule: Schedule, record: bool = False) -> Timeline:
        """The timeline of a schedule on this machine."""


class Made(NamedTuple):
    """What gives the promise of a collective, what a rank does in it or all those of an
    array, and the ranks that may be in one array, in order."""

    promise: Callable[[], Contract]
    program: Callable[[Index], Program]
    groups: tuple[range, ...]


@dataclass(frozen=True)
class Schedule:
    """What every rank does in one collective, built on demand."""

    collective: str
    algorithm: str
    #: what must be in every buffer in the end, or a function that says it when asked
    promise: Contract | Callable[[], Contract] = field(repr=False)
    #: what a rank does, or all those of an array
    program: Callable[[Index], Program] = field(repr=False)
    #: the ranks of each group, in order
    groups: tuple[range, ...]
    #: the node of each rank; where none are given, each has its own
    nodes: tuple[Hashable, ...] = ()
    #: whether rounds use the memory of nodes: then they are built rank by rank, else
    #: for the ranks of a group at once
    node_memory: bool = False
    #: whether a rank's own contribution lies where results go
    is_in_place: bool = False
    #: the bytes of an element
    unit: int = 1
    #: the sizes that it was made with, by their names
    sizes: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def contract(self) -> Contract:
        """What every rank begins with, and must have in the end."""
        return self.promise() if callable(self.promise) else self.promise

    @property
    def n(self) -> int:
        """The number of ranks."""
        return self.groups[-1].stop

    @property
    def shares_memory(self) -> bool:
        """Whether ranks share the memory of their nodes."""
        return self.node_memory and self.n > len(set(self.nodes)) > 0

    def lanes(self) -> Iterator[tuple[range, Program]]:
        """The program of each group, for all its ranks at once; or of each rank."""
        lanes: Iterable[range] = self.groups
        if self.node_memory:
            lanes = (range(r, r + 1) for r in range(self.n))
        for ranks in lanes:
            is_single = len(ranks) == 1
            yield ranks, self.program(ranks.start if is_single else np.asarray(ranks))

    def rank(self, r: int) -> list[Round]:
        """The rounds of rank r, built for it alone."""
        return trim(self.program(r))

    def all_ranks(self) -> list[list[Round]]:
        """The rounds of every rank, built for all of them at once."""
        if self.node_memory:
            return [self.rank(r) for r in range(self.n)]
        return [
            rounds
            for ranks, program in self.lanes()
            for rounds in per_rank(program, len(ranks))
        ]

    def simulate(self, model: Model, record: bool = False) -> Timeline:
        """When each rank does what on a machine; with every message, if recorded."""
        return model.simulate(self, record)
