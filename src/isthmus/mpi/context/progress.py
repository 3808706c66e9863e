"""The thread that advances calls which go on beside the caller."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections import deque
from contextlib import suppress
from functools import cached_property
from itertools import count
from typing import Any, Protocol, runtime_checkable

from mpi4py import MPI

EMPTY = [bytearray(1), 0, MPI.BYTE]
#: how long the thread rests between two looks, at least and at most, in seconds
REST = 20e-6, 1e-3
#: at most, while it only watches requests that nobody ever started by MPI alone: every
#: look takes time from who makes calls meanwhile
LONG_REST = 1e-2


class Active(Protocol):
    """A call under way."""

    owner: Any
    done: bool

    def advance(self) -> bool:
        """Do what can be done without waiting; whether that was something."""

    def finish(self) -> None:
        """Wait for the end of the call."""


@runtime_checkable
class Watched(Protocol):
    """A request that somebody may start without our knowing."""

    owner: Any

    def look(self) -> bool:
        """Begin the call if it was started, or advance it; whether that was needed."""

    def finish(self) -> None:
        """Wait for the end of the call, if it is under way."""


class _Driver:
    """One thread per process, asleep while it has nothing to look after."""

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._active: list[Active] = []
        self._idle: list[weakref.ref[Watched]] = []
        #: requests under way, which live on whether or not the user keeps them
        self.running: dict[int, Watched] = {}
        self._thread: threading.Thread | None = None
        self._stop = False
        #: whether somebody started a request by MPI alone
        self.started_elsewhere = False
        #: whether it rests for so long that it must be woken
        self.rests = False
        #: what belongs to calls that failed, whose messages may still be under way:
        #: their memory must stay
        self.failed: list[Any] = []
        self._tags = count()
        self._tags_back: deque[int] = deque()
        self._own: MPI.Intracomm | None = None

    @property
    def own(self) -> MPI.Intracomm:
        """A private communicator of this process alone, for the handles."""
        if self._own is None:
            with self._wake:
                self._own = self._own or MPI.COMM_SELF.Dup()
        return self._own

    @cached_property
    def tag_limit(self) -> int:
        """The largest tag of a handle."""
        return int(self.own.Get_attr(MPI.TAG_UB) or 32767)

    def tag(self) -> int:
        """A tag for a handle: its own until it is given back."""
        try:
            return self._tags_back.popleft()
        except IndexError:
            found = next(self._tags)
        if found > self.tag_limit:
            raise RuntimeError(
                f"no tag is left for a request: {self.tag_limit + 1} requests of this "
                "process live; complete or free some"
            )
        return found

    def give_back(self, tag: int) -> None:
        """The handle of a tag is no more."""
        self._tags_back.append(tag)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="isthmus", daemon=True
            )
            self._thread.start()
            # MPI deletes this first when it ends; where mpi4py ends it, Python is over
            MPI.COMM_SELF.Set_attr(MPI.Comm.Create_keyval(delete_fn=self._end), True)
            atexit.register(self.stop)
        self._wake.notify()

    def is_busy(self) -> bool:
        """Whether calls are under way that the thread may have to advance."""
        return bool(self._active or self.running)

    def add(self, operation: Active) -> None:
        """Look after an operation until it is done."""
        with self._wake:
            self._active.append(operation)
            self._start()

    def finish(self, owner: Any) -> None:
        """Wait for the end of all operations of one owner."""
        for x in self._known():
            if x.owner is owner:
                with suppress(Exception):  # raised where the user waits for it
                    x.finish()

    def _known(self) -> list[Active | Watched]:
        with self._wake:
            idle = [x() for x in self._idle]
            return [*self._active, *(x for x in idle if x is not None)]

    def _end(self, *_: Any) -> None:
        """MPI is about to end: wait for the end of all operations, and of the thread.

        Others may wait for what this process has yet to send.
        """
        for x in self._known():
            with suppress(Exception):
                if isinstance(x, Watched):
                    x.look()
                x.finish()
        self.stop()

    def watch(self, request: Watched) -> None:
        """Look whether somebody started the request in MPI's own way."""
        with self._wake:
            self._idle.append(weakref.ref(request))
            self._start()

    def forget(self, request: Watched) -> None:
        """Stop watching a request."""
        with self._wake:
            self._idle = [x for x in self._idle if x() is not request]

    def stop(self) -> None:
        """End the thread, before MPI ends."""
        with self._wake:
            self._stop = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        rest = REST[0]
        while True:
            with self._wake:
                while not (self._active or self._idle or self._stop):
                    self._wake.wait()
                if self._stop:
                    return
                active, idle = list(self._active), [x() for x in self._idle]
                self._idle = [x for x in self._idle if x() is not None]
            moved = sum(x is not None and x.look() for x in idle)
            moved += sum(x.advance() for x in active)
            busy = bool(active) or self.is_busy() or self.started_elsewhere
            del idle, active  # which keep buffers alive
            with self._wake:
                self._active = [x for x in self._active if not x.done]
            most = REST[1] if busy else LONG_REST
            rest = REST[0] if moved else min(2 * rest, most)
            self._rest(rest)

    def _rest(self, seconds: float) -> None:
        if seconds <= REST[1]:
            time.sleep(seconds)
            return
        with self._wake:
            self.rests = True
            self._wake.wait(seconds)
            self.rests = False

    def wake(self) -> None:
        """End a long rest."""
        with self._wake:
            self._wake.notify()


driver = _Driver()
