"""The requests that persistent calls return."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from mpi4py import MPI

from .handle import PersistentHandle
from .progress import progress

if TYPE_CHECKING:
    from ..context.channel import Channel
    from ..plan.operation import Operation

# bound once: these are called for every start
_start_in_mpi, _wait_in_mpi = MPI.Prequest.Start, MPI.Prequest.Wait


class Persistent(MPI.Prequest):
    """A persistent call: each start makes a new operation of one plan.

    Idle, the request is only watched by the progress thread, through a weak reference:
    MPI may start it without our knowing. From its start to the end of the call its
    operation lives whether or not the user keeps the request.
    """

    channel: Channel
    _make: Callable[[], Operation]
    _handle: PersistentHandle
    _serial: int
    #: of the last start
    _operation: Operation | None
    #: held by whoever starts or frees the request: the user or the progress thread
    _lock: threading.Lock

    def Start(self) -> None:
        """Start the call."""
        self.channel.context.check_usable()
        operation = self._make()  # which may fail, and has said nothing
        with self._lock:
            try:
                _start_in_mpi(self)
                self._begin(operation)
            except MPI.Exception:  # the request is started already
                raise
            except BaseException as error:  # a signal: other ranks wait for this call
                raise self.channel.context.failed(error, operation.call.name) from None

    def _begin(self, operation: Operation) -> None:
        """Begin the call of a request that is started; the caller holds the lock."""
        operation.share(self._handle)
        self._operation = operation
        if not operation.advance():
            progress.add(operation)

    def look(self) -> bool:
        """Begin the call if MPI has started the request; whether that was so."""
        with self._lock:
            is_busy = self._operation is not None and not self._operation.done
            if not self or is_busy or not self._handle.is_open():
                return False
            try:
                operation = self._make()
            except Exception as error:  # the other ranks wait for this call
                context = self.channel.context
                operation = Operation.failed(self.channel, context.failed(error))
                self._handle.complete(operation)
                self._operation = operation
            else:
                self._begin(operation)
            return True

    def finish(self) -> None:
        """Wait for the end of the call, if it is under way."""
        if self._operation is None or self._operation.done:
            self.look()
        if self._operation is not None:
            self._operation.wait()

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Wait for the call to complete."""
        try:
            self.finish()
        finally:
            if self._operation is None or self._operation.done:
                _wait_in_mpi(self, status)
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Test whether the call is complete."""
        self.look()
        operation = self._operation
        if operation is None:
            return super().Test(status)
        if not operation.advance():
            return False
        is_complete = super().Test(status)
        if operation.error is not None:
            raise operation.error
        return is_complete

    def Free(self) -> None:
        """Free the request, and at once the node memory of its call."""
        progress.forget(self._serial)
        with self._lock:  # the thread may look at it now
            super().Free()
            self._handle.free()
            if self._operation is None or self._operation.done:
                self.channel.close()


def persistent(make: Callable[[], Operation], channel: Channel) -> Persistent:
    """A persistent request, whose operations on a channel a function makes."""
    handle = PersistentHandle()
    request = Persistent(handle.request())
    request.channel, request._make, request._handle = channel, make, handle
    request._operation, request._lock = None, threading.Lock()
    request._serial = progress.watch(request)
    return request
