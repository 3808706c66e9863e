"""A private duplicate of a user's communicator, for the messages of dialogues."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from ..context.attribute import attached, limit_of
from ..native_classes import NativeIntracomm
from ..requests.native import orphans
from ..waiting.bounded import bounded
from ..waiting.waiting import TimeLimit


class PrivateComm(NativeIntracomm):
    """The private duplicate of a communicator."""

    #: the time limit of this process
    limit: TimeLimit

    #: the reason if no further dialogue may run on the communicator, else ""
    refused = ""


class _Duplicate:
    """The attachment of a communicator that holds the private duplicate."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        limit = limit_of(comm)
        self.comm = PrivateComm(bounded(comm.Dup, limit))
        self.comm.limit = limit

    def leave(self) -> None:
        pass

    def free(self) -> None:
        if self.comm.refused:  # messages of an interrupted dialogue may still come
            orphans.append(self.comm)
        else:
            self.comm.Free()


def private_of(comm: Any) -> PrivateComm:
    """The private duplicate of a communicator; the first call is collective."""
    if comm == MPI.COMM_NULL:
        raise ValueError("a communicator is needed, not MPI.COMM_NULL")
    if not isinstance(comm, NativeIntracomm):
        raise TypeError(f"an intracommunicator is needed, not {comm!r}")
    return attached(comm, "chain", _Duplicate).comm
