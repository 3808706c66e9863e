"""The intercommunicator of isthmus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from mpi4py import MPI

from .all_to_all import Exchanges, Gathering, Sums
from .collective import Imported, load, nonblocking
from .family import COMMON, making
from .native import messages
from .rooted import Rooted

if TYPE_CHECKING:
    from mpi4py.typing import BufSpecW, InPlace

    from ..context.context_inter import Countdown
    from ..operations.call import Call
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
    _operations: ClassVar[Any] = Imported("..operations.between", "OPERATIONS")
    _make: ClassVar[Any] = Imported("..context.context_inter", "InterContext")
    _tasks: ClassVar[Any] = Imported("..operations.tasks_exchange")

    if TYPE_CHECKING:  # what `making` gives

        def Split(self, color: int = 0, key: int = 0) -> Intercomm: ...
        def Create(self, group: MPI.Group) -> Intercomm: ...
        def Merge(self, high: bool = False) -> Intracomm: ...

    def __new__(cls, comm: MPI.Intercomm | None = None) -> Intercomm:
        """A view of the same communicator."""
        load()
        return super().__new__(cls, comm)

    def Alltoallw(
        self,
        sendbuf: BufSpecW | InPlace,
        recvbuf: BufSpecW,
        *,
        algorithm: str | None = None,
    ) -> None:
        """All to All General: as Alltoallv, with blocks of different types."""
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
        context = self._context()
        if context.asked_for("Barrier", algorithm) == "auto":
            request: MPI.Request = context.request(context.comm.Ibarrier(), None)
            return request
        return self._nonblocking("Barrier", "Ibarrier", (), algorithm)

    def Barrier_init(
        self, info: MPI.Info = MPI.INFO_NULL, *, algorithm: str | None = None
    ) -> MPI.Prequest:
        """Persistent Barrier."""
        from ..context.library_requests import made_by

        context = self._context()
        if context.asked_for("Barrier", algorithm) == "auto":
            request = made_by(context.comm.Barrier_init)
            if request is not None:
                kept: MPI.Prequest = context.request(request, None)
                return kept
        return self._persistent("Barrier", (), info, algorithm)

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """All to All, for any objects; large arrays in them are not pickled."""
        from ..objects import between

        return between.alltoall(self._context(), sendobj)

    def barrier(self) -> None:
        """Wait until all of both groups have come."""
        self.Barrier()

    def recouple(self) -> tuple[Intercomm, tuple[str, ...]]:
        """A new intercommunicator of the processes that are left after some were lost,
        and who is missing, in words; all that are left call it.

        It needs an MPI library that goes on without lost processes, as Open MPI does
        with `mpiexec --with-ft ulfm`. `isthmus.ProcessLost` where a whole group died.
        """
        from ..context.attribute import known
        from ..context.context_inter import InterContext
        from ..waiting.bounded import bounded

        c = known(self, "context")
        if not isinstance(c, InterContext) or not c.survives:
            raise NotImplementedError(
                "this MPI library does not go on when processes are lost, or was not "
                "told to; Open MPI does with mpiexec --with-ft ulfm"
            )
        made, missing = bounded(c.survivors, c.limit)
        found = Intercomm(made)
        found.timeout = self.timeout
        return found, missing

    def _untried(self, op: str) -> Countdown | None:
        from ..context.context_inter import Countdown
        from ..costs.trial import TRIED

        c, collective = self._context(), TRIED.get(op)
        if not c.tries or collective is None or collective in c.times:
            return None
        if c.recorder is not None:
            return None
        found: Countdown = c.untried.setdefault(collective, Countdown())
        return found

    def _try(self, op: str) -> bool:
        from ..costs.trial import TRIED, tried

        if self._untried(op) is None:
            return False
        c, collective = self._context(), TRIED[op]
        with c.uninterrupted():
            c.measure()
            c.times[collective] = tried(self, collective)
        c.forget()  # plans of all ranks must be of one choice
        return True

    def _in_background(self, call: Call, asked: str) -> Call:
        if call.name.endswith("+library"):
            raise ValueError("the stage 'library' works in blocking calls only")
        alone = asked == "auto" and not call.context.threads
        if alone and call.recv and call.operator is None and call.root is None:
            found: Call = self._tasks.at_once(call)
            return found
        return call
