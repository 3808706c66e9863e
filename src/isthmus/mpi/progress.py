"""Operations that go on while the caller does something else, and who advances them."""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Protocol

from mpi4py import MPI

from .check import MismatchError
from .plan import Plan

Steps = Iterator[Sequence[MPI.Request]]

_log = logging.getLogger("isthmus")
EMPTY = [bytearray(1), 0, MPI.BYTE]
#: how long the thread rests between two looks, at least and at most, in seconds
REST = 20e-6, 1e-3


class Watched(Protocol):
    """A request that somebody may start without our knowing."""

    owner: Any

    def look(self) -> bool:
        """Begin the call if it was started, or advance it; whether that was needed."""

    def finish(self) -> None:
        """Wait for the end of the call, if it is under way."""


class Operation:
    """A running call: advanced by whoever has time, the caller or the thread."""

    def __init__(self, steps: Steps, end: Callable[[], Any], owner: Any) -> None:
        """`end` completes the handle."""
        self.owner = owner
        self._steps, self._end = steps, end
        self._lock = threading.Lock()
        #: what the next round waits for; None at the end
        self._open: Sequence[MPI.Request] | None = ()
        self.done = False
        self.error: BaseException | None = None

    def _go(self, on: Callable[[], bool]) -> None:
        """Go on; at the end, or when something fails, the handle is completed."""
        try:
            over = on()
        except BaseException as error:
            _log.exception("a nonblocking operation failed")
            self.error, over = error, True
            if not isinstance(error, MismatchError):  # which all ranks raise
                self.owner.refuse(self.owner.number, error)
        if over:
            self._end()
        self.done = over

    def _wait(self) -> bool:
        """Go on to the end."""
        while self._open is not None:
            MPI.Request.Waitall(self._open)
            self._open = next(self._steps, None)
        return True

    def _test(self) -> bool:
        """Go on as far as possible without waiting; whether that is the end."""
        while self._open is not None and MPI.Request.Testall(self._open):
            self._open = next(self._steps, None)
        return self._open is None

    def advance(self) -> bool:
        """Do what can be done without waiting; True if that was something."""
        if self.done or not self._lock.acquire(blocking=False):
            return False
        try:
            before = self._open
            if not self.done:
                self._go(self._test)
            return self.done or self._open is not before
        finally:
            self._lock.release()

    def check(self) -> None:
        """Raise what went wrong."""
        if self.error is not None:
            raise self.error

    def test(self) -> None:
        """Do what can be done without waiting; raise what went wrong."""
        self.advance()
        self.check()

    def finish(self) -> None:
        """Wait for the end; raise what went wrong."""
        with self._lock:
            if not self.done:
                self._go(self._wait)
        self.check()


class Repeated(Operation):
    """A call that is made any number of times: by who waits for it in plain calls one
    after the other, as long as nobody had to go on without waiting."""

    def __init__(self, plan: Plan, end: Callable[[], Any], owner: Any) -> None:
        super().__init__(iter(()), end, owner)
        self.plan, self._plain = plan, True
        self._first, self._rest = plan.first, plan.rest
        self.done = True

    def begin(self) -> None:
        """Begin the first round, while nobody else knows that it is made."""
        self.error, self._plain = None, True
        self._go(self._begin)

    def _begin(self) -> bool:
        for call in self._first:
            call()
        return not self._rest

    def _wait(self) -> bool:
        if not self._plain:
            return super()._wait()
        for call in self._rest:
            call()
        return True

    def _test(self) -> bool:
        if self._plain:
            self._plain, self._steps = False, self.plan.rounds()
            self._open = next(self._steps, None)
        return super()._test()


class _Driver:
    """One thread per process, asleep while it has nothing to look after."""

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._active: list[Operation] = []
        self._idle: list[weakref.ref[Watched]] = []
        #: requests under way, which live on whether or not the user keeps them
        self.running: dict[int, Watched] = {}
        self._thread: threading.Thread | None = None
        self._stop = False
        self._tags = count()
        self._own: MPI.Intracomm | None = None

    @property
    def own(self) -> MPI.Intracomm:
        """A private communicator of this process alone, for the handles."""
        if self._own is None:
            with self._wake:
                self._own = self._own or MPI.COMM_SELF.Dup()
        return self._own

    def tag(self) -> int:
        """A tag for a handle."""
        return next(self._tags) % 16384

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="isthmus", daemon=True
            )
            self._thread.start()
            atexit.register(self.stop)
        self._wake.notify()

    def add(self, operation: Operation) -> None:
        """Look after an operation until it is done."""
        with self._wake:
            self._active.append(operation)
            self._start()

    def finish(self, owner: Any) -> None:
        """Wait for the end of all operations of one owner."""
        with self._wake:
            found = [*self._active, *(x() for x in self._idle)]
        for x in found:
            if x is not None and x.owner is owner:
                x.finish()

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
            moved = [x for x in idle if x is not None and x.look()]
            del idle
            going = [operation for operation in active if operation.advance()]
            with self._wake:
                self._active = [x for x in self._active if not x.done]
            rest = REST[0] if moved or going else min(2 * rest, REST[1])
            time.sleep(rest)


driver = _Driver()
