"""How every collective is called, in its three forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, wraps
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from mpi4py import MPI

from ...settings import seconds
from ..memory import device
from .family import Comm
from .values import by_value

# The engine is imported when a communicator of ours is made, not with its class: each
# function below imports what it needs of it.
if TYPE_CHECKING:
    from ...schedules.hosts import Hosts
    from ..engine.flow import Slot
    from ..memory.staged import Copies
    from ..operations.call import Call
    from ..waiting.waiting import Limit

_ndarray = np.ndarray
Made = TypeVar("Made", bound=MPI.Request)
Arguments = ParamSpec("Arguments")


def nonblocking(
    method: Callable[Concatenate[Any, Arguments], None],
) -> Callable[Concatenate[Any, Arguments], MPI.Request]:
    """The nonblocking form of a method, which takes the same arguments."""
    op, form = method.__name__, signature(method)
    native = f"I{op.lower()}"
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
        return self._nonblocking(op, native, given, algorithm)

    start.__name__, start.__doc__ = native, f"Nonblocking {op}."
    start.__qualname__ = method.__qualname__.replace(op, start.__name__)
    start.__signature__ = form.replace(return_annotation="MPI.Request")  # type: ignore
    return cast("Any", start)  # type: ignore[no-any-return]


class Imported:
    """A class attribute that is imported when it is first used."""

    def __init__(self, module: str, name: str = "") -> None:
        self.module, self.name = module, name

    def __get__(self, comm: Any, cls: Any) -> Any:
        found = import_module(self.module, __package__)
        return getattr(found, self.name) if self.name else found


@cache
def load() -> None:
    """Import the engine, so that no call has to."""
    for name in (
        "..engine.engine",
        "..operations.between",
        "..operations.tasks_inside",
    ):
        import_module(name, __package__)


class Collective(Comm):
    """A communicator with collectives of ours."""

    _make: ClassVar[Any]
    #: mpi4py's own class
    _base: ClassVar[Any]
    #: what reads the arguments of each operation
    _operations: ClassVar[Any]
    #: what is kept for the communicator, once this view has looked it up
    _found: Any = None

    @property
    def _limit(self) -> Limit:
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

    def _context(self) -> Any:
        """What is kept for the communicator, made at the first collective call."""
        from ..context.context import context_of

        found = self._found
        if found is None or found.freed or found.refused:
            self._found = found = context_of(cast("MPI.Comm", self), self._make)
        return found

    def probe_hosts(self) -> Hosts:
        """Measure what messages of each host cost, and keep it with the communicator
        for the algorithms `fastest_node_first`, `speed_partitioned` and `ordered_ring`.
        Where hosts are unequal, "auto" goes by it too.

        Collective; takes some seconds at the most. Gives start-up times and times per
        byte, of every rank; of an intercommunicator first of the group whose rank 0
        comes first in the world.
        """
        found: Hosts = self._context().learn_hosts()
        return found

    def _taken(self) -> str:
        """The algorithm of the last blocking call of which something is kept."""
        kept = self._context().cached_calls.values()
        found: str = max(kept, key=lambda x: x.used).taken if kept else ""
        return found

    def _blocking(self, op: str, algorithm: str | None, *args: Any) -> None:
        """Make a call, by what is kept for such values if anything."""
        context = self._found
        if context is None or context.freed or context.refused:
            context = self._context()
        try:
            values = by_value(op, algorithm, args)
            kept = context.cached_calls[values]
        except KeyError:
            self._first(context, values, op, algorithm, args)
        except Exception:  # of what cannot be kept, or is wrong, which is checked then
            copies = self._copies(op, algorithm, args)
            if copies is None:
                self._first(context, None, op, algorithm, args)
            else:
                self._staged(context, op, algorithm, copies)
        else:
            if kept.untried is not None and kept.untried.is_over():
                self._try(op)
                self._first(context, values, op, algorithm, args)
            else:
                kept.run(self, args)

    def _staged(
        self, context: Any, op: str, algorithm: str | None, copies: Copies
    ) -> None:
        """Make a call on host memory that stands for arrays on a device, as one of host
        arrays: all ranks count it alike."""
        from ..engine.flow import Slot

        args, kept = copies.args, None
        try:
            values: Any = "device", copies.places, by_value(op, algorithm, args)
            kept = context.cached_calls.get(values)
        except Exception:
            values = None
        if kept is not None and kept.untried is not None and kept.untried.is_over():
            self._try(op)
            kept = None
        slot = Slot() if kept is None else kept.slot
        slot.now = copies
        if kept is None:
            self._first(context, values, op, algorithm, args, slot)
        else:
            kept.run(self, args)
        slot.now = None  # what failed keeps its memory, which may be written still

    def _copies(
        self,
        op: str,
        algorithm: str | None,
        args: tuple[Any, ...],
        called: str = "",
        lasting: bool = False,
    ) -> Copies | None:
        """The copies of a call with arrays on a device; None where there are none, or
        where the MPI library takes them."""
        ends = args[:2]
        if all(type(x) is _ndarray for x in ends):
            return None
        from ..engine import devices
        from ..memory import staged
        from ..operations.call import told

        context = self._context()

        def look() -> Copies | None:
            if not device.among(ends):
                return None
            if context.device == "refuse":
                device.refuse()
            name = context.asked_for(op, algorithm)
            if context.device == "direct":
                read = partial(self._operations[op], context, name, *args)
                if name == "native" or devices.is_direct(read()):
                    staged.wait_for_producers(ends)
                    return None
            return staged.copies(op, args, self._sends(op, args), lasting)

        return told(context, called or op, look)

    def _sends(self, op: str, args: tuple[Any, ...]) -> bool:
        """Whether this rank is the root of a Bcast."""
        if op != "Bcast":
            return False
        here = MPI.ROOT if cast("MPI.Comm", self).Is_inter() else self._context().number
        return bool(args[1] == here)

    def _first(
        self,
        context: Any,
        values: Any,
        op: str,
        algorithm: str | None,
        args: tuple[Any, ...],
        slot: Slot | None = None,
    ) -> None:
        """Make a call for which nothing is kept; keep it if its values are known."""
        from ..engine import engine
        from ..engine.native import LibraryCall

        name = context.asked_for(op, algorithm)
        call: Call | None = None
        kept: Any
        native = getattr(self._base, op)
        untried = self._untried(op) if name == "auto" else None
        if untried is not None and untried.is_over():
            self._try(op)
            untried = None
        if name == "native":
            self._unread(op)
            kept = LibraryCall(context, op, native, False, slot)
        else:
            call = self._read(op, name, args)
            if call.name == "native" or call.fallback:
                kept = LibraryCall(context, op, native, call.counted, slot)
            else:
                kept = engine.CachedCall(op, name, call, values is not None, slot)
        kept.untried = untried
        kept.run(self, args, call)
        if values is not None and not context.checked:
            context.keep(values, kept)

    def _read(
        self, op: str, name: str, args: tuple[Any, ...], called: str = ""
    ) -> Call:
        """The arguments of a call, if they are right."""
        from ..operations.call import checked

        context = self._context()
        read = partial(self._operations[op], context, name, *args)
        return checked(context, called or op, name, read)

    def _untried(self, op: str) -> Any:
        """Counts the calls of an operation whose candidates were not tried yet."""
        return None

    def _try(self, op: str) -> bool:
        """Try what may be chosen for an operation, if nobody did; whether that was
        done."""
        return False

    def _in_background(self, call: Call, asked: str) -> Call:
        """The call as it is done beside the caller; "native" if the library does it."""
        return call

    def _driven(self, call: Call) -> Call:
        """A call for which the MPI library has no persistent request."""
        raise NotImplementedError

    def _unread(self, op: str) -> None:
        """Check a call that the MPI library reads."""
        from ..operations.call import checked_value

        checked_value(self._context(), op, "native", lambda: None)

    def _limited(self, request: Made, held: Any) -> Made:
        """A request of the MPI library's, whose `Wait` has the limit if there is one;
        and its buffers, of which mpi4py does not keep all: not what a reduction sends,
        for instance."""
        from ..context.library_requests import holding

        return cast("Made", holding(request, (held, request), self._context()))

    def _nonblocking(
        self, op: str, native: str, args: tuple[Any, ...], algorithm: str | None
    ) -> MPI.Request:
        """Start a call, by what is kept for such values if anything; `native` is the
        name of the method."""
        context = self._found
        if context is None or context.freed or context.refused:
            context = self._context()
        try:
            values: Any = by_value(native, algorithm, args)
            kept = context.cached_calls[values]
        except KeyError:
            return self._first_start(context, values, op, native, algorithm, args)
        except Exception:  # of what cannot be kept, or is wrong, which is checked then
            return self._first_start(context, None, op, native, algorithm, args)
        found: MPI.Request = kept.start(self, args)
        return found

    def _read_nonblocking(
        self, op: str, native: str, name: str, args: tuple[Any, ...]
    ) -> Call:
        """The arguments of a nonblocking call, if they are right."""
        return self._in_background(self._read(op, name, args, native), name)

    def _first_start(
        self,
        context: Any,
        values: Any,
        op: str,
        native: str,
        algorithm: str | None,
        args: tuple[Any, ...],
    ) -> MPI.Request:
        """Start a call for which nothing is kept; keep it if its values are known and
        say all."""
        from ..engine import engine, library
        from ..engine.native import LibraryStart

        name = context.asked_for(op, algorithm)
        copies = self._copies(op, algorithm, args, native)
        if copies is not None:
            engine.check_threads(context, name)
            args = copies.args
        lasts = values is not None and copies is None and not context.checked
        if name == "native":
            self._unread(op)
            if lasts:
                context.keep(values, LibraryStart(context, native))
            return self._beside(native, args, copies, args)
        call = self._read_nonblocking(op, native, name, args)
        if call.name == "native":
            recv = library.beside(call, args[1])
            if recv is not args[1]:
                some = args[0], recv, *args[2:]
                return self._beside(native, some, copies, call)
            if lasts and not call.v:
                context.keep(values, LibraryStart(context, native))
            return self._beside(native, args, copies, args)
        kept = engine.kept_start(op, native, name, call) if lasts else None
        if kept is None:
            return engine.nonblocking(call, context.next_tag(), native, copies)
        context.keep(values, kept)
        return kept.start(self, args, call)

    def _beside(
        self,
        native: str,
        args: tuple[Any, ...],
        copies: Copies | None,
        held: Any,
    ) -> MPI.Request:
        """The MPI library's own request."""
        start = partial(getattr(super(), native), *args)
        if copies is not None:
            from ..engine import devices

            return devices.beside(start, copies, self._context())
        own: MPI.Request = start()
        return self._limited(own, held)

    def _persistent(
        self, op: str, args: tuple[Any, ...], info: MPI.Info, algorithm: str | None
    ) -> MPI.Prequest:
        from ..context.library_requests import made_by
        from ..engine import devices, engine, library

        context = self._context()
        name, native = context.asked_for(op, algorithm), f"{op}_init"
        copies = self._copies(op, algorithm, args, native, lasting=True)
        if copies is not None:
            engine.check_threads(context, name)
            args = copies.args
        if name == "native":
            self._unread(op)
            made = made_by(getattr(super(), native), *args, info)
            if made is None:
                raise NotImplementedError(f"this MPI library has no {native}")
            if copies is not None:
                return devices.again(made, copies, context)
            return self._limited(made, args)
        call = self._read(op, name, args, native)
        if name == "auto" and self._try(op):
            call = self._read(op, name, args)  # there is more to choose from
        call = self._in_background(call, name)
        if call.name == "native":
            recv = library.beside(call, args[1])
            some = args[0], recv, *args[2:]
            made = made_by(getattr(super(), native), *some, info)
            if made is not None and copies is not None:
                return devices.again(made, copies, context)
            if made is not None:
                held = args if recv is args[1] else call
                return self._limited(made, held)
            if name != "auto":
                raise NotImplementedError(f"this MPI library has no {native}")
            call = self._driven(call)
        tag = context.lasting_tag()

        def read(other: Any) -> Call:
            found: Call = self._operations[op](other, name, *args)
            return found

        made = engine.persistent(call, tag, read, native, copies)
        context.lasting[tag] = made
        return made
