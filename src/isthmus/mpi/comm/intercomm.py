"""The intercommunicator of isthmus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from mpi4py import MPI

from .all_to_all import Exchanges, Gathering, Sums
from .collective import Imported, load, nonblocking
from .family import COMMON, making
from .native import messages
from .rooted import Rooted

if TYPE_CHECKING:
    from mpi4py.typing import BufSpecW, InPlace

    from ..context.inter import InterContext
    from .intracomm import Intracomm


@messages
@making(MPI.Intercomm, *COMMON, "Create_from_groups", "Merge")
class Intercomm(Gathering, Rooted, Sums, Exchanges, MPI.Intercomm):
    """An `MPI.Intercomm` whose collectives run close to the physical limit.

    `isthmus.Intercomm(inter)` is a view of the same communicator: same handle, same
    methods, same buffer specifications. `algorithm` names an algorithm of isthmus, with
    an intragroup stage after a "+" where it has one; "native" is the MPI library's own
    call, "auto" a choice by size. The first collective call on a communicator makes
    private communicators and so waits for all its processes.
    """

    _base: ClassVar[Any] = MPI.Intercomm
    _make: ClassVar[Any] = Imported("..context.inter", "InterContext")

    if TYPE_CHECKING:  # what `making` gives

        def Split(self, color: int = 0, key: int = 0) -> Intercomm: ...
        def Create(self, group: MPI.Group) -> Intercomm: ...
        def Merge(self, high: bool = False) -> Intracomm: ...

    def __new__(cls, comm: MPI.Intercomm | None = None) -> Intercomm:
        """A view of the same communicator."""
        if isinstance(comm, MPI.Intracomm):
            raise TypeError("an intracommunicator is for isthmus.Intracomm")
        load()
        return super().__new__(cls, comm)

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Broadcast any object; large arrays in it are not pickled."""
        from ..objects import objects

        return objects.bcast(cast("InterContext", self._context()), obj, root)

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Gather any objects; large arrays in them are not pickled."""
        from ..objects import objects

        return objects.gather(cast("InterContext", self._context()), sendobj, root)

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """Scatter any objects; large arrays in them are not pickled."""
        from ..objects import objects

        return objects.scatter(cast("InterContext", self._context()), sendobj, root)

    def Alltoallw(
        self,
        sendbuf: BufSpecW | InPlace,
        recvbuf: BufSpecW,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Alltoallv with blocks of different types."""
        self._blocking("Alltoallw", algorithm, sendbuf, recvbuf)

    Ialltoallw = nonblocking(Alltoallw)

    def Alltoallw_init(
        self,
        sendbuf: BufSpecW | InPlace,
        recvbuf: BufSpecW,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Persistent Alltoallw."""
        return self._persistent("Alltoallw", (sendbuf, recvbuf), info, algorithm)

    def Barrier(self, *, algorithm: str | None = None) -> None:
        """Wait until all of both groups have come."""
        self._blocking("Barrier", algorithm)

    def Ibarrier(self, *, algorithm: str | None = None) -> MPI.Request:
        """Nonblocking Barrier."""
        return self._nonblocking("Barrier", algorithm, ())

    def Barrier_init(
        self, info: MPI.Info = MPI.INFO_NULL, *, algorithm: str | None = None
    ) -> MPI.Prequest:
        """Persistent Barrier."""
        return self._persistent("Barrier", (), info, algorithm)

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """Alltoall of any objects; large arrays in them are not pickled."""
        from ..objects import objects

        return objects.alltoall(cast("InterContext", self._context()), sendobj)

    def barrier(self) -> None:
        """Wait until all of both groups have come."""
        self.Barrier()

    def recouple(self) -> tuple[Intercomm, tuple[str, ...]]:
        """A new intercommunicator of the processes that are left after some were lost,
        and who is missing, in words; all that are left call it.

        It needs an MPI library that goes on without lost processes, as Open MPI does
        with `mpiexec --with-ft ulfm`. `isthmus.ProcessLost` where a whole group died.
        """
        from ..context.attribute import lookup
        from ..context.inter import InterContext
        from ..waiting.bounded import bounded

        c = lookup(self, "context")
        if not isinstance(c, InterContext) or not c.survives:
            raise NotImplementedError(
                "this MPI library does not go on when processes are lost, or was not "
                "told to; Open MPI does with mpiexec --with-ft ulfm"
            )
        left, missing = bounded(c.survivors, c.limit)
        inter = Intercomm(left)
        inter.timeout = self.timeout
        return inter, missing

    def _try(self, op: str) -> None:
        from ...collectives.records import record_of
        from ..context.inter import InterContext
        from ..costs.trial import trial

        c = self._context()
        assert isinstance(c, InterContext)
        collective, steps = c.trial or (record_of(op, 2).tried_as, None)
        c.trial = None
        with c.uninterrupted():
            try:
                if steps is None:
                    steps = trial(c, collective)
                    next(steps)
                else:
                    steps.send(self)
            except StopIteration as end:
                c.times[collective] = end.value
                c.plans.clear()  # plans of all ranks must be of one choice
                return
        c.trial = collective, steps
