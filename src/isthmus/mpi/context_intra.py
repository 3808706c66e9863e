"""What is kept for an intracommunicator: one group, and how fast its messages are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cached_property

import numpy as np
from mpi4py import MPI

from ..estimate import Machine
from .context import Context, Native, asked
from .probe import probe


class IntraContext(Context):
    """The one group of an intracommunicator."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        private = Native(comm.Split(0, comm.Get_rank()))
        super().__init__(private, private)
        self.p = private.Get_size()
        both = asked("ISTHMUS_INTRA_ALLGATHER")
        self.asked = both, asked("ISTHMUS_INTRA_ALLGATHERV", both)
        self.asked_bcast = asked("ISTHMUS_INTRA_BCAST")

    def name(self, algorithm: str | None, v: bool) -> str:
        """The algorithm asked for by a call or by the environment."""
        return algorithm if algorithm is not None else self.asked[v]

    @cached_property
    def machine(self) -> Machine:
        """What a message costs: measured once, the same on every rank."""
        nodes = Counter(self.nodes)
        sharing = max(nodes.values()) if len(nodes) > 1 else 1
        return replace(probe(self.comm), sharing=sharing)

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """The node of every rank, as the number of the first rank there."""
        node = self.comm.Split_type(MPI.COMM_TYPE_SHARED, self.number)
        first = np.array([node.bcast(self.number)])
        node.Free()
        found = np.empty(self.p, first.dtype)
        self.comm.Allgather(first, found)
        return tuple(found.tolist())
