"""A private duplicate of a user's communicator, for chains."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from ..context.attribute import attached, limit_of
from ..requests.native import orphans
from ..waiting.bounded import bounded
from ..waiting.waiting import TimeLimit


class Private(MPI.Intracomm):
    """The duplicate."""

    #: how long this process waits on it
    limit: TimeLimit

    #: why no more calls are made on it, if so
    refused = ""


class _Duplicate:
    def __init__(self, comm: MPI.Intracomm) -> None:
        limit = limit_of(comm)
        self.comm = Private(bounded(comm.Dup, limit))
        self.comm.limit = limit

    def leave(self) -> None:
        pass

    def free(self) -> None:
        if self.comm.refused:  # messages may still come
            orphans.append(self.comm)
        else:
            self.comm.Free()


def private_of(comm: Any) -> Private:
    """The duplicate; made together by all processes when it is first asked for."""
    if comm == MPI.COMM_NULL:
        raise ValueError("a communicator is needed, not MPI.COMM_NULL")
    if not isinstance(comm, MPI.Intracomm):
        raise TypeError(f"an intracommunicator is needed, not {comm!r}")
    return attached(comm, "chain", _Duplicate).comm
