"""The context of a coupling: several groups in one numbering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mpi4py import MPI

from ...choose.estimate import ring_bytes
from ...choose.tuning import untuned
from ...collectives.collective import SEVERAL
from ...collectives.placement import Placement
from ...cost.machine import Machine
from ...schedules.registry import Algorithm
from ..arguments.several import SEVERAL_READERS
from ..native_classes import NativeIntracomm
from .attribute import limit_of
from .context import Context

if TYPE_CHECKING:
    from ..arguments.readers import Reader


class SeveralContext(Context):
    """The context of a coupling, whose groups follow each other in one numbering.

    `members` has the ranks of each group in a communicator, of which the groups may be
    a part.
    """

    readers: Mapping[str, Reader] = SEVERAL_READERS
    groups = SEVERAL

    def __init__(
        self, comm: MPI.Intracomm, members: Sequence[Sequence[int]], group_number: int
    ) -> None:
        all_ranks = comm.Get_group()
        groups = all_ranks.Incl([r for ranks in members for r in ranks])
        merged = NativeIntracomm(comm.Create_group(groups))
        all_ranks.Free()
        groups.Free()
        local = NativeIntracomm(merged.Split(group_number, merged.Get_rank()))
        super().__init__(merged, local, limit_of(comm))
        self.sizes, self.group_number = tuple(map(len, members)), group_number
        self.base = sum(self.sizes[:group_number])
        self._senders = [*range(self.base), *range(self.group.stop, self.comm.size)]
        self._machine = self.tuned or untuned(self.nodes)

    @property
    def group(self) -> range:
        """The numbers of the own group."""
        return range(self.base, self.base + self.sizes[self.group_number])

    @property
    def senders(self) -> Sequence[int]:
        """The numbers of all ranks outside the own group."""
        return self._senders

    def who(self, number: int) -> str:
        """The group and rank of a number, in words."""
        group = 0
        while number >= self.sizes[group]:
            number -= self.sizes[group]
            group += 1
        return f"group {group} rank {number}"

    def _placement_for(
        self, algorithm: Algorithm, ranks: Sequence[int] | None
    ) -> Placement:
        """The placement of ranks, with the costs of messages."""
        startup, ring = self.machine.startup_bytes, ring_bytes(self.machine)
        return replace(self.placement, startup_bytes=startup, ring_bytes=ring)

    @property
    def machine(self) -> Machine:
        """The costs of messages, tuned or a guess, equal on all ranks."""
        return self._machine

    def asked_for(self, op: str, algorithm: str | None) -> str:
        """The algorithm that a call requests, by default "auto"."""
        if algorithm == "native":
            raise ValueError(f"no call of the MPI library is an {op} of several groups")
        return algorithm or "auto"
