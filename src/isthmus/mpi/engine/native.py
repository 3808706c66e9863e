"""Calls that are left to the MPI library, as something is kept for them too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mpi4py import MPI

from ..context.context import Context
from ..memory import memory
from ..operations.call import Call
from ..waiting.bounded import bounded
from . import devices
from .flow import Slot
from .plans import Kept, places_of


class LibraryStart(Kept):
    """A nonblocking call that is left to the MPI library."""

    taken = "native"

    def __init__(self, context: Context, op: str) -> None:
        super().__init__()
        self.context, self.op = context, op

    def start(self, comm: Any, args: tuple[Any, ...]) -> MPI.Request:
        """Start it."""
        self.used = self.context.clock = self.context.clock + 1
        found: MPI.Request = comm._beside(self.op, args, None, args)
        return found


class AlltoallwStart(Kept):
    """A nonblocking call whose messages leave at once: an `Ialltoallw` of the MPI
    library's."""

    def __init__(self, op: str, native: str, name: str, call: Call) -> None:
        super().__init__()
        self.context, self._asked = call.context, (op, native, name)
        self.taken, self._counted = call.name, call.counted
        #: its two arguments, and in which buffer of the call, and where, each begins
        self._known: tuple[Any, Any] | None = None
        self._lies: list[tuple[int, int] | None] = []

    def start(
        self, comm: Any, args: tuple[Any, ...], call: Call | None = None
    ) -> MPI.Request:
        """Start it; its arguments may have been read."""
        c = self.context
        places, doubtful = places_of(args)
        sides = None if doubtful else self._sides(places)
        if sides is None:
            call = call or comm._read_nonblocking(*self._asked, args)
            assert call.alltoallw is not None
            sides = call.alltoallw()
            if not doubtful:
                self._learn(sides, places)
        self.used = c.clock = c.clock + 1
        c.next_tag()  # as ranks do that start the call in another way
        if self._counted:
            c.memory.skip()
        native = c.comm.Ialltoallw(*sides)
        found: MPI.Request = c.request(native, (args, sides, native))
        return found

    def _learn(self, sides: tuple[Any, Any], places: Sequence[Any]) -> None:
        """Remember where the data of a call lie, if that is in its buffers."""
        lies: list[tuple[int, int] | None] = []
        for buffer, *_ in sides:
            at = 0 if buffer is MPI.BOTTOM else buffer.address
            found = [
                (i, at - x.address)
                for i, x in enumerate(places)
                if x is not None and x.address <= at < x.address + max(x.nbytes, 1)
            ]
            if at and not found:
                return
            lies.append(found[0] if at else None)
        self._known, self._lies = sides, lies

    def _sides(self, places: Sequence[Any]) -> tuple[Any, Any] | None:
        """The arguments for other buffers, if they are known."""
        if self._known is None:
            return None
        at = [None if x is None else places[x[0]].address + x[1] for x in self._lies]
        if at[0] == at[1] is not None:  # see `alltoallw`
            return None
        first, second = (
            side if x is None else [memory.buffer(x), *side[1:]]
            for side, x in zip(self._known, at, strict=True)
        )
        return first, second


class LibraryCall(Kept):
    """A call that is left to the MPI library."""

    taken = "native"
    untried: Any = None
    slot: Any = None

    def __init__(
        self,
        context: Context,
        op: str,
        native: Callable[..., Any],
        counted: bool,
        slot: Slot | None = None,
    ) -> None:
        super().__init__()
        self.context, self.op = context, op
        self.native, self.counted = native, counted
        if slot is not None:
            self.slot, self.native = slot, devices.around(slot, native)

    def run(self, comm: Any, args: tuple[Any, ...], *_: Any) -> None:
        """Make the call."""
        self.used = self.context.clock = self.context.clock + 1
        if self.counted:
            self.context.memory.skip()
        c = self.context
        try:
            if c.limit.seconds is None:
                self.native(comm, *args)
            else:
                bounded(partial(self.native, comm, *args), c.limit)
        except (TypeError, ValueError):  # of the arguments
            raise
        except BaseException as error:
            lost = c.has_lost(error)
            if isinstance(error, MPI.Exception) and not lost:
                raise
            if lost:
                comm.Revoke()  # others are in the same call
            raise c.failed(error, self.op, self.taken) from None
