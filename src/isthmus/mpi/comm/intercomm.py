"""The intercommunicator of isthmus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from mpi4py import MPI

from .collective import Imported, load
from .family import COMMON, making
from .gathering import Gathering
from .mutual import Mutual
from .rooted import Rooted

if TYPE_CHECKING:
    from ..context.context_inter import Countdown
    from ..operations.call import Call
    from .intracomm import Intracomm


@making(MPI.Intercomm, *COMMON, "Create_from_groups", "Merge")
class Intercomm(Gathering, Rooted, Mutual, MPI.Intercomm):
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

    def _untried(self, op: str) -> Countdown | None:
        from ..context.context_inter import Countdown
        from .trial import TRIED

        c, collective = self._context(), TRIED.get(op)
        if not c.tries or collective is None or collective in c.times:
            return None
        if c.recorder is not None:
            return None
        found: Countdown = c.untried.setdefault(collective, Countdown())
        return found

    def _try(self, op: str) -> bool:
        from .trial import TRIED, tried

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
