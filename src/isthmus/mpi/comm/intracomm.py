"""The intracommunicator of isthmus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from mpi4py import MPI

from ..native_classes import NativeIntercomm, NativeIntracomm
from .all_to_all import AllgatherMethods, AlltoallMethods, ReductionMethods
from .collective import LazyImport, load
from .family import COMM_CONSTRUCTORS, extends
from .native import stages_collectives, stages_messages_if_devices
from .rooted import RootedMethods

if TYPE_CHECKING:
    from .intercomm import Intercomm


@stages_messages_if_devices
@stages_collectives(NativeIntracomm, "Alltoallw", "Scan", "Exscan")
@extends(
    NativeIntracomm,
    *COMM_CONSTRUCTORS,
    "Create_group",
    "Create_from_group",
    "Create_intercomm",
    "Spawn",
    "Spawn_multiple",
    "Accept",
    "Connect",
)
class Intracomm(
    AllgatherMethods, ReductionMethods, RootedMethods, AlltoallMethods, NativeIntracomm
):
    """An `MPI.Intracomm` whose collectives run close to the physical limit.

    `isthmus.Intracomm(comm)` is a view of the communicator, with equal handle, methods
    and buffer specifications, and with `MPI.IN_PLACE`. `algorithm` names an algorithm
    of isthmus; "native" is the MPI library's own call, "auto" a choice by the counts
    and by the costs of messages, measured once for each communicator. The first
    collective call waits for all processes, since a private communicator is made.
    """

    _context_class: ClassVar[Any] = LazyImport("..context.intra", "IntraContext")

    if TYPE_CHECKING:  # the types of methods wrapped by `extends`

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
        """A view of a communicator."""
        if isinstance(comm, NativeIntercomm):
            raise TypeError("an intercommunicator is for isthmus.Intercomm")
        load()
        return super().__new__(cls, comm)
