"""The driver that runs a dialogue on a private communicator."""

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
from .private import PrivateComm

Result = TypeVar("Result")

#: the tags of values from a named source, and of posted values, since a receive from
#: MPI_ANY_SOURCE must match posted values only
NAMED_TAG, POSTED_TAG = 0, 1


def run(comm: PrivateComm, dialogue: Dialogue[Result]) -> Result:
    """Perform the steps of a dialogue until its end, and return its result.

    After an exception in the middle of a dialogue the communicator is refused, because
    a later dialogue could receive messages of the interrupted one. An error that all
    ranks raise together, or an error before the first message, does no harm.
    """
    if comm.refused:
        raise RuntimeError(comm.refused)
    received: Any = None  # the first `send` to a generator must be None
    try:
        while True:
            try:
                step = dialogue.send(received)
            except StopIteration as end:
                result: Result = end.value
                return result
            received = _perform(comm, step)
    except BaseException as error:
        is_agreed = isinstance(error, Refused) or isinstance(error.__cause__, Refused)
        if isinstance(error, Stalled):
            error.in_call("group formation", "", comm.Get_rank(), "rank {}".format)
        has_sent = received is not None or isinstance(error, Stalled)
        if has_sent and not is_agreed:
            comm.refused = interrupted(f"rank {comm.Get_rank()}", error)
        raise


def _perform(comm: PrivateComm, step: Step) -> list[Any]:
    """Perform a step, and return the received values. Values are pickled; the values
    between two ranks stay in their order.

    A posted value cannot be received in an earlier dialogue, since its sender posts
    only after the receiver has contributed a value to the right dialogue.
    """
    if not isinstance(step, ExchangeStep | PostStep):
        return _allgather(comm, step.value)
    tag = NAMED_TAG if isinstance(step, ExchangeStep) else POSTED_TAG
    requests = [comm.isend(value, target, tag) for target, value in step.sends]
    try:
        values = _receive_all(comm, step)
        if not until(lambda: MPI.Request.Testall(requests), comm.limit):
            assert comm.limit.seconds is not None
            raise Stalled(comm.limit.seconds, [target for target, _ in step.sends])
    except BaseException:
        orphans.append(requests)
        raise
    return values


def _receive_all(comm: PrivateComm, step: ExchangeStep | PostStep) -> list[Any]:
    if isinstance(step, ExchangeStep):
        return [_receive(comm, source, NAMED_TAG) for source in step.recvs]
    return [_receive(comm, MPI.ANY_SOURCE, POSTED_TAG) for _ in range(step.expect)]


def _receive(comm: PrivateComm, source: int, tag: int) -> Any:
    """Receive a value, within the limit of the communicator."""
    if not until(partial(comm.Iprobe, source, tag), comm.limit):
        assert comm.limit.seconds is not None
        missing = [] if source == MPI.ANY_SOURCE else [source]
        raise Stalled(comm.limit.seconds, missing)
    return comm.recv(None, source, tag)


def _allgather(comm: PrivateComm, value: Any) -> list[Any]:
    """The values of all ranks.

    Not by mpi4py's own allgather: to interrupt it at the limit takes another thread,
    and so milliseconds where every core has a rank (Open MPI, 16 ranks).
    """
    own = MPI.pickle.dumps(value)
    lengths = np.empty(comm.size, np.int64)
    own_length = np.array([len(own)])
    finish(comm.Iallgather(own_length, lengths), comm.limit, own_length, lengths)
    pickles = bytearray(int(lengths.sum()))
    finish(comm.Iallgatherv(own, [pickles, lengths]), comm.limit, own, pickles)
    ends = np.cumsum(lengths).tolist()
    return [
        MPI.pickle.loads(memoryview(pickles)[start:stop])
        for start, stop in pairwise([0, *ends])
    ]
