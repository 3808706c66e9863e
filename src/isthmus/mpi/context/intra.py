"""The context of an intracommunicator: a group, and the measured costs of messages."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mpi4py import MPI

from ...collectives.collective import INSIDE
from ...collectives.placement import Placement
from ...cost.machine import Machine
from ...schedules.registry import Algorithm, named
from ...settings import INSIDE_PREFIX
from ..arguments.inside_rooted import INSIDE_READERS
from ..costs.probe import probe
from ..native_classes import NativeIntracomm
from ..waiting.bounded import bounded
from .attribute import limit_of
from .context import Context

if TYPE_CHECKING:
    from ..arguments.readers import Reader


class IntraContext(Context):
    """The context of an intracommunicator, with a single group."""

    readers: Mapping[str, Reader] = INSIDE_READERS
    groups = INSIDE

    def __init__(self, comm: MPI.Intracomm) -> None:
        private = NativeIntracomm(comm.Split(0, comm.Get_rank()))
        super().__init__(private, private, limit_of(comm))
        self.p = private.Get_size()
        self._measured = self.tuned
        self._measuring = threading.Lock()

    def asked_for(self, op: str, algorithm: str | None) -> str:
        """The algorithm that a call or the environment requests.

        An example is ISTHMUS_INTRA_BCAST=circulant.
        """
        if algorithm is not None:
            return algorithm
        return self.settings.algorithm(INSIDE_PREFIX, op)

    def _placement_for(
        self, algorithm: Algorithm, ranks: Sequence[int] | None
    ) -> Placement:
        """The placement of ranks, with the start-up if an algorithm has such an option.

        The start-up is measured only then, since all ranks must measure together.
        """
        if "startup" not in algorithm.options:
            return self.placement
        return replace(self.placement, startup_bytes=self.machine.startup_bytes)

    def measure_costs_for(self, collective: str, algorithm: str) -> None:
        """Measure messages now, if the schedules of an algorithm depend on their costs.

        All ranks measure together, while the arguments of a call are read. A call that
        asks for sizes builds the schedule when the answer arrives, which a nonblocking
        call does at any time and in any thread. To measure then would hang, because
        other ranks need not be in the call.
        """
        if "startup" in named(collective, algorithm).options:
            _ = self.machine

    @property
    def machine(self) -> Machine:
        """The costs of messages, tuned or measured once, equal on all ranks."""
        # not `cached_property`, whose lock serves all contexts before Python 3.12: two
        # threads that measure two contexts would wait for each other
        with self._measuring:
            if self._measured is None:
                with self.uninterrupted():
                    machine = bounded(partial(probe, self.comm, self.nodes), self.limit)
                self._measured = machine
        return self._measured
