"""Running a dialogue on a private communicator."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

from mpi4py import MPI

from ...groups.agree import Refused
from ...groups.dialogue import Dialogue, Exchange, Post, Step
from ..context.context import interrupted
from ..context.progress import driver
from ..waiting.bounded import bounded
from ..waiting.errors import Stalled
from ..waiting.waiting import Messages, until, wait
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
        if isinstance(error, Stalled):
            error.of("group formation", "", comm.Get_rank(), "rank {}".format)
        if (received is not None or isinstance(error, Stalled)) and not shared:
            comm.refused = interrupted(f"rank {comm.Get_rank()}", error)
        raise


def _receive(comm: Private, source: int, tag: int) -> Any:
    """One value, from a rank or from anybody."""
    if not until(partial(comm.Iprobe, source, tag), comm.limit):
        assert comm.limit.seconds is not None
        whom = [] if source == MPI.ANY_SOURCE else [source]
        raise Stalled(comm.limit.seconds, whom)
    return comm.recv(None, source, tag)


def _received(comm: Private, step: Exchange | Post) -> list[Any]:
    if isinstance(step, Exchange):
        return [_receive(comm, source, NAMED) for source in step.recvs]
    return [_receive(comm, MPI.ANY_SOURCE, POSTED) for _ in range(step.expect)]


def _perform(comm: Private, step: Step) -> list[Any]:
    """One step. Values are pickled; those between two ranks stay in their order.

    A posted value cannot be taken for one of an earlier call: it is sent only after its
    receiver has brought something into the call it belongs to.
    """
    if not isinstance(step, Exchange | Post):
        return bounded(partial(comm.allgather, step.value), comm.limit)
    tag = NAMED if isinstance(step, Exchange) else POSTED
    sent = [comm.isend(value, to, tag) for to, value in step.sends]
    try:
        received = _received(comm, step)
        wait(Messages(sent, [to for to, _ in step.sends]), comm.limit)
    except BaseException:
        driver.failed.append(sent)
        raise
    return received
