"""Calls that are left to the MPI library, as something is kept for them too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mpi4py import MPI

from ..context.context import Context
from ..waiting.bounded import bounded
from . import devices
from .flow import Slot
from .plans import Kept


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
