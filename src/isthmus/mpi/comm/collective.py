"""The methods of all communicators, and the three forms of a call.

To import isthmus must stay quick, so the runtime is imported when a communicator is
made, not together with the classes.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, cast

from mpi4py import MPI

from ...settings import seconds
from ..waiting.errors import USER_EXCEPTIONS
from .family import Comm

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec

    from ...schedules.hosts import Hosts
    from ..context.context import Context
    from ..waiting.waiting import TimeLimit


class LazyImport:
    """A class attribute that is imported at its first use."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __get__(self, comm: Any, cls: Any) -> Any:
        return getattr(import_module(self._module, __package__), self._name)


if TYPE_CHECKING:
    from .. import forms as _forms
    from ..arguments.call import Call as _Call
else:
    _forms = _Call = None  # until `load`


@cache
def load() -> None:
    """Import the runtime, so that no call imports modules."""
    global _forms, _Call
    for name in ("..context.inter", "..context.intra"):
        import_module(name, __package__)
    _forms = import_module("..forms", __package__)
    _Call = import_module("..arguments.call", __package__).Call  # type: ignore[misc]


class CollectiveMethods(Comm):
    """The methods of collectives that all communicators share."""

    _context_class: ClassVar[Any]
    #: the context of the communicator, once this view has used it
    _cached_context: Context | None = None

    @property
    def _limit(self) -> TimeLimit:
        """The time limit of this process on the communicator."""
        from ..context.attribute import limit_of

        return limit_of(cast("MPI.Comm", self))

    @property
    def timeout(self) -> float | None:
        """The seconds after which a call of this process raises `isthmus.Stalled`.

        None for no limit. The initial limit is that of `ISTHMUS_TIMEOUT`. Processes may
        have different limits.
        """
        return self._limit.seconds

    @timeout.setter
    def timeout(self, limit: float | None) -> None:
        self._limit.seconds = seconds(limit, "timeout")

    def _context(self) -> Context:
        """The context of the communicator; the first use is collective."""
        context = self._cached_context
        if context is None or context.refused:
            self._cached_context = context = self._find_context()
        return context

    def _find_context(self) -> Context:
        from ..context.context import context_of

        context: Context = context_of(cast("MPI.Comm", self), self._context_class)
        return context

    def probe_hosts(self) -> Hosts:
        """Measure the costs of messages of each host; collective, a few seconds.

        The result has the start-up time and the time per byte of each rank; in an
        intercommunicator, the group whose rank 0 comes first in the world is first. The
        communicator keeps the costs for the algorithms `fastest_node_first`,
        `speed_partitioned` and `ordered_ring`, and for "auto" if hosts are unequal.
        """
        return self._context().learn_hosts()

    def Run(
        self,
        operation: str,
        sendbuf: BufSpec,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        *,
        algorithm: str | None = None,
    ) -> None:
        """Make a call of a collective beyond MPI's, by the name of an operation.

        The collective is known by its record. `op` is the operator of a reduction.
        """
        self._blocking(operation, algorithm, sendbuf, recvbuf, op)

    def Irun(
        self,
        operation: str,
        sendbuf: BufSpec,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        *,
        algorithm: str | None = None,
    ) -> MPI.Request:
        """Start a nonblocking Run and return the request."""
        return self._nonblocking(operation, algorithm, (sendbuf, recvbuf, op))

    def Run_init(
        self,
        operation: str,
        sendbuf: BufSpec,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        info: MPI.Info = MPI.INFO_NULL,
        *,
        algorithm: str | None = None,
    ) -> MPI.Prequest:
        """Set a persistent Run up and return the request."""
        args = sendbuf, recvbuf, op
        return self._persistent(operation, args, info, algorithm)

    def _last_algorithm(self) -> str:
        """The algorithm of the latest call."""
        plan = self._context().plans.last()
        return "" if plan is None else plan.algorithm

    def _blocking(self, operation: str, algorithm: str | None, *args: Any) -> None:
        context = self._cached_context
        if context is None or context.refused:
            context = self._context()
        try:
            call = _Call(context, operation, "blocking", algorithm, args)
            _forms.run(cast("MPI.Comm", self), context, call)
        except USER_EXCEPTIONS as error:
            # These errors say who, what and why, on many ranks at once. A traceback of
            # isthmus would be ten further lines on each rank.
            raise error.with_traceback(None) from None

    def _nonblocking(
        self, operation: str, algorithm: str | None, args: tuple[Any, ...]
    ) -> MPI.Request:
        context = self._context()
        call = _Call(context, operation, "nonblocking", algorithm, args)
        return _forms.begin(cast("MPI.Comm", self), context, call)

    def _persistent(
        self,
        operation: str,
        args: tuple[Any, ...],
        info: MPI.Info,
        algorithm: str | None,
    ) -> MPI.Prequest:
        context = self._context()
        call = _Call(context, operation, "persistent", algorithm, args)
        return _forms.set_up(cast("MPI.Comm", self), context, call, info)
