"""Blocking calls of the MPI library that a limit or a signal can end.

MPI has no way to leave a blocking collective, and a nonblocking one does not match it:
a process with a limit and one without must make the same call. So another thread makes
the call, and the caller waits for that thread, as long as the limit says. A call whose
caller has gone goes on in its thread, to whose end nobody waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from mpi4py import MPI

from .errors import Stalled
from .waiting import Limit

Value = TypeVar("Value")


class _Worker:
    """A thread that makes one call after the other, until one is its last."""

    def __init__(self) -> None:
        self._has_call, self._is_over = threading.Semaphore(0), threading.Semaphore(0)
        self._call: Callable[[], Any] | None = None
        self._result: Any = None
        self._error: BaseException | None = None
        #: whether the thread ends with the call that it makes
        self.is_last = False
        threading.Thread(target=self._run, name="isthmus-call", daemon=True).start()

    def begin(self, call: Callable[[], Any]) -> None:
        """Make a call."""
        self._call = call
        self._has_call.release()

    def is_over(self, seconds: float | None) -> bool:
        """Whether the call is over before some seconds have passed."""
        return self._is_over.acquire(timeout=seconds)

    def outcome(self) -> tuple[Any, BaseException | None]:
        """What the call gave and what it raised; the worker keeps neither."""
        outcome = self._result, self._error
        self._result = self._error = None
        return outcome

    def _run(self) -> None:
        while True:
            self._has_call.acquire()
            assert self._call is not None
            try:
                self._result = self._call()
            except BaseException as error:
                self._error = error
            self._call = None
            self._is_over.release()
            if self.is_last:
                break


#: workers without a call; append and pop are atomic
_idle_workers: deque[_Worker] = deque()


def bounded(call: Callable[[], Value], limit: Limit) -> Value:
    """The result of a blocking call, made by another thread where a limit or a signal
    may have to end it; `Stalled` where it takes longer than the limit.

    Without MPI_THREAD_MULTIPLE there is no limit. A caller without a limit keeps no
    worker, as it makes such calls at the beginning only.
    """
    is_unlimited = limit.seconds is None
    hears_signals = threading.current_thread() is threading.main_thread()
    cannot_end_early = is_unlimited and not hears_signals
    if MPI.Query_thread() != MPI.THREAD_MULTIPLE or cannot_end_early:
        return call()
    try:
        worker = _idle_workers.pop()
    except IndexError:
        worker = _Worker()
    worker.is_last = is_unlimited
    worker.begin(call)
    try:
        if not worker.is_over(limit.seconds):
            assert limit.seconds is not None
            raise Stalled(limit.seconds)
    except BaseException:
        worker.is_last = True
        raise
    # before another thread can have the worker, whose next call has another outcome
    result, error = worker.outcome()
    if not is_unlimited:
        _idle_workers.append(worker)
    if error is not None:
        try:
            raise error
        finally:
            del error  # its traceback has this frame
    return result  # type: ignore[no-any-return]
