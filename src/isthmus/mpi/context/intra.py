"""What is kept for an intracommunicator: one group, and how fast its messages are."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mpi4py import MPI

from ...choose.choose import BUILT_IN
from ...choose.estimate import MessageCosts
from ...collectives.collective import INSIDE
from ...collectives.placement import Placement
from ...schedules.registry import Algorithm, named
from ...settings import INSIDE_PREFIX
from ..arguments.inside_rooted import INSIDE_READERS
from ..costs.probe import probe
from ..costs.tuning import with_shared_ports
from ..waiting.bounded import bounded
from .attribute import limit_of
from .context import Context, Native

if TYPE_CHECKING:
    from ..arguments.readers import Reader


class IntraContext(Context):
    """The one group of an intracommunicator."""

    readers: Mapping[str, Reader] = INSIDE_READERS
    groups = INSIDE

    def __init__(self, comm: MPI.Intracomm) -> None:
        private = Native(comm.Split(0, comm.Get_rank()))
        super().__init__(private, private, limit_of(comm))
        self.p = private.Get_size()
        self.small = (self.tuned or BUILT_IN).small
        self._measured = self.tuned
        self._measuring = threading.Lock()

    def asked_for(self, op: str, algorithm: str | None) -> str:
        """The algorithm asked for by a call or by the environment, as in
        ISTHMUS_INTRA_BCAST=circulant."""
        if algorithm is not None:
            return algorithm
        return self.settings.algorithm(INSIDE_PREFIX, op)

    def _placement_for(
        self, algorithm: Algorithm, ranks: Sequence[int] | None
    ) -> Placement:
        """Where ranks are; what a start-up is worth is measured only for algorithms
        that want to know."""
        if "startup" not in algorithm.options:
            return self.placement
        return replace(self.placement, startup_bytes=self.machine.startup)

    def measure_for(self, collective: str, algorithm: str) -> None:
        """Measure messages now, if the schedules of an algorithm depend on their costs.

        All ranks measure together, which a call can do while its arguments are read. A
        call that asks for sizes makes its schedule when the answer arrives: of a
        nonblocking call that is at any time, in any thread, and a rank that measured
        there would wait for ranks that do something else.
        """
        if "startup" in named(collective, algorithm).options:
            _ = self.machine

    @property
    def machine(self) -> MessageCosts:
        """What a message costs, the same on every rank: tuned, or measured once."""
        # not `cached_property`, which before Python 3.12 has one lock for all contexts:
        # threads that measure two of them would wait for each other
        with self._measuring:
            if self._measured is None:
                with self.uninterrupted():
                    machine = bounded(partial(probe, self.comm, self.nodes), self.limit)
                self._measured = with_shared_ports(machine, self.nodes)
        return self._measured
