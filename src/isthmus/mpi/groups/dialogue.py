"""Running a dialogue on a private communicator."""

from __future__ import annotations

from typing import Any, TypeVar

from mpi4py import MPI

from ...groups.agree import Refused
from ...groups.dialogue import Dialogue, Exchange, Post, Step
from ..context.context import interrupted
from .private import Private

T = TypeVar("T")

#: posted values have a tag of their own: a receive from MPI_ANY_SOURCE matches no other
NAMED, POSTED = 0, 1


def run(comm: Private, dialogue: Dialogue[T]) -> T:
    """Perform the steps of a dialogue until it returns.

    After an exception in the middle of one, the communicator is refused: the other
    ranks could take a later message for a part of this dialogue.
    """
    if comm.refused:
        raise RuntimeError(comm.refused)
    received: Any = None  # what starts a generator
    try:
        while True:
            try:
                step = dialogue.send(received)
            except StopIteration as end:
                result: T = end.value
                return result
            received = _perform(comm, step)
    except BaseException as error:
        shared = isinstance(error, Refused) or isinstance(error.__cause__, Refused)
        if received is not None and not shared:
            comm.refused = interrupted(f"rank {comm.Get_rank()}", error)
        raise


def _perform(comm: MPI.Intracomm, step: Step) -> list[Any]:
    """One step. Values are pickled; those between two ranks stay in their order.

    A posted value cannot be taken for one of an earlier call: it is sent only after its
    receiver has brought something into the call it belongs to.
    """
    if isinstance(step, Exchange):
        sent = [comm.isend(value, to, NAMED) for to, value in step.sends]
        received = [comm.recv(None, source, NAMED) for source in step.recvs]
    elif isinstance(step, Post):
        sent = [comm.isend(value, to, POSTED) for to, value in step.sends]
        received = [comm.recv(None, MPI.ANY_SOURCE, POSTED) for _ in range(step.expect)]
    else:
        return comm.allgather(step.value)
    MPI.Request.Waitall(sent)
    return received
