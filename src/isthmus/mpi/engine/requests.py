"""The requests of calls that go on beside the caller: true requests of MPI.

A call's handle is a synchronous send to oneself, received only when the call is done.
So it is right in any call of MPI that takes requests, alone or among others, and a
persistent one may be started by any of MPI's ways to start.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from mpi4py import MPI

from ..context.progress import EMPTY, driver
from .operation import Operation, Repeated, Steps
from .plan import Plan

_start, _wait = MPI.Prequest.Start, MPI.Prequest.Wait


class Request(MPI.Request):
    """A nonblocking call under way: an ordinary MPI request."""

    _operation: Operation

    def Wait(self, status: MPI.Status | None = None) -> Any:
        """Wait for the call to complete."""
        self._operation.finish()
        return super().Wait(status)

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Test whether the call is complete."""
        self._operation.test()
        return super().Test(status)

    def wait(self, status: MPI.Status | None = None) -> Any:
        """Wait for the call to complete."""
        self._operation.finish()
        return super().wait(status)

    def test(self, status: MPI.Status | None = None) -> tuple[bool, Any]:
        """Test whether the call is complete."""
        self._operation.test()
        return super().test(status)


def start(
    steps: Steps, owner: Any, keep: Any, what: tuple[str, str] = ("", "")
) -> Request:
    """Begin an operation of an owner and give its request."""
    tag = driver.tag()
    handle = driver.own.Issend(EMPTY, 0, tag)
    operation = Operation(steps, partial(_end, tag), owner, keep, what)
    operation.advance()
    if not operation.done:
        driver.add(operation)
    result = Request(handle)
    result._operation = operation
    return result


def _end(tag: int) -> None:
    """Complete a handle."""
    driver.own.Recv(EMPTY, 0, tag)
    driver.give_back(tag)


class Persistent(MPI.Prequest):
    """A persistent call: an ordinary persistent MPI request."""

    owner: Any
    _call: Repeated
    _tag: int
    #: receives what the handle sends
    _receive: MPI.Prequest
    _lock: threading.Lock

    def Start(self) -> None:
        """Start the call."""
        self.owner.check_usable()
        with self._lock:
            if self._call.broken:
                self._call.check()
            _start(self)
            self._begin()

    def _begin(self) -> None:
        self._call.begin()
        if not self._call.done:
            driver.running[id(self)] = self
            if driver.rests:
                driver.wake()

    def look(self) -> bool:
        """Advance the call; begin it if its handle was started by other means than
        `Start`."""
        with self._lock:
            if not self:  # it is free
                return False
            if not self._call.done:
                moved = self._call.advance()
                self._forget_if_done()
                return moved
            if self._call.broken or not driver.own.Iprobe(0, self._tag):
                return False
            driver.started_elsewhere = True
            self._begin()
            return True

    def finish(self) -> None:
        """Wait for the end of the call, if it is under way."""
        self._call.finish()
        driver.running.pop(id(self), None)

    def _forget_if_done(self) -> None:
        """Live no longer than the user keeps this, once the call is over."""
        if self._call.done:
            driver.running.pop(id(self), None)

    def Wait(self, status: MPI.Status | None = None) -> Any:
        """Wait for the call to complete."""
        self.finish()
        return _wait(self, status)

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Test whether the call is complete."""
        self._call.test()
        self._forget_if_done()
        return super().Test(status)

    def Free(self) -> None:
        """Free the request and what was made for it."""
        driver.forget(self)
        with self._lock:  # the thread may look at it now
            self._call.free()
            self._receive.Free()
            super().Free()
            if not driver.own.Iprobe(0, self._tag):  # else it is started, not over
                driver.give_back(self._tag)


def _run(request: MPI.Prequest) -> None:
    request.Start()
    request.Wait()


def persistent(
    plans: Sequence[Plan], owner: Any, keep: Any, what: tuple[str, str] = ("", "")
) -> Persistent:
    """A persistent request whose every start runs a plan once, one after the other."""
    tag = driver.tag()
    result = Persistent(driver.own.Ssend_init(EMPTY, 0, tag))
    result._receive = driver.own.Recv_init(EMPTY, 0, tag)
    end = partial(_run, result._receive)
    result._call = Repeated(plans, end, owner, keep, what)
    result._tag, result.owner = tag, owner
    result._lock = threading.Lock()
    driver.watch(result)
    return result
