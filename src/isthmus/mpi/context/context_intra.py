"""What is kept for an intracommunicator: one group, and how fast its messages are."""

from __future__ import annotations

from functools import cached_property, partial

from mpi4py import MPI

from ...choose.choose import BUILT_IN
from ...choose.estimate import Machine
from ..costs.probe import probe
from ..costs.tuning import shared
from ..waiting.bounded import bounded
from .attribute import limit_of
from .context import Context, Native


class IntraContext(Context):
    """The one group of an intracommunicator."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        private = Native(comm.Split(0, comm.Get_rank()))
        super().__init__(private, private, limit_of(comm))
        self.p = private.Get_size()
        self.small = (self.tuned or BUILT_IN).small

    def asked_for(self, op: str, algorithm: str | None) -> str:
        """The algorithm asked for by a call or by the environment, as in
        ISTHMUS_INTRA_BCAST=circulant."""
        return self.settings.inside[op] if algorithm is None else algorithm

    @cached_property
    def machine(self) -> Machine:
        """What a message costs, the same on every rank: tuned, or measured once."""
        with self.uninterrupted():
            if self.tuned:
                return self.tuned
            measured = bounded(partial(probe, self.comm, self.nodes), self.limit)
            return shared(measured, self.nodes)
