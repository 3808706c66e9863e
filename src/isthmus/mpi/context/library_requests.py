"""Requests of the MPI library's own, with the buffers that must live as long."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, overload

from mpi4py import MPI

_log = logging.getLogger("isthmus")


class _Request(MPI.Request):
    _held: Any


class _Prequest(MPI.Prequest):
    _held: Any


@overload
def holding(request: MPI.Prequest, held: Any) -> MPI.Prequest: ...
@overload
def holding(request: MPI.Request, held: Any) -> MPI.Request: ...
def holding(request: MPI.Request, held: Any) -> MPI.Request:
    """The request, which keeps its buffers alive."""
    kind = _Prequest if isinstance(request, MPI.Prequest) else _Request
    result = kind(request)
    result._held = held
    return result


def made_by(make: Callable[..., MPI.Prequest], *args: Any) -> MPI.Prequest | None:
    """A persistent request of the MPI library; None where it has none of the kind, as
    before MPI 4."""
    try:
        return make(*args)
    except NotImplementedError:
        _log.debug("the MPI library has no %s: a request of ours", make.__name__)
        return None
