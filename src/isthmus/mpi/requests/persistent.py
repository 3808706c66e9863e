"""The requests of persistent calls."""

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

# bound once: both are called for every start
_start_in_mpi, _wait_in_mpi = MPI.Prequest.Start, MPI.Prequest.Wait


class PersistentRequest(MPI.Prequest):
    """A persistent call: each start makes a new operation of one plan.

    The progress thread watches an idle request through a weak reference, since MPI may
    start the request without calling any code of ours. From the start to the end of a
    call the operation is kept alive, whether or not the user keeps the request.
    """

    #: numbers the starts of this request
    channel: Channel
    _make_operation: Callable[[], Operation]
    _handle: PersistentHandle
    #: the MPI library's own request, which an operation starts between copies from and
    #: to devices; None where the messages of a plan make the call
    _native_request: MPI.Prequest | None
    #: the serial number under which the progress thread watches the request
    _serial: int
    #: the operation of the last start; None before the first
    _operation: Operation | None
    #: held while the request is started or freed, by the user or the progress thread
    _lock: threading.Lock

    def Start(self) -> None:
        """Start the persistent call."""
        self.channel.context.check_usable()
        operation = self._make_operation()  # may fail: no rank was told of the call yet
        with self._lock:
            try:
                _start_in_mpi(self)
                self._begin(operation)
            except MPI.Exception:  # the request is started already
                raise
            except BaseException as error:  # a signal: other ranks wait for this call
                raise self.channel.context.failed(error, operation.call.name) from None

    def _begin(self, operation: Operation) -> None:
        """Begin the call of a started request; the caller holds the lock."""
        operation.share(self._handle)
        self._operation = operation
        if not operation.advance():
            progress.add(operation)

    def begin_if_started(self) -> bool:
        """Begin the call if MPI alone has started the request; True if MPI has."""
        with self._lock:
            is_busy = self._operation is not None and not self._operation.done
            if not self or is_busy or not self._handle.is_open():
                return False
            try:
                operation = self._make_operation()
            except Exception as error:  # the other ranks wait for this call
                context = self.channel.context
                operation = Operation.failed(self.channel, context.failed(error))
                self._handle.complete(operation)
                self._operation = operation
            else:
                self._begin(operation)
            return True

    def finish(self) -> None:
        """Wait for the end of the call, if a call is under way."""
        if self._operation is None or self._operation.done:
            self.begin_if_started()
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
        self.begin_if_started()
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
        """Free the request, and at once the node memory of the call.

        A request of the MPI library that is not freed would keep its communicator.
        """
        progress.forget(self._serial)
        with self._lock:  # the thread may be in `begin_if_started`
            super().Free()
            self._handle.free()
            if self._operation is None or self._operation.done:
                self.channel.close()
                if self._native_request is not None:
                    self._native_request.Free()


def persistent(
    make_operation: Callable[[], Operation],
    channel: Channel,
    native_request: MPI.Prequest | None = None,
) -> PersistentRequest:
    """A persistent request with a new operation on the channel at each start.

    A request of the MPI library's that the operations start is freed with it.
    """
    handle = PersistentHandle()
    request = PersistentRequest(handle.request())
    request.channel, request._make_operation = channel, make_operation
    request._handle, request._operation = handle, None
    request._native_request = native_request
    request._lock = threading.Lock()
    request._serial = progress.watch(request)
    return request
