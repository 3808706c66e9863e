"""The intercommunicator of isthmus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from mpi4py import MPI

from ..native_classes import NativeIntercomm, NativeIntracomm
from .all_to_all import AllgatherMethods, AlltoallMethods, ReductionMethods
from .collective import LazyImport, load
from .family import COMM_CONSTRUCTORS, extends
from .native import stages_messages_if_devices
from .rooted import RootedMethods

if TYPE_CHECKING:
    from mpi4py.typing import BufSpecW, InPlace

    from ..context.inter import InterContext
    from .intracomm import Intracomm


@stages_messages_if_devices
@extends(NativeIntercomm, *COMM_CONSTRUCTORS, "Create_from_groups", "Merge")
class Intercomm(
    AllgatherMethods, RootedMethods, ReductionMethods, AlltoallMethods, NativeIntercomm
):
    """An `MPI.Intercomm` whose collectives run close to the physical limit.

    `isthmus.Intercomm(inter)` is a view of the communicator, with equal handle, methods
    and buffer specifications. `algorithm` names an algorithm of isthmus, with an
    intragroup stage after a "+" if the algorithm has stages; "native" is the MPI
    library's own call, "auto" a choice by size. The first collective call waits for all
    processes, since private communicators are made.
    """

    _context_class: ClassVar[Any] = LazyImport("..context.inter", "InterContext")

    if TYPE_CHECKING:  # the types of methods wrapped by `extends`

        def Split(self, color: int = 0, key: int = 0) -> Intercomm: ...
        def Create(self, group: MPI.Group) -> Intercomm: ...
        def Merge(self, high: bool = False) -> Intracomm: ...

    def __new__(cls, comm: MPI.Intercomm | None = None) -> Intercomm:
        """A view of a communicator."""
        if isinstance(comm, NativeIntracomm):
            raise TypeError("an intracommunicator is for isthmus.Intracomm")
        load()
        return super().__new__(cls, comm)

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Broadcast any object; large arrays in the object are not pickled."""
        from ..objects import objects

        return objects.bcast(cast("InterContext", self._context()), obj, root)

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Gather any objects; large arrays in objects are not pickled."""
        from ..objects import objects

        return objects.gather(cast("InterContext", self._context()), sendobj, root)

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """Scatter any objects; large arrays in objects are not pickled."""
        from ..objects import objects

        return objects.scatter(cast("InterContext", self._context()), sendobj, root)

    def Alltoallw(
        self,
        sendbuf: BufSpecW | InPlace,
        recvbuf: BufSpecW,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Exchange blocks of different sizes and types, as `Alltoall`."""
        self._blocking("Alltoallw", algorithm, sendbuf, recvbuf)

    def Ialltoallw(
        self,
        sendbuf: BufSpecW | InPlace,
        recvbuf: BufSpecW,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Alltoallw and return the request."""
        return self._nonblocking("Alltoallw", algorithm, (sendbuf, recvbuf))

    def Alltoallw_init(
        self,
        sendbuf: BufSpecW | InPlace,
        recvbuf: BufSpecW,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Alltoallw up and return the request."""
        return self._persistent("Alltoallw", (sendbuf, recvbuf), info, algorithm)

    def Barrier(self, *, algorithm: str | None = None) -> None:
        """Wait until all ranks of both groups have called."""
        self._blocking("Barrier", algorithm)

    def Ibarrier(self, *, algorithm: str | None = None) -> MPI.Request:
        """Start a nonblocking Barrier and return the request."""
        return self._nonblocking("Barrier", algorithm, ())

    def Barrier_init(
        self, info: MPI.Info = MPI.INFO_NULL, *, algorithm: str | None = None
    ) -> MPI.Prequest:
        """Set a persistent Barrier up and return the request."""
        return self._persistent("Barrier", (), info, algorithm)

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """Exchange any objects; large arrays in objects are not pickled."""
        from ..objects import objects

        return objects.alltoall(cast("InterContext", self._context()), sendobj)

    def barrier(self) -> None:
        """Wait until all ranks of both groups have called."""
        self.Barrier()

    def recouple(self) -> tuple[Intercomm, tuple[str, ...]]:
        """A new intercommunicator of the survivors, and the lost processes in words.

        All survivors call together. The MPI library must go on without lost processes,
        as Open MPI does with `mpiexec --with-ft ulfm`. Raises `isthmus.ProcessLost` if
        a whole group died.
        """
        from ..context.attribute import lookup
        from ..context.inter import InterContext
        from ..waiting.bounded import bounded

        context = lookup(self, "context")
        if not isinstance(context, InterContext) or not context.survives:
            raise NotImplementedError(
                "this MPI library does not go on when processes are lost, or was not "
                "told to; Open MPI does with mpiexec --with-ft ulfm"
            )
        survivors, lost = bounded(context.survivors, context.limit)
        inter = Intercomm(survivors)
        inter.timeout = self.timeout
        return inter, lost
