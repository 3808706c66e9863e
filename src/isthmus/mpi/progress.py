"""Operations that go on while the caller does something else.

Each has a true MPI request: a synchronous send to oneself that is received only when
the operation is done. So it is right in any call of MPI that takes requests, alone or
among others, and a persistent one may be started by any of MPI's ways to start.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

from mpi4py import MPI

Steps = Iterator[Sequence[MPI.Request]]

_log = logging.getLogger("isthmus")
_EMPTY = [bytearray(1), 0, MPI.BYTE]
#: how long the thread rests between two looks, at least and at most, in seconds
REST = 20e-6, 1e-3


class Operation:
    """A running call: advanced by whoever has time, the caller or the thread."""

    def __init__(self, steps: Steps, tag: int, owner: Any) -> None:
        self.owner = owner
        self._steps = steps
        self._tag = tag
        self._lock = threading.Lock()
        self._open: Sequence[MPI.Request] = ()
        self.done = False
        self.error: BaseException | None = None

    def _go_on(self, complete: Callable[[Sequence[MPI.Request]], bool]) -> bool:
        """Go from round to round as long as each is complete; True if any was.

        At the end, or when something fails, the handle is completed.
        """
        moved = False
        try:
            while not self.done and complete(self._open):
                self._open = next(self._steps)
                moved = True
            return moved
        except StopIteration:
            pass
        except BaseException as error:
            _log.exception("a nonblocking operation failed")
            self.error = error
        driver.own.Recv(_EMPTY, 0, self._tag)
        self.done = True
        return True

    def advance(self) -> bool:
        """Do what can be done without waiting; True if that was something."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            return self._go_on(MPI.Request.Testall)
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
            self._go_on(MPI.Request.Waitall)
        self.check()


class _Driver:
    """One thread per process, asleep while it has nothing to look after."""

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._active: list[Operation] = []
        self._idle: list[weakref.ref[Persistent]] = []
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
            active = [x for x in self._active if x.owner is owner]
        for operation in active:
            operation.finish()

    def watch(self, request: Persistent) -> None:
        """Look whether somebody started the request in MPI's own way."""
        with self._wake:
            self._idle.append(weakref.ref(request))
            self._start()

    def forget(self, request: Persistent) -> None:
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
            noticed = [x for x in idle if x is not None and x.noticed()]
            del idle
            moved = [operation for operation in active if operation.advance()]
            with self._wake:
                self._active = [x for x in self._active if not x.done]
            rest = REST[0] if noticed or moved else min(2 * rest, REST[1])
            time.sleep(rest)


driver = _Driver()


class Request(MPI.Request):
    """A nonblocking call under way: an ordinary MPI request."""

    _operation: Operation | None
    _keep: Any

    def _finish(self) -> None:
        if self._operation is not None:
            self._operation.finish()

    def _advance(self) -> None:
        if self._operation is not None:
            self._operation.test()

    def Wait(self, status: MPI.Status | None = None) -> Any:
        """Wait for the call to complete."""
        self._finish()
        return super().Wait(status)

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Test whether the call is complete."""
        self._advance()
        return super().Test(status)

    def wait(self, status: MPI.Status | None = None) -> Any:
        """Wait for the call to complete."""
        self._finish()
        return super().wait(status)

    def test(self, status: MPI.Status | None = None) -> tuple[bool, Any]:
        """Test whether the call is complete."""
        self._advance()
        return super().test(status)


def request(native: MPI.Request, operation: Operation | None, keep: Any) -> Request:
    """An MPI request that drives an operation, and keeps its buffers alive."""
    result = Request(native)
    result._operation, result._keep = operation, keep
    return result


def start(steps: Steps, owner: Any, keep: Any) -> Request:
    """Begin an operation of an owner and give its request."""
    tag = driver.tag()
    handle = driver.own.Issend(_EMPTY, 0, tag)
    operation = Operation(steps, tag, owner)
    operation.advance()
    if not operation.done:
        driver.add(operation)
    return request(handle, operation, keep)


class _Kept(MPI.Prequest):
    """A persistent request of the MPI library that keeps its buffers alive."""

    _keep: Any


def kept(native: MPI.Prequest, keep: Any) -> MPI.Prequest:
    """The request, with what must live as long as it does."""
    result = _Kept(native)
    result._keep = keep
    return result


class Persistent(MPI.Prequest):
    """A persistent call: an ordinary persistent MPI request."""

    _make: Callable[[], Steps]
    _free: Callable[[], None]
    _tag: int
    _operation: Operation | None
    _owner: Any
    _keep: Any
    _lock: threading.Lock

    def Start(self) -> None:
        """Start the call."""
        with self._lock:
            super().Start()
            self._begin()

    def _begin(self) -> None:
        self._operation = Operation(self._make(), self._tag, self._owner)
        self._operation.advance()
        if not self._operation.done:
            driver.add(self._operation)

    def noticed(self) -> bool:
        """Begin the call if its handle was started by other means than `Start`."""
        with self._lock:
            running = self._operation is not None and not self._operation.done
            if running or not driver.own.Iprobe(0, self._tag):
                return False
            self._begin()
            return True

    def Wait(self, status: MPI.Status | None = None) -> Any:
        """Wait for the call to complete."""
        if self._operation is not None:
            self._operation.finish()
        return super().Wait(status)

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Test whether the call is complete."""
        if self._operation is not None:
            self._operation.test()
        return super().Test(status)

    def Free(self) -> None:
        """Free the request and what was made for it."""
        driver.forget(self)
        self._free()
        super().Free()


def persistent(
    make: Callable[[], Steps], free: Callable[[], None], owner: Any, keep: Any
) -> Persistent:
    """A persistent request whose every start runs the steps once."""
    tag = 16384 + next(_persistent_tags) % 16384
    result = Persistent(driver.own.Ssend_init(_EMPTY, 0, tag))
    result._make, result._free, result._tag = make, free, tag
    result._owner = owner
    result._operation, result._keep, result._lock = None, keep, threading.Lock()
    driver.watch(result)
    return result


_persistent_tags = count()
