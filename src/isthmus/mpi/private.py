"""A private duplicate of a user's communicator, on an attribute of it."""

from __future__ import annotations

from functools import cache
from typing import Any

from mpi4py import MPI


def private_of(comm: Any) -> MPI.Intracomm:
    """The duplicate; made together by all processes when it is first asked for."""
    if comm == MPI.COMM_NULL:
        raise ValueError("a communicator is needed, not MPI.COMM_NULL")
    if not isinstance(comm, MPI.Intracomm):
        raise TypeError(f"an intracommunicator is needed, not {comm!r}")
    found = comm.Get_attr(_keyval())
    if isinstance(found, MPI.Intracomm):
        return found
    made = MPI.Intracomm(comm.Dup())
    comm.Set_attr(_keyval(), made)
    return made


def _delete(comm: MPI.Comm, keyval: int, made: MPI.Intracomm) -> None:
    made.Free()


@cache
def _keyval() -> int:
    """Our attribute on communicators; made when MPI is certainly running."""
    return MPI.Comm.Create_keyval(delete_fn=_delete)
