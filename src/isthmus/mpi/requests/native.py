"""Requests of the MPI library's own, with the buffers that must live as long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from mpi4py import MPI

from ..waiting.errors import Stalled
from ..waiting.waiting import Limit, until

if TYPE_CHECKING:
    from ..context.context import Context

AnyRequest = TypeVar("AnyRequest", bound=MPI.Request)


def _wait(request: Any, status: MPI.Status | None) -> Literal[True]:
    """Wait no longer than the limit of the request's communicator."""
    context: Context = request._context
    try:
        if not until(request.Get_status, context.limit, context.check_lost):
            assert context.limit.seconds is not None
            raise Stalled(context.limit.seconds)
        return MPI.Request.Wait(request, status)
    except Exception as error:
        is_ours = isinstance(error, Stalled) or context.has_lost(error)
        if not is_ours:
            raise
        raise context.failed(error, "request", "native", orphan=request) from None


class NativeRequest(MPI.Request):
    """A nonblocking call of the MPI library's, whose `Wait` has a limit."""

    _held: Any
    _context: Context

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Wait for the call to complete."""
        return _wait(self, status)


class NativePrequest(MPI.Prequest):
    """A persistent call of the MPI library's, whose `Wait` has a limit."""

    _held: Any
    _context: Context

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Wait for the call to complete."""
        return _wait(self, status)


def holding(request: AnyRequest, context: Context, *held: Any) -> AnyRequest:
    """A request of the MPI library's, which keeps its buffers alive.

    mpi4py does not keep all of them, not what a reduction sends, for instance.
    """
    is_persistent = isinstance(request, MPI.Prequest)
    kind: Any = NativePrequest if is_persistent else NativeRequest
    result = kind(request)
    result._held, result._context = (held, request), context
    return cast("AnyRequest", result)


#: what belongs to requests of our own use that a limit or a signal has left under way
orphans: list[Any] = []


def finish(request: MPI.Request, limit: Limit, *buffers: Any) -> None:
    """Wait for a request of our own use, as long as a limit says.

    Where the limit or a signal ends the wait, the buffers live on: MPI may still write.
    """
    try:
        if not until(request.Test, limit):
            assert limit.seconds is not None
            raise Stalled(limit.seconds)
    except BaseException:
        orphans.append((request, buffers))
        raise
