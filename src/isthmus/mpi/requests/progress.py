"""Whoever brings operations forward that nobody waits for.

A rank that waits advances its operation itself, and now and then all others of the
process: others may wait for what those have yet to send. Only operations that nobody
has advanced for a while are left to one thread. It touches nothing that was not there
at its look before, so a call that is waited for at once never meets it: each look takes
the interpreter from whoever makes calls meanwhile.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from mpi4py import MPI

if TYPE_CHECKING:
    from ..context.channel import Channel
    from ..plan.operation import Operation

#: seconds between two looks of the thread: after a look that brought something forward,
#: at most where operations are under way, and where there are only persistent requests,
#: which MPI alone may start
ALERT_SECONDS, REST_SECONDS, WATCH_SECONDS = 50e-6, 1e-3, 1e-2
#: looks at nothing at all before the thread sleeps until it is woken
IDLE_LOOKS = 50

_log = logging.getLogger("isthmus")


class Watched(Protocol):
    """A persistent request, which MPI may start without our knowing."""

    def look(self) -> bool:
        """Begin its call if it was started by MPI; whether that was so."""

    def finish(self) -> None:
        """Wait for the end of its call, if it is under way."""


class Progress:
    """The operations under way in this process, and the thread that advances them."""

    def __init__(self) -> None:
        #: by serial numbers, as an address comes again
        self._active: dict[int, Operation] = {}
        self._serials = count()
        self._watched: weakref.WeakValueDictionary[int, Any] = (
            weakref.WeakValueDictionary()
        )
        self._thread: threading.Thread | None = None
        self._wake = threading.Condition()
        self._sleeps = self._stops = False
        self._is_ready = False
        #: whether MPI alone has started a persistent request before
        self._starts_elsewhere = False

    def add(self, operation: Operation) -> None:
        """Know an operation until its handle is complete."""
        serial = next(self._serials)
        assert operation.handle is not None
        operation.handle.serial = serial
        self._active[serial] = operation
        if self._sleeps or not self._is_ready:
            self._rouse()

    def remove(self, serial: int) -> None:
        """An operation is over, by the serial number that its handle has."""
        self._active.pop(serial, None)

    def watch(self, request: Watched) -> int:
        """Look whether MPI alone starts a request, until it is forgotten or gone."""
        serial = next(self._serials)
        self._watched[serial] = request
        self._rouse()
        return serial

    def forget(self, serial: int) -> None:
        """Watch a request no more."""
        self._watched.pop(serial, None)

    @property
    def runs(self) -> bool:
        """Whether a thread advances operations: MPI must allow several threads."""
        return MPI.Query_thread() == MPI.THREAD_MULTIPLE

    @property
    def needs_other_threads(self) -> bool:
        """Whether threads of the user may have something to do, or ours has what a
        caller that waits does not do: to look whether MPI has started a request."""
        has_own = self._thread is not None
        if threading.active_count() > 1 + has_own:
            return True
        return has_own and len(self._watched) > 0

    def advance_others(self, waiting: Operation) -> None:
        """Advance all operations but one whose caller waits, as far as nobody else
        does."""
        for operation in self._operations():
            if operation is not waiting and not operation.is_held:
                _guarded(operation.advance)

    def finish(self, channel: Channel) -> None:
        """Wait for the end of all operations of a channel; what they raise is raised
        again where the user waits for them."""
        for operation in self._operations():
            if operation.channel is channel:
                with suppress(Exception):
                    operation.wait()

    def _operations(self) -> list[Operation]:
        return list(self._active.values()) if self._active else []

    def _requests(self) -> list[Watched]:
        # a copy in one step: other threads make requests while this one looks at them
        requests = [ref() for ref in self._watched.valuerefs()]
        return [request for request in requests if request is not None]

    # -- the thread

    def _rouse(self) -> None:
        with self._wake:
            if not self._is_ready:
                self._is_ready = True
                # MPI deletes this first when it ends; where mpi4py ends MPI, Python is
                # over, and so is the thread
                keyval = MPI.Comm.Create_keyval(delete_fn=self._finish_all)
                MPI.COMM_SELF.Set_attr(keyval, True)
                atexit.register(self.stop)
            if self._thread is None and self.runs:
                run = threading.Thread(target=self._run, name="isthmus", daemon=True)
                self._thread = run
                run.start()
            self._wake.notify()

    def _finish_all(self, *_: Any) -> None:
        """End what is under way before MPI does: others may wait for our messages."""
        for request in self._requests():
            _guarded(request.look)
            _guarded(request.finish)
        for operation in self._operations():
            _guarded(operation.wait)
        self.stop()

    def stop(self) -> None:
        """End the thread, before MPI ends."""
        with self._wake:
            self._stops = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        rest, idle = REST_SECONDS, 0
        seen: dict[int, int] = {}
        while not self._stops:
            time.sleep(rest)
            was_useful, seen = self._look(seen)
            rest = ALERT_SECONDS if was_useful else min(2 * rest, self._longest_rest())
            idle = 0 if seen else idle + 1
            if idle > IDLE_LOOKS and not len(self._watched):
                self._sleep()
                idle = 0

    def _look(self, seen: dict[int, int]) -> tuple[bool, dict[int, int]]:
        """Advance the operations that nobody has advanced since the look before.

        Returns whether that was of use, and how far each operation is now. No operation
        is held between two looks, so that the user's arrays are not kept alive by it.
        """
        began = [_guarded(request.look) for request in self._requests()]
        self._starts_elsewhere |= any(began)
        was_useful = any(began)
        looks: dict[int, int] = {}
        for operation in self._operations():
            assert operation.handle is not None
            serial = operation.handle.serial
            if seen.get(serial) == operation.looks and not operation.is_held:
                before = operation.position
                _guarded(operation.advance)
                was_useful |= operation.done or operation.position != before
            looks[serial] = operation.looks
        return was_useful, looks

    def _longest_rest(self) -> float:
        only_watches = not self._active and not self._starts_elsewhere
        return WATCH_SECONDS if only_watches else REST_SECONDS

    def _sleep(self) -> None:
        with self._wake:
            self._sleeps = True
            while not (self._active or len(self._watched) or self._stops):
                self._wake.wait()
            self._sleeps = False


def _guarded(act: Callable[[], Any]) -> Any:
    """The result of an act. What an operation raises is raised again where the user
    waits for it, and must not end whoever brings others forward."""
    try:
        return act()
    except Exception as error:
        _log.debug("an operation failed", exc_info=error)
        return False


progress = Progress()
