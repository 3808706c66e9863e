"""A collective of all ranks as plain data: the contract, and a program for each rank.

Every part of the package reads schedules, so this file imports none of the parts:
otherwise imports would go in circles. The methods that verify, draw and explore a
schedule are in `facade.py`.
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
    """A machine model: gives every schedule a timeline."""

    def simulate(self, schedule: Schedule, record: bool = False) -> Timeline:
        """The timeline of a schedule on this machine."""
        ...


class SizedCollective(NamedTuple):
    """A collective of fixed sizes: the contract, the programs, and the groups.

    The contract is made on demand, because a process that runs the collective has no
    use for marks, and may not know the sizes of other ranks.
    """

    promise: Callable[[], Contract]
    #: from a rank, or from an array of ranks of a single group
    program: Callable[[Index], Program]
    #: the ranks of each group, in order
    groups: tuple[range, ...]


@dataclass(frozen=True)
class Schedule:
    """The programs of all ranks in a collective, built on demand."""

    collective: str
    algorithm: str
    #: the contract, or a function that makes the contract
    promise: Contract | Callable[[], Contract] = field(repr=False)
    #: from a rank, or from an array of ranks of a single group
    program: Callable[[Index], Program] = field(repr=False)
    #: the ranks of each group, in order
    groups: tuple[range, ...]
    #: the node of each rank; empty if placement does not matter
    nodes: tuple[Hashable, ...] = ()
    #: whether rounds use node memory; if so, rounds are built rank by rank, else for
    #: all ranks of a group at once
    node_memory: bool = False
    #: whether a rank's own contribution lies where results go
    is_in_place: bool = False
    #: the bytes of an element
    unit: int = 1
    #: the sizes of the collective, by their names
    sizes: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def contract(self) -> Contract:
        """The contents of all buffers, before the collective and after."""
        return self.promise() if callable(self.promise) else self.promise

    @property
    def n(self) -> int:
        """The number of ranks."""
        return self.groups[-1].stop

    @property
    def shares_memory(self) -> bool:
        """Whether at least two ranks share the memory of a node."""
        return self.node_memory and self.n > len(set(self.nodes)) > 0

    def group_programs(self) -> Iterator[tuple[range, Program]]:
        """The ranks and the program of each group; with node memory, of each rank."""
        parts: Iterable[range] = self.groups
        if self.node_memory:
            parts = (range(r, r + 1) for r in range(self.n))
        for ranks in parts:
            is_single = len(ranks) == 1
            yield ranks, self.program(ranks.start if is_single else np.asarray(ranks))

    def rank(self, r: int) -> list[Round]:
        """The rounds of rank r alone.

        A process of a large job calls this, since tables of all ranks do not scale.
        """
        return trim(self.program(r))

    def all_ranks(self) -> list[list[Round]]:
        """The rounds of every rank, built in arrays of ranks where possible."""
        if self.node_memory:
            return [self.rank(r) for r in range(self.n)]
        return [
            rounds
            for ranks, program in self.group_programs()
            for rounds in per_rank(program, len(ranks))
        ]

    def simulate(self, model: Model, record: bool = False) -> Timeline:
        """The timeline of the schedule on a machine; if recorded, with all messages."""
        return model.simulate(self, record)
