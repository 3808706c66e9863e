"""The requests of nonblocking calls."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any, Literal

from mpi4py import MPI

from ..plan.operation import Operation
from .handle import Handle
from .progress import progress

_log = logging.getLogger("isthmus")


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
