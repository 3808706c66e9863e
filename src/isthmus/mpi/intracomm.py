"""The intracommunicator of isthmus."""

from __future__ import annotations

from mpi4py import MPI

from .family import COMMON, Comm, making


@making(
    MPI.Intracomm,
    *COMMON,
    "Create_group",
    "Create_from_group",
    "Create_intercomm",
    "Spawn",
    "Spawn_multiple",
    "Accept",
    "Connect",
)
class Intracomm(Comm, MPI.Intracomm):
    """An `MPI.Intracomm` whose offspring are communicators of isthmus."""

    def __new__(cls, comm: MPI.Intracomm | None = None) -> Intracomm:
        """A view of the same communicator."""
        return super().__new__(cls, comm)
