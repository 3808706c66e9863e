"""Running a dialogue on a private communicator."""

from __future__ import annotations

from typing import Any, TypeVar

from mpi4py import MPI

from ..groups.dialogue import Dialogue, Exchange, Post, Step

T = TypeVar("T")

#: a posted value has a tag of its own: who waits for one from anybody hears no other
NAMED, POSTED = 0, 1


def run(comm: MPI.Intracomm, dialogue: Dialogue[T]) -> T:
    """Say and hear what a dialogue asks for, until it returns."""
    heard: Any = None  # what starts a generator
    while True:
        try:
            step = dialogue.send(heard)
        except StopIteration as end:
            result: T = end.value
            return result
        heard = _perform(comm, step)


def _perform(comm: MPI.Intracomm, step: Step) -> list[Any]:
    """One step. Values are pickled; those between two ranks stay in their order.

    A posted value cannot be taken for one of an earlier call: it is sent only after its
    receiver has brought something into the call it belongs to.
    """
    if isinstance(step, Exchange):
        sent = [comm.isend(value, to, NAMED) for to, value in step.sends]
        heard = [comm.recv(None, source, NAMED) for source in step.recvs]
    elif isinstance(step, Post):
        sent = [comm.isend(value, to, POSTED) for to, value in step.sends]
        heard = [comm.recv(None, MPI.ANY_SOURCE, POSTED) for _ in range(step.expect)]
    else:
        return comm.allgather(step.value)
    MPI.Request.Waitall(sent)
    return heard
