"""The requests of nonblocking calls.

A call of several rounds is no request of MPI: somebody has to start each round when the
round before is complete. Users still need a request that MPI's own functions take,
`Waitall` among them. So the request of a nonblocking call is a generalized request. MPI
calls a function of ours to complete a generalized request, so a failed call raises in
`Waitall` too.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any, Literal

from mpi4py import MPI

from ..plan.operation import Operation
from .progress import progress

_log = logging.getLogger("isthmus")
_NOBODY_ADVANCES = (
    "MPI was started without MPI_THREAD_MULTIPLE: a nonblocking call of isthmus goes "
    "forward in the Wait and Test of its own request, not in this function of MPI"
)


class Handle:
    """The handle of one nonblocking call: a generalized request of MPI."""

    __slots__ = ("_error", "_is_complete_early", "_is_over", "_request", "serial")

    def __init__(self) -> None:
        #: serial number of the operation in the progress thread; -1 if unknown there
        self.serial = -1
        #: whether the call is over, and the error that it raised
        self._is_over = False
        self._error: BaseException | None = None
        #: whether the request was completed in MPI before the call is over
        self._is_complete_early = False
        self._request = MPI.Grequest.Start(self._query, None, None)

    def request(self) -> MPI.Request:
        """The generalized request, for the user."""
        return self._request

    def _query(self, status: MPI.Status) -> None:
        """Raise the error of the call; MPI calls this function to complete a request
        (`query_fn`)."""
        if not self._is_over:
            raise RuntimeError(_NOBODY_ADVANCES)
        if self._error is not None:
            raise self._error

    def complete_early(self) -> None:
        """Complete the request while the call goes on, since MPI's own functions
        would wait for ever for a call that no thread may advance.
        """
        self._is_complete_early = True
        self._request.Complete()

    def complete(self, operation: Operation) -> None:
        """Complete the request of a call that is over, with or without an error."""
        progress.remove(self.serial)
        self._is_over, self._error = True, operation.error
        if not self._is_complete_early:
            self._request.Complete()

    def drop_error(self) -> None:
        """Let MPI complete the request without an error, since `Wait` raises it."""
        self._is_over, self._error = True, None


class Request(MPI.Request):
    """A nonblocking call under way: an ordinary request of MPI.

    `Wait` and `Test` advance the call themselves, since a wait for the progress thread
    takes longer, and raise the error of a failed call.
    """

    _operation: Operation
    _handle: Handle

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Wait for the call to complete."""
        operation = self._operation
        try:
            operation.wait()
        finally:  # a signal may end the wait, and not the call
            if operation.done:
                self._complete(status)
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Test whether the call is complete."""
        operation = self._operation
        if not operation.advance():
            return False
        self._complete(status)
        if operation.error is not None:
            raise operation.error
        return True

    def _complete(self, status: MPI.Status | None) -> None:
        """Complete the request in MPI without the error, which the caller raises."""
        self._handle.drop_error()
        MPI.Request.Wait(self, status)

    def wait(self, status: MPI.Status | None = None) -> Any:
        """Wait for the call to complete."""
        self.Wait(status)

    def test(self, status: MPI.Status | None = None) -> tuple[bool, Any]:
        """Test whether the call is complete."""
        return self.Test(status), None

    def Cancel(self) -> None:
        """Refuse: by MPI's rules a collective cannot be cancelled."""
        raise MPI.Exception(MPI.ERR_REQUEST)


def start(operation: Operation) -> Request:
    """Begin an operation and return the request.

    The progress thread gets the operation only after the first `advance`, since calls
    must be numbered in the order of the user's calls.
    """
    operation.share(handle := Handle())
    request = Request(handle.request())
    request._operation, request._handle = operation, handle
    try:
        is_over = operation.advance()
        if not is_over:
            progress.add(operation)
            if not progress.runs:
                _log_that_no_thread_advances()
                handle.complete_early()
    except BaseException as error:  # a signal: other ranks wait for this call
        context = operation.channel.context
        raise context.failed(error, operation.call.name, orphan=operation) from None
    if is_over and operation.error is not None and operation.number < 0:
        request._complete(None)
        raise operation.error
    return request


@cache
def _log_that_no_thread_advances() -> None:
    """Log once in a process what does not work without MPI_THREAD_MULTIPLE."""
    _log.info(
        "MPI was started without MPI_THREAD_MULTIPLE: nonblocking calls go forward in "
        "their own Wait and Test only, and MPI's Waitall and its kin raise an error"
    )
