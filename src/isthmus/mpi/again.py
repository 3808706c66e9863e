"""Blocking calls that are made again: known by their arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, cast

from mpi4py import MPI

from .context import LEFT, Context, context_of
from .family import Comm
from .keys import Key, call_key


class Again(Comm):
    """A communicator that knows its calls again.

    A method says by what it knows a call, which is far faster than anything that works
    for every method; what it finds then does the call.
    """

    _make: ClassVar[type[Context]]
    #: what is kept for the communicator, once this view has looked it up
    _found: Any = None
    #: finds what does a call
    _known: Any = {}.get

    def _context(self) -> Any:
        """What is kept for the communicator, made at the first collective call."""
        if self._found is None or self._found.freed:
            self._found = context_of(cast("MPI.Comm", self), self._make)
            self._known = self._found.known.calls.get
        return self._found

    def _unknown(self, key: Key) -> Callable[..., None]:
        """What does a call that is not known."""
        return partial(self._by_value, key)

    def _by_value(self, key: Key, *args: Any) -> None:
        """Do a call by what is kept for such values, if anything, and know it then."""
        op, algorithm, *_ = key
        context, values = self._context(), call_key(op, args, algorithm)
        plan = context.plans.get(values)
        if plan is None:
            self._anew(key, args, values)
            return
        do = self._native(op) if plan is LEFT else context.runner(plan)
        context.known.keep(key, args, do)
        do(*args)

    def _anew(self, key: Key, args: tuple[Any, ...], values: Any) -> None:
        """Do a call for which no plan is kept, and keep one if its values are known."""
        raise NotImplementedError

    def _native(self, op: str) -> Callable[..., Any]:
        """The MPI library's own call, whatever class this is."""
        own = MPI.Intercomm if isinstance(self, MPI.Intercomm) else MPI.Intracomm
        return getattr(own, op).__get__(self)  # type: ignore[no-any-return]
