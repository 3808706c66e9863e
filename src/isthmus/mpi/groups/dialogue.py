"""Running a dialogue on a private communicator."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from mpi4py import MPI

from ...groups.agree import Refused
from ...groups.dialogue import Dialogue, ExchangeStep, PostStep, Step
from ..context.context import interrupted
from ..requests.native import finish, orphans
from ..waiting.errors import Stalled
from ..waiting.waiting import until
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
            error.in_call("group formation", "", comm.Get_rank(), "rank {}".format)
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


def _allgather(comm: Private, value: Any) -> list[Any]:
    """A value of each rank. mpi4py's own could be left only by another thread, which
    takes milliseconds where every core has a rank (Open MPI, 16 ranks)."""
    mine = MPI.pickle.dumps(value)
    sizes = np.empty(comm.size, np.int64)
    own = np.array([len(mine)])
    finish(comm.Iallgather(own, sizes), comm.limit, own, sizes)
    every = bytearray(int(sizes.sum()))
    finish(comm.Iallgatherv(mine, [every, sizes]), comm.limit, mine, every)
    ends = np.cumsum(sizes).tolist()
    found = [memoryview(every)[x:y] for x, y in pairwise([0, *ends])]
    return [MPI.pickle.loads(x) for x in found]


def _received(comm: Private, step: ExchangeStep | PostStep) -> list[Any]:
    if isinstance(step, ExchangeStep):
        return [_receive(comm, source, NAMED) for source in step.recvs]
    return [_receive(comm, MPI.ANY_SOURCE, POSTED) for _ in range(step.expect)]


def _perform(comm: Private, step: Step) -> list[Any]:
    """One step. Values are pickled; those between two ranks stay in their order.

    A posted value cannot be taken for one of an earlier call: it is sent only after its
    receiver has brought something into the call it belongs to.
    """
    if not isinstance(step, ExchangeStep | PostStep):
        return _allgather(comm, step.value)
    tag = NAMED if isinstance(step, ExchangeStep) else POSTED
    sent = [comm.isend(value, to, tag) for to, value in step.sends]
    try:
        received = _received(comm, step)
        if not until(lambda: MPI.Request.Testall(sent), comm.limit):
            assert comm.limit.seconds is not None
            raise Stalled(comm.limit.seconds, [to for to, _ in step.sends])
    except BaseException:
        orphans.append(sent)
        raise
    return received
