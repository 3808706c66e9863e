"""The requests of persistent calls.

No version of MPI has persistent generalized requests, as nonblocking calls have them.
So the request of a persistent call is a synchronous send from this process to itself,
received when the call is over: `Startall` starts the send without calling any code of
ours, but the message can be probed for. MPI has no way to report the failure of such a
call: the next call on the communicator raises the error.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Literal

from mpi4py import MPI

from ..plan.operation import Operation
from .progress import progress

if TYPE_CHECKING:
    from ..context.channel import Channel

# bound once: both are called for every start
_start_in_mpi, _wait_in_mpi = MPI.Prequest.Start, MPI.Prequest.Wait
_EMPTY = [bytearray(1), 0, MPI.BYTE]


class _Tags:
    """Tags of persistent handles on a communicator of this process alone."""

    def __init__(self) -> None:
        self._numbers, self._free = count(), deque[int]()
        self._lock = threading.Lock()

    @cached_property
    def comm(self) -> MPI.Intracomm:
        """A duplicate of MPI_COMM_SELF, for messages of this process to itself."""
        with self._lock:
            comm = MPI.COMM_SELF.Dup()
            comm.Set_errhandler(MPI.ERRORS_RETURN)
            return comm

    @cached_property
    def largest(self) -> int:
        """The largest tag of MPI."""
        return int(self.comm.Get_attr(MPI.TAG_UB) or 32767)

    def take(self) -> int:
        """A tag for a new handle, different from those of all live handles."""
        try:
            return self._free.popleft()
        except IndexError:
            tag = next(self._numbers)
        if tag > self.largest:
            raise RuntimeError(
                f"no tag is left for a request: {self.largest + 1} requests of this "
                "process live; complete or free some"
            )
        return tag

    def give_back(self, tag: int) -> None:
        """Free the tag of a handle for later handles."""
        self._free.append(tag)


tags = _Tags()


class PersistentHandle:
    """The handle of a persistent call, started any number of times."""

    __slots__ = ("_tag", "serial")

    def __init__(self) -> None:
        self._tag, self.serial = tags.take(), -1

    def request(self) -> MPI.Prequest:
        """The persistent synchronous send, for the user."""
        return MPI.Prequest(tags.comm.Ssend_init(_EMPTY, 0, self._tag))

    def is_open(self) -> bool:
        """Whether the request was started, by the user or by MPI, and not completed."""
        return tags.comm.Iprobe(0, self._tag)

    def complete(self, operation: Operation) -> None:
        """Receive the message, which completes the request of a call that is over."""
        progress.remove(self.serial)
        tags.comm.Recv(_EMPTY, 0, self._tag)

    def free(self) -> None:
        """Give the tag back, unless a message is left.

        A request freed right after the start leaves the message behind, and a later
        handle with the tag would receive the message.
        """
        if not self.is_open():
            tags.give_back(self._tag)


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
