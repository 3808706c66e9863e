"""What is kept for an intracommunicator: one group, and how fast its messages are."""

from __future__ import annotations

from functools import cached_property

from mpi4py import MPI

from ..choose import BUILT_IN
from ..estimate import Machine
from .context import Context, Native
from .probe import probe
from .tuning import shared


class IntraContext(Context):
    """The one group of an intracommunicator."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        private = Native(comm.Split(0, comm.Get_rank()))
        super().__init__(private, private)
        self.p = private.Get_size()
        algorithms = self.settings.inside
        self.asked = algorithms["Allgather"], algorithms["Allgatherv"]
        self.small = (self.tuned or BUILT_IN).small
        self.asked_bcast = algorithms["Bcast"]

    def name(self, algorithm: str | None, v: bool) -> str:
        """The algorithm asked for by a call or by the environment."""
        return algorithm if algorithm is not None else self.asked[v]

    @cached_property
    def machine(self) -> Machine:
        """What a message costs, the same on every rank: tuned, or measured once."""
        with self.uninterrupted():
            return self.tuned or shared(probe(self.comm, self.nodes), self.nodes)
