"""Handles: the MPI requests by which MPI's own functions know a call of isthmus.

A call of several rounds is no request of MPI: somebody has to start each round when the
round before is complete. Users still need a request that MPI's own functions take,
`Waitall` and `Startall` among them.

The request of a nonblocking call is a generalized request. MPI calls a function of ours
to complete a generalized request, so a failed call raises in `Waitall` too. No version
of MPI has persistent generalized requests. So the request of a persistent call is a
synchronous send from this process to itself, received when the call is over: `Startall`
starts the send without calling any code of ours, but the message can be probed for. MPI
has no way to report the failure of such a call: the next call on the communicator
raises the error.
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
        """A duplicate of MPI_COMM_SELF, for messages of this process to itself."""
        with self._lock:
            comm = MPI.COMM_SELF.Dup()
            comm.Set_errhandler(MPI.ERRORS_RETURN)
            return comm

    @cached_property
    def largest(self) -> int:
        """The largest tag of MPI."""
        return int(self.comm.Get_attr(MPI.TAG_UB) or 32767)

    def take(self) -> int:
        """A tag for a new handle, different from those of all live handles."""
        try:
            return self._free.popleft()
        except IndexError:
            tag = next(self._numbers)
        if tag > self.largest:
            raise RuntimeError(
                f"no tag is left for a request: {self.largest + 1} requests of this "
                "process live; complete or free some"
            )
        return tag

    def give_back(self, tag: int) -> None:
        """Free the tag of a handle for later handles."""
        self._free.append(tag)


tags = _Tags()


class Handle:
    """The handle of one nonblocking call: a generalized request of MPI."""

    __slots__ = ("_error", "_is_complete_early", "_is_over", "_request", "serial")

    def __init__(self) -> None:
        #: serial number of the operation in the progress thread; -1 if unknown there
        self.serial = -1
        #: whether the call is over, and the error that it raised
        self._is_over = False
        self._error: BaseException | None = None
        #: whether the request was completed in MPI before the call is over
        self._is_complete_early = False
        self._request = MPI.Grequest.Start(self._query, None, None)

    def request(self) -> MPI.Request:
        """The generalized request, for the user."""
        return self._request

    def _query(self, status: MPI.Status) -> None:
        """Raise the error of the call; MPI calls this function to complete a request
        (`query_fn`)."""
        if not self._is_over:
            raise RuntimeError(_NOBODY_ADVANCES)
        if self._error is not None:
            raise self._error

    def complete_early(self) -> None:
        """Complete the request while the call goes on, since MPI's own functions
        would wait for ever for a call that no thread may advance.
        """
        self._is_complete_early = True
        self._request.Complete()

    def complete(self, operation: Operation) -> None:
        """Complete the request of a call that is over, with or without an error."""
        progress.remove(self.serial)
        self._is_over, self._error = True, operation.error
        if not self._is_complete_early:
            self._request.Complete()

    def drop_error(self) -> None:
        """Let MPI complete the request without an error, since `Wait` raises it."""
        self._is_over, self._error = True, None


class PersistentHandle:
    """The handle of a persistent call, started any number of times."""

    __slots__ = ("_tag", "serial")

    def __init__(self) -> None:
        self._tag, self.serial = tags.take(), -1

    def request(self) -> MPI.Prequest:
        """The persistent synchronous send, for the user."""
        return MPI.Prequest(tags.comm.Ssend_init(_EMPTY, 0, self._tag))

    def is_open(self) -> bool:
        """Whether the request was started, by the user or by MPI, and not completed."""
        return tags.comm.Iprobe(0, self._tag)

    def complete(self, operation: Operation) -> None:
        """Receive the message, which completes the request of a call that is over."""
        progress.remove(self.serial)
        tags.comm.Recv(_EMPTY, 0, self._tag)

    def free(self) -> None:
        """Give the tag back, unless a message is left.

        A request freed right after the start leaves the message behind, and a later
        handle with the tag would receive the message.
        """
        if not self.is_open():
            tags.give_back(self._tag)
