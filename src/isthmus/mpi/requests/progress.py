"""Progress of operations that no caller waits for.

A waiting rank advances its own operation, and now and then all operations of the
process: another rank may wait for their messages. Only operations not advanced for a
while are left to a thread. Each round of the thread takes the interpreter from the
callers, so the thread skips operations newer than the last round: a call with a `Wait`
right behind the start never meets the thread.
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

#: seconds between two rounds of the thread: after a round that advanced an operation,
#: and at most, where operations are under way
SECONDS_AFTER_PROGRESS, MOST_SECONDS_BETWEEN_ROUNDS = 50e-6, 1e-3
#: where there are only persistent requests, which MPI alone may start
SECONDS_BETWEEN_WATCHES = 1e-2
#: rounds without any operation before the thread sleeps until woken
IDLE_ROUNDS_BEFORE_SLEEP = 50

_log = logging.getLogger("isthmus")


class Watched(Protocol):
    """A persistent request, which MPI may start without calling any code of ours."""

    def begin_if_started(self) -> bool:
        """Begin the call if MPI alone has started the request; True if MPI has."""
        ...

    def finish(self) -> None:
        """Wait for the end of the call, if a call is under way."""


class ProgressEngine:
    """The operations under way in this process, and the thread for their progress."""

    def __init__(self) -> None:
        #: by serial number, since the address of a freed operation comes again
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
        self._was_started_by_mpi = False

    def add(self, operation: Operation) -> None:
        """Advance an operation until the handle is complete."""
        serial = next(self._serials)
        assert operation.handle is not None
        operation.handle.serial = serial
        self._active[serial] = operation
        if self._sleeps or not self._is_ready:
            self._wake_thread()

    def remove(self, serial: int) -> None:
        """Forget a complete operation, by the serial number of the handle."""
        self._active.pop(serial, None)

    def watch(self, request: Watched) -> int:
        """Begin the call of a request whenever MPI alone starts the request.

        Returns a serial number for `forget`; a request that is gone is not watched.
        """
        serial = next(self._serials)
        self._watched[serial] = request
        self._wake_thread()
        return serial

    def forget(self, serial: int) -> None:
        """Stop watching a request."""
        self._watched.pop(serial, None)

    @property
    def runs(self) -> bool:
        """Whether a thread advances operations: MPI must allow several threads."""
        return MPI.Query_thread() == MPI.THREAD_MULTIPLE

    @property
    def needs_other_threads(self) -> bool:
        """Whether a waiting caller must let other threads run: threads of the user, or
        the progress thread, which alone finds out whether MPI has started a request."""
        has_own = self._thread is not None
        if threading.active_count() > 1 + has_own:
            return True
        return has_own and len(self._watched) > 0

    def advance_others(self, waiting: Operation) -> None:
        """Advance all operations but the waiting caller's and those held by another
        thread."""
        for operation in self._operations():
            if operation is not waiting and not operation.is_held:
                _guarded(operation.advance)

    def finish(self, channel: Channel) -> None:
        """Wait for the end of all operations of a channel.

        Errors are kept in the operations: the user's own waits raise them.
        """
        for operation in self._operations():
            if operation.channel is channel:
                with suppress(Exception):
                    operation.wait()

    def _operations(self) -> list[Operation]:
        return list(self._active.values()) if self._active else []

    def _requests(self) -> list[Watched]:
        # a copy in one step, since other threads add requests meanwhile
        requests = [ref() for ref in self._watched.valuerefs()]
        return [request for request in requests if request is not None]

    # -- the thread

    def _wake_thread(self) -> None:
        with self._wake:
            if not self._is_ready:
                self._is_ready = True
                # MPI_Finalize deletes the attributes of MPI_COMM_SELF first; where
                # mpi4py calls MPI_Finalize, Python and the thread have ended before
                keyval = MPI.Comm.Create_keyval(delete_fn=self._finish_all)
                MPI.COMM_SELF.Set_attr(keyval, True)
                atexit.register(self.stop)
            if self._thread is None and self.runs:
                run = threading.Thread(target=self._run, name="isthmus", daemon=True)
                self._thread = run
                run.start()
            self._wake.notify()

    def _finish_all(self, *_: Any) -> None:
        """Finish all calls before MPI ends: other ranks may wait for our messages."""
        for request in self._requests():
            _guarded(request.begin_if_started)
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
        seconds_to_sleep, idle_rounds = MOST_SECONDS_BETWEEN_ROUNDS, 0
        last_polls: dict[int, int] = {}
        while not self._stops:
            time.sleep(seconds_to_sleep)
            was_useful, last_polls = self._advance_idle(last_polls)
            doubled_seconds = min(2 * seconds_to_sleep, self._longest_rest())
            seconds_to_sleep = SECONDS_AFTER_PROGRESS if was_useful else doubled_seconds
            idle_rounds = 0 if last_polls else idle_rounds + 1
            if idle_rounds > IDLE_ROUNDS_BEFORE_SLEEP and not len(self._watched):
                self._sleep()
                idle_rounds = 0

    def _advance_idle(self, last_polls: dict[int, int]) -> tuple[bool, dict[int, int]]:
        """Advance the operations that nobody has advanced since the last round.

        Takes and returns how often each operation was polled, by serial number, and
        returns whether any operation came further. Keeps no operation between two
        rounds, since an operation keeps the user's arrays alive.
        """
        were_started = [
            _guarded(request.begin_if_started) for request in self._requests()
        ]
        was_useful = any(were_started)
        self._was_started_by_mpi |= was_useful
        polls: dict[int, int] = {}
        for operation in self._operations():
            assert operation.handle is not None
            serial = operation.handle.serial
            is_idle = last_polls.get(serial) == operation.polls
            if is_idle and not operation.is_held:
                position = operation.position
                _guarded(operation.advance)
                was_useful |= operation.done or operation.position != position
            polls[serial] = operation.polls
        return was_useful, polls

    def _longest_rest(self) -> float:
        only_watches = not self._active and not self._was_started_by_mpi
        return SECONDS_BETWEEN_WATCHES if only_watches else MOST_SECONDS_BETWEEN_ROUNDS

    def _sleep(self) -> None:
        with self._wake:
            self._sleeps = True
            while not (self._active or len(self._watched) or self._stops):
                self._wake.wait()
            self._sleeps = False


def _guarded(act: Callable[[], Any]) -> Any:
    """The result of a call on an operation, or False after an error.

    The user's own wait raises the error of an operation. Here the error must not end
    the progress of other operations.
    """
    try:
        return act()
    except Exception as error:
        _log.debug("an operation failed", exc_info=error)
        return False


progress = ProgressEngine()
