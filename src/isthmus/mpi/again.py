"""Blocking calls that are made again: known by their arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, cast

from mpi4py import MPI

from .context import LEFT, Context, context_of
from .family import Comm
from .keys import Key, by_objects, by_value
from .known import Last, weakly
from .memory import by_address


class Again(Comm):
    """A communicator that knows its calls again.

    A method compares its arguments with those of its last call, which is far faster
    than anything that works for every method; what is not that comes here.
    """

    _make: ClassVar[type[Context]]
    #: what is kept for the communicator, once this view has looked it up
    _found: Any = None
    #: the last call of each operation on it; none, until then
    _last: Any = Last()

    def _context(self) -> Any:
        """What is kept for the communicator, made at the first collective call."""
        found = self._found
        if found is None or found.freed or found.refused:
            self._found = found = context_of(cast("MPI.Comm", self), self._make)
            self._last = found.known.last
        return found

    def _again(self, op: str, algorithm: str | None, *args: Any) -> None:
        """Do a call that is not the last of its kind."""
        known, key = self._context().known, by_objects(op, algorithm, args)
        try:
            do = known.recall(key, args)
        except TypeError:  # of what cannot be in a key: it is wrong, or not kept
            self._anew((op, algorithm), args, None)
            return
        if do is None:
            self._by_value(key, args)
        else:
            do()

    def _by_value(self, key: Key, args: tuple[Any, ...]) -> None:
        """Do a call by what is kept for such values, if anything, and know it then."""
        op, algorithm, *_ = key
        context = self._context()
        try:
            values = by_value(op, algorithm, args)
            plan = context.plans.get(values)
        except Exception:  # of wrong arguments, which are checked as those of new calls
            values = plan = None
        if plan is None:
            self._anew(key, args, values)
            return
        do = self._left(op, args) if plan is LEFT else context.runner(plan)
        context.known.keep(key, args, do)
        do()

    def _anew(self, key: Key, args: tuple[Any, ...], values: Any) -> None:
        """Do a call for which no plan is kept, and keep one if its values are known."""
        raise NotImplementedError

    def _left(self, op: str, args: tuple[Any, ...]) -> Callable[[], Any]:
        """A call that is left to the MPI library, again and again."""
        native = self._native(op)
        try:
            return partial(native, *map(by_address, args))
        except (
            LookupError,
            BufferError,
        ):  # lists, or elements that MPI has no type for
            weak = [weakly(x) for x in args]
            return lambda: native(*[x() for x in weak])

    def _native(self, op: str) -> Callable[..., Any]:
        """The MPI library's own call, whatever class this is."""
        own = MPI.Intercomm if isinstance(self, MPI.Intercomm) else MPI.Intracomm
        return getattr(own, op).__get__(self)  # type: ignore[no-any-return]
