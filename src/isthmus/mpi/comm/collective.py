"""How every collective is called, in its three forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from mpi4py import MPI

from .family import Comm

# The engine is imported when a communicator of ours is made, not with its class: each
# function below imports what it needs of it.
if TYPE_CHECKING:
    from ..context.context import Context
    from ..operations.call import Call

_ndarray = np.ndarray
#: what lives as long as the process, by its identity: that takes less time to compare
_LASTING: dict[int, str] = {
    **{
        id(np.dtype(code)): code for code in np.typecodes["All"] if code not in "SUVOMm"
    },
    **{
        id(x): name
        for name, x in vars(MPI).items()
        if isinstance(x, MPI.Op) and x not in (MPI.OP_NULL, MPI.REPLACE, MPI.NO_OP)
    },
}


def _part(x: Any) -> Any:
    """Counts, displacements or a type, as a value that can be compared."""
    kind = type(x)
    if kind is list:
        typed = x and isinstance(x[0], MPI.Datatype)
        return tuple(map(_part, x)) if typed else tuple(x)
    if kind is tuple:
        return tuple, *map(_part, x)
    if kind is _ndarray:
        return x.dtype, x.tobytes()
    if isinstance(x, MPI.Datatype):
        if not x.is_predefined:  # when freed, its handle may come to mean another type
            raise LookupError
        return x.handle
    return x


def by_value(op: str, algorithm: str | None, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call is known by; `LookupError` where values do not say all. Of an array
    that is its size and its type: where it lies comes later, if it matters."""
    values: list[Any] = [op, algorithm]
    for x in args:
        kind = type(x)
        if kind is _ndarray:
            dtype = x.dtype
            values.append(x.nbytes)
            values.append(_LASTING.get(id(dtype), dtype))
        elif kind is int:
            values.append(x)
        elif id(x) in _LASTING:
            values.append(_LASTING[id(x)])
        elif x is None or x is MPI.IN_PLACE:
            values.append("nothing" if x is None else "in place")
        elif kind is list and x and type(x[0]) is _ndarray:
            values += list, x[0].nbytes, x[0].dtype
            values += map(_part, x[1:])
        elif kind is list:
            values.append(tuple(x))
        elif isinstance(x, MPI.Op) and x != MPI.OP_NULL:
            # a plan that combines holds on to its operator, so this is no other one
            values += x.handle, x.is_commutative, x.is_predefined or id(x)
        else:
            raise LookupError
    return tuple(values)


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


class Left:
    """A call that is left to the MPI library."""

    used, scratch_bytes, taken = 0, 0, "native"
    untried: Any = None
    plans: ClassVar[dict[Any, Any]] = {}

    def __init__(self, context: Context, native: Callable[..., Any], counted: bool):
        self.context, self.native, self.counted = context, native, counted

    def run(self, comm: Any, args: tuple[Any, ...], *_: Any) -> None:
        """Make the call."""
        self.used = self.context.clock = self.context.clock + 1
        if self.counted:
            self.context.memory.skip()
        self.native(comm, *args)

    def free(self) -> None:
        """There is nothing to give back."""


class Collective(Comm):
    """A communicator with collectives of ours."""

    _make: ClassVar[Any]
    #: mpi4py's own class
    _base: ClassVar[Any]
    #: what reads the arguments of each operation
    _operations: ClassVar[Any]
    #: what is kept for the communicator, once this view has looked it up
    _found: Any = None

    def _context(self) -> Any:
        """What is kept for the communicator, made at the first collective call."""
        from ..context.context import context_of

        found = self._found
        if found is None or found.freed or found.refused:
            self._found = found = context_of(cast("MPI.Comm", self), self._make)
        return found

    def _taken(self) -> str:
        """The algorithm of the last blocking call of which something is kept."""
        kept = self._context().kept_calls.values()
        found: str = max(kept, key=lambda x: x.used).taken if kept else ""
        return found

    def _blocking(self, op: str, algorithm: str | None, *args: Any) -> None:
        """Make a call, by what is kept for such values if anything."""
        context = self._found
        if context is None or context.freed or context.refused:
            context = self._context()
        try:
            values = by_value(op, algorithm, args)
            kept = context.kept_calls[values]
        except KeyError:
            self._first(context, values, op, algorithm, args)
        except Exception:  # of what cannot be kept, or is wrong, which is checked then
            self._first(context, None, op, algorithm, args)
        else:
            if kept.untried is not None and kept.untried.is_over():
                self._try(op)
                self._first(context, values, op, algorithm, args)
            else:
                kept.run(self, args)

    def _first(
        self,
        context: Any,
        values: Any,
        op: str,
        algorithm: str | None,
        args: tuple[Any, ...],
    ) -> None:
        """Make a call for which nothing is kept; keep it if its values are known."""
        from ..engine import engine

        name = context.asked_for(op, algorithm)
        call: Call | None = None
        kept: Any
        native = getattr(self._base, op)
        untried = self._untried(op) if name == "auto" else None
        if untried is not None and untried.is_over():
            self._try(op)
            untried = None
        if name == "native":
            self._unread(op, args)
            kept = Left(context, native, counted=False)
        else:
            call = self._read(op, name, args)
            if call.name == "native" or call.left:
                kept = Left(context, native, call.counted)
            else:
                kept = engine.Kept(op, name, call, keep=values is not None)
        kept.untried = untried
        kept.run(self, args, call)
        if values is not None and not context.checked:
            context.kept_calls[values] = kept
            context.make_room()

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

    def _unread(self, op: str, args: tuple[Any, ...]) -> None:
        """Check a call that the MPI library reads."""
        from ..memory import device
        from ..operations.call import checked_value

        check = partial(device.check_all, *args[:2])
        checked_value(self._context(), op, "native", check)

    def _nonblocking(
        self, op: str, args: tuple[Any, ...], algorithm: str | None
    ) -> MPI.Request:
        from ..context.library_requests import holding
        from ..engine import engine, library

        context = self._context()
        name, native = context.asked_for(op, algorithm), f"I{op.lower()}"
        if name == "native":
            self._unread(op, args)
            own: MPI.Request = getattr(super(), native)(*args)
            return own
        call = self._in_background(self._read(op, name, args, native), name)
        if call.name == "native":
            recv = library.beside(call, args[1])
            started: MPI.Request = getattr(super(), native)(args[0], recv)
            same = recv is args[1]
            return started if same else holding(started, call)
        return engine.nonblocking(call, context.next_tag())

    def _persistent(
        self, op: str, args: tuple[Any, ...], info: MPI.Info, algorithm: str | None
    ) -> MPI.Prequest:
        from ..context.library_requests import holding, made_by
        from ..engine import engine, library

        context = self._context()
        name, native = context.asked_for(op, algorithm), f"{op}_init"
        if name == "native":
            self._unread(op, args)
            made = made_by(getattr(super(), native), *args, info)
            if made is None:
                raise NotImplementedError(f"this MPI library has no {native}")
            return made
        call = self._read(op, name, args, native)
        if name == "auto" and self._try(op):
            call = self._read(op, name, args)  # there is more to choose from
        call = self._in_background(call, name)
        if call.name == "native":
            recv = library.beside(call, args[1])
            made = made_by(getattr(super(), native), args[0], recv, info)
            if made is not None:
                return made if recv is args[1] else holding(made, call)
            if name != "auto":
                raise NotImplementedError(f"this MPI library has no {native}")
            call = self._driven(call)
        tag = context.lasting_tag()
        context.lasting[tag] = made = engine.persistent(call, tag)
        return made
