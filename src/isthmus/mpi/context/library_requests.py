"""Requests of the MPI library's own, with the buffers that must live as long."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, overload

from mpi4py import MPI

from ..waiting.errors import Stalled
from ..waiting.waiting import Limit, Messages, until, wait
from .progress import driver

_log = logging.getLogger("isthmus")


def _wait(request: Any, status: MPI.Status | None) -> Any:
    """Wait no longer than its communicator says."""
    owner = request._owner
    try:
        if owner is not None and not until(request.Get_status, owner.limit):
            raise Stalled(owner.limit.seconds)
        return MPI.Request.Wait(request, status)
    except (Stalled, MPI.Exception) as error:
        if owner is None or not (isinstance(error, Stalled) or owner.has_lost(error)):
            raise
        driver.failed.append(request)
        raise owner.failed(error, "request", "native") from None


class _Request(MPI.Request):
    _held: Any
    _owner: Any

    def Wait(self, status: MPI.Status | None = None) -> Any:
        """Wait for the call to complete."""
        return _wait(self, status)


class _Prequest(MPI.Prequest):
    _held: Any
    _owner: Any

    def Wait(self, status: MPI.Status | None = None) -> Any:
        """Wait for the call to complete."""
        return _wait(self, status)


@overload
def holding(request: MPI.Prequest, held: Any, owner: Any = None) -> MPI.Prequest: ...
@overload
def holding(request: MPI.Request, held: Any, owner: Any = None) -> MPI.Request: ...
def holding(request: MPI.Request, held: Any, owner: Any = None) -> MPI.Request:
    """The request, which keeps its buffers alive, and waits no longer than its owner,
    the context of a communicator, says."""
    kind = _Prequest if isinstance(request, MPI.Prequest) else _Request
    result = kind(request)
    result._held, result._owner = held, owner
    return result


def made_by(make: Callable[..., MPI.Prequest], *args: Any) -> MPI.Prequest | None:
    """A persistent request of the MPI library; None where it has none of the kind, as
    before MPI 4."""
    try:
        return make(*args)
    except NotImplementedError:
        _log.debug("the MPI library has no %s: a request of ours", make.__name__)
        return None


def finish(request: MPI.Request, limit: Limit, *buffers: Any) -> None:
    """Wait for a request, as long as a limit says; where that or a signal ends it, the
    buffers live on."""
    try:
        wait(Messages([request]), limit)
    except BaseException:
        driver.failed.append((request, buffers))
        raise
