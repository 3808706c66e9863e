"""Requests of the MPI library's own calls, each with the buffers it must keep alive."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from mpi4py import MPI

from ..waiting.errors import Stalled
from ..waiting.waiting import TimeLimit, until

if TYPE_CHECKING:
    from ..context.context import Context

AnyRequest = TypeVar("AnyRequest", bound=MPI.Request)


def _wait(request: Any, status: MPI.Status | None) -> Literal[True]:
    """Wait for a request within the limit of its communicator.

    Polls `Get_status`, which leaves the request as it is: after `Stalled` the request
    is still the user's.
    """
    context: Context = request._context
    try:
        if not until(request.Get_status, context.limit, partial(_check, context)):
            assert context.limit.seconds is not None
            raise Stalled(context.limit.seconds)
        return MPI.Request.Wait(request, status)
    except Exception as error:
        is_ours = isinstance(error, Stalled) or context.has_lost(error)
        if context.is_broken or not is_ours:
            raise
        raise context.failed(error, "request", "native", orphan=request) from None


def _check(context: Context) -> None:
    """Raise if a rank failed in a call, or a process was lost; of a freed communicator
    nothing more is heard."""
    if not context.is_freed:
        context.channel.check()


class NativeRequest(MPI.Request):
    """A nonblocking call of the MPI library's with a limit on `Wait`."""

    _buffers: Any
    _context: Context

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Wait for the call to complete."""
        return _wait(self, status)


class NativePrequest(MPI.Prequest):
    """A persistent call of the MPI library's with a limit on `Wait`."""

    _buffers: Any
    _context: Context

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Wait for the call to complete."""
        return _wait(self, status)


def holding(request: AnyRequest, context: Context, *buffers: Any) -> AnyRequest:
    """A request of the MPI library's, which keeps the buffers of the call alive.

    mpi4py does not keep all buffers: not the send buffer of a reduction, for instance.
    """
    is_persistent = isinstance(request, MPI.Prequest)
    kind: Any = NativePrequest if is_persistent else NativeRequest
    native_request = kind(request)
    native_request._buffers, native_request._context = (buffers, request), context
    return cast("AnyRequest", native_request)


#: requests of internal calls that a limit or a signal has left under way, with their
#: buffers
orphans: list[Any] = []


def finish(request: MPI.Request, limit: TimeLimit, *buffers: Any) -> None:
    """Wait for the request of an internal call, within a limit.

    Where the limit or a signal ends the wait, the buffers are kept alive, since MPI may
    still write into them.
    """
    try:
        if not until(request.Test, limit):
            assert limit.seconds is not None
            raise Stalled(limit.seconds)
    except BaseException:
        orphans.append((request, buffers))
        raise
