"""How every collective is called, in its three forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, cast

from mpi4py import MPI

from ...settings import seconds
from ..waiting.errors import OF_USERS
from .family import Comm

# The runtime is imported when a communicator of ours is made, not with its class: each
# function below imports what it needs of it.
if TYPE_CHECKING:
    from mpi4py.typing import BufSpec

    from ...schedules.hosts import Hosts
    from ..context.context import Context
    from ..waiting.waiting import TimeLimit

Arguments = ParamSpec("Arguments")


def nonblocking(
    method: Callable[Concatenate[Any, Arguments], None],
) -> Callable[Concatenate[Any, Arguments], MPI.Request]:
    """The nonblocking form of a method, which takes the same arguments."""
    op, form = method.__name__, signature(method)
    kinds = [(x.kind, x.default) for x in list(form.parameters.values())[1:]]
    defaults = tuple(x for kind, x in kinds if kind is Parameter.POSITIONAL_OR_KEYWORD)
    needed = defaults.count(Parameter.empty)

    @wraps(method)
    def start(self: Any, *args: Any, algorithm: str | None = None, **named: Any) -> Any:
        given = args + defaults[len(args) :]
        if named or not needed <= len(args) <= len(defaults):
            bound = form.bind(self, *args, **named)  # which says what is wrong
            bound.apply_defaults()
            given = bound.args[1:]
        return self._nonblocking(op, algorithm, given)

    start.__name__, start.__doc__ = f"I{op.lower()}", f"Nonblocking {op}."
    start.__qualname__ = method.__qualname__.replace(op, start.__name__)
    start.__signature__ = form.replace(return_annotation="MPI.Request")  # type: ignore
    return cast("Any", start)  # type: ignore[no-any-return]


class Imported:
    """A class attribute that is imported when it is first used."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __get__(self, comm: Any, cls: Any) -> Any:
        return getattr(import_module(self._module, __package__), self._name)


#: what makes the calls, once it is imported
_forms: Any = None
_Call: Any = None


@cache
def load() -> None:
    """Import the runtime, so that no call has to."""
    global _forms, _Call
    for name in ("..context.inter", "..context.intra"):
        import_module(name, __package__)
    _forms = import_module("..forms", __package__)
    _Call = import_module("..arguments.call", __package__).Call


class Collective(Comm):
    """A communicator with collectives of ours."""

    _make: ClassVar[Any]
    #: mpi4py's own class
    _base: ClassVar[Any]
    #: what is kept for the communicator, once this view has looked it up
    _known_context: Context | None = None

    @property
    def _limit(self) -> TimeLimit:
        """How long this process waits."""
        from ..context.attribute import limit_of

        return limit_of(cast("MPI.Comm", self))

    @property
    def timeout(self) -> float | None:
        """How many seconds this process waits at most in a call on this communicator,
        then `isthmus.Stalled` is raised; None for as long as it takes. At first what
        `ISTHMUS_TIMEOUT` says. Processes may have different ones."""
        return self._limit.seconds

    @timeout.setter
    def timeout(self, given: float | None) -> None:
        self._limit.seconds = seconds(given, "timeout")

    def _context(self) -> Context:
        """What is kept for the communicator, made at the first collective call."""
        context = self._known_context
        if context is None or context.refused:
            self._known_context = context = self._looked_up()
        return context

    def _looked_up(self) -> Context:
        from ..context.context import context_of

        context: Context = context_of(cast("MPI.Comm", self), self._make)
        return context

    def probe_hosts(self) -> Hosts:
        """Measure what messages of each host cost, and keep it with the communicator
        for the algorithms `fastest_node_first`, `speed_partitioned` and `ordered_ring`.
        Where hosts are unequal, "auto" goes by it too.

        Collective; takes some seconds at the most. Gives start-up times and times per
        byte, of every rank; of an intercommunicator first of the group whose rank 0
        comes first in the world.
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
        """A collective that is not MPI's, by the name of its operation: one of which
        there is a record. `op` is for one that combines."""
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
        """Nonblocking Run."""
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
        """Persistent Run."""
        args = sendbuf, recvbuf, op
        return self._persistent(operation, args, info, algorithm)

    def _taken(self) -> str:
        """The algorithm of the call whose plan was used last."""
        plan = self._context().plans.last()
        return "" if plan is None else plan.algorithm

    def _blocking(self, op: str, algorithm: str | None, *args: Any) -> None:
        context = self._known_context
        if context is None or context.refused:
            context = self._context()
        try:
            _forms.run(self, context, _Call(context, op, "blocking", algorithm, args))
        except OF_USERS as error:
            # They say who, what and why, on many ranks at once: where in isthmus they
            # were found would be ten lines more on each.
            raise error.with_traceback(None) from None

    def _nonblocking(
        self, op: str, algorithm: str | None, args: tuple[Any, ...]
    ) -> MPI.Request:
        context = self._context()
        call = _Call(context, op, "nonblocking", algorithm, args)
        request: MPI.Request = _forms.begin(self, context, call)
        return request

    def _persistent(
        self, op: str, args: tuple[Any, ...], info: MPI.Info, algorithm: str | None
    ) -> MPI.Prequest:
        context = self._context()
        call = _Call(context, op, "persistent", algorithm, args)
        request: MPI.Prequest = _forms.set_up(self, context, call, info)
        return request

    def _try(self, op: str) -> None:
        """Make a step of a trial of the candidates for an operation."""
        raise NotImplementedError
