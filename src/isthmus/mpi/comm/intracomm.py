"""The intracommunicator of isthmus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from mpi4py import MPI

from .all_to_all import Exchanges, Gathering, Sums
from .collective import Imported, load
from .family import COMMON, making
from .native import messages, staging
from .rooted import Rooted

if TYPE_CHECKING:
    from .intercomm import Intercomm


@messages
@staging(MPI.Intracomm, "Alltoallw", "Scan", "Exscan")
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
class Intracomm(Gathering, Sums, Rooted, Exchanges, MPI.Intracomm):
    """An `MPI.Intracomm` whose collectives run close to the physical limit.

    `isthmus.Intracomm(comm)` is a view of the same communicator: same handle, same
    methods, same buffer specifications, and `MPI.IN_PLACE`. `algorithm` names one of
    isthmus; "native" is the MPI library's own call, "auto" a choice by the counts and
    by what messages cost here, which is measured once for each communicator. The first
    collective call makes a private communicator and so waits for all processes.
    """

    _base: ClassVar[Any] = MPI.Intracomm
    _make: ClassVar[Any] = Imported("..context.intra", "IntraContext")

    if TYPE_CHECKING:  # what `making` gives

        def Split(self, color: int = 0, key: int = 0) -> Intracomm: ...
        def Split_type(
            self, split_type: int, key: int = 0, info: MPI.Info = MPI.INFO_NULL
        ) -> Intracomm: ...
        def Create(self, group: MPI.Group) -> Intracomm: ...
        def Create_group(self, group: MPI.Group, tag: int = 0) -> Intracomm: ...
        def Create_intercomm(
            self,
            local_leader: int,
            peer_comm: MPI.Intracomm,
            remote_leader: int,
            tag: int = 0,
        ) -> Intercomm: ...

    def __new__(cls, comm: MPI.Intracomm | None = None) -> Intracomm:
        """A view of the same communicator."""
        if isinstance(comm, MPI.Intercomm):
            raise TypeError("an intercommunicator is for isthmus.Intercomm")
        load()
        return super().__new__(cls, comm)
