"""What stands for a call in MPI, so that its request is right in any function of MPI.

A call of several rounds is no request that MPI knows: somebody has to start each round
when the one before is complete. Users still need a request that MPI's own functions
take, `Waitall` and `Startall` among them.

The request of a nonblocking call is a generalized request. MPI asks it how the call
went when it completes it, in any function: so a call that has failed raises in
`Waitall` and its kin too. Those are persistent in no version of MPI. So the request of
a persistent call is a synchronous send from this process to itself, received when the
call is over: MPI may start it without our knowing, in `Startall`, and a send can be
probed for. There a failure cannot be told by MPI: the next call on the communicator
raises it.
"""

from __future__ import annotations

import threading
from collections import deque
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING

from mpi4py import MPI

from .progress import progress

if TYPE_CHECKING:
    from ..plan.operation import Operation

_EMPTY = [bytearray(1), 0, MPI.BYTE]
_NOBODY_ADVANCES = (
    "MPI was started without MPI_THREAD_MULTIPLE: a nonblocking call of isthmus goes "
    "forward in the Wait and Test of its own request, not in this function of MPI"
)


class _Tags:
    """Tags of persistent handles on a communicator of this process alone."""

    def __init__(self) -> None:
        self._numbers, self._free = count(), deque[int]()
        self._lock = threading.Lock()

    @cached_property
    def comm(self) -> MPI.Intracomm:
        """A private communicator of this process alone."""
        with self._lock:
            comm = MPI.COMM_SELF.Dup()
            comm.Set_errhandler(MPI.ERRORS_RETURN)
            return comm

    @cached_property
    def most(self) -> int:
        """The largest tag."""
        return int(self.comm.Get_attr(MPI.TAG_UB) or 32767)

    def take(self) -> int:
        """A tag that no other handle has."""
        try:
            return self._free.popleft()
        except IndexError:
            tag = next(self._numbers)
        if tag > self.most:
            raise RuntimeError(
                f"no tag is left for a request: {self.most + 1} requests of this "
                "process live; complete or free some"
            )
        return tag

    def give_back(self, tag: int) -> None:
        """A handle is no more."""
        self._free.append(tag)


tags = _Tags()


class Handle:
    """The handle of one nonblocking call: a generalized request of MPI."""

    __slots__ = ("_error", "_is_left", "_is_over", "_request", "serial")

    def __init__(self) -> None:
        #: of the operation, among those that the progress thread knows
        self.serial = -1
        #: whether the call is over, and what it raised
        self._is_over = False
        self._error: BaseException | None = None
        #: whether the request is complete in MPI although the call goes on
        self._is_left = False
        self._request = MPI.Grequest.Start(self._say, None, None)

    def request(self) -> MPI.Request:
        """The request that the user gets."""
        return self._request

    def _say(self, status: MPI.Status) -> None:
        """Raise what is wrong with the call, where MPI completes its request."""
        if not self._is_over:
            raise RuntimeError(_NOBODY_ADVANCES)
        if self._error is not None:
            raise self._error

    def leave(self) -> None:
        """Let MPI's own functions raise an error at once: where no thread may advance
        the call, they would wait for ever."""
        self._is_left = True
        self._request.Complete()

    def complete(self, operation: Operation) -> None:
        """The call is over, well or not."""
        progress.remove(self.serial)
        self._is_over, self._error = True, operation.error
        if not self._is_left:
            self._request.Complete()

    def forgive(self) -> None:
        """Let MPI complete the request without an error: the caller raises it."""
        self._is_over, self._error = True, None


class PersistentHandle:
    """The handle of a persistent call, started any number of times."""

    __slots__ = ("_tag", "serial")

    def __init__(self) -> None:
        self._tag, self.serial = tags.take(), -1

    def request(self) -> MPI.Prequest:
        """The synchronous send that the user gets."""
        return MPI.Prequest(tags.comm.Ssend_init(_EMPTY, 0, self._tag))

    def is_open(self) -> bool:
        """Whether it was started, by whomever, and the call is not over."""
        return tags.comm.Iprobe(0, self._tag)

    def complete(self, operation: Operation) -> None:
        """The call is over, well or not."""
        progress.remove(self.serial)
        tags.comm.Recv(_EMPTY, 0, self._tag)

    def free(self) -> None:
        """Give the tag back, unless a request that is started and freed has left its
        message behind: a later handle would take that for its own."""
        if not self.is_open():
            tags.give_back(self._tag)
