"""Blocking calls of the MPI library that a time limit or a signal can end.

MPI has no way to leave a blocking collective, and a nonblocking collective does not
match a blocking one: a process with a limit and a process without must make the same
call. So a worker thread makes the call, and the caller waits for the worker no longer
than the limit. After the limit the call goes on in the worker, and nobody waits for it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from mpi4py import MPI

from .errors import Stalled
from .waiting import TimeLimit

Value = TypeVar("Value")


class _Worker:
    """A daemon thread that makes blocking calls, one at a time.

    The order of use is `begin`, `is_over` until true, `outcome`; at last `end`. The end
    is told like a call: a flag that the thread looks at behind a call could already be
    that of the next caller, whose call nobody would make.
    """

    def __init__(self) -> None:
        # semaphores, as to acquire one also resets it for the next call
        self._has_call, self._is_over = threading.Semaphore(0), threading.Semaphore(0)
        self._call: Callable[[], Any] | None = None
        self._result: Any = None
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="isthmus-call", daemon=True).start()

    def begin(self, call: Callable[[], Any]) -> None:
        """Hand a call to the thread."""
        self._call = call
        self._has_call.release()

    def end(self) -> None:
        """End the thread, behind the call that it may be in."""
        self._has_call.release()

    def is_over(self, seconds: float | None) -> bool:
        """Whether the call ends within so many seconds."""
        return self._is_over.acquire(timeout=seconds)

    def outcome(self) -> tuple[Any, BaseException | None]:
        """The result and the error of the last call.

        The worker keeps neither, since an idle worker must not keep buffers alive.
        """
        outcome = self._result, self._error
        self._result = self._error = None
        return outcome

    def _run(self) -> None:
        while True:
            self._has_call.acquire()
            if self._call is None:
                return
            try:
                self._result = self._call()
            except BaseException as error:
                self._error = error
            self._call = None
            self._is_over.release()


#: workers without a call; the deque's append and pop are atomic
_idle_workers: deque[_Worker] = deque()


def bounded(call: Callable[[], Value], limit: TimeLimit) -> Value:
    """The result of a blocking call that a time limit or a signal may end.

    Raises `Stalled` where the call takes longer than the limit. Without
    MPI_THREAD_MULTIPLE no worker may call MPI, so the limit does not hold. Without a
    limit no worker is kept, since only the set-up of a communicator makes such calls.
    """
    is_unlimited = limit.seconds is None
    # Python runs signal handlers in the main thread alone
    hears_signals = threading.current_thread() is threading.main_thread()
    cannot_end_early = is_unlimited and not hears_signals
    if MPI.Query_thread() != MPI.THREAD_MULTIPLE or cannot_end_early:
        return call()
    try:
        worker = _idle_workers.pop()
    except IndexError:
        worker = _Worker()
    worker.begin(call)
    try:
        if not worker.is_over(limit.seconds):
            assert limit.seconds is not None
            raise Stalled(limit.seconds)
    except BaseException:
        worker.end()  # once the thread comes back from MPI
        raise
    # Take the outcome before the worker is idle: another thread could begin a call
    # otherwise, whose outcome would replace this one.
    result, error = worker.outcome()
    if is_unlimited:
        worker.end()
    else:
        _idle_workers.append(worker)
    if error is not None:
        try:
            raise error
        finally:
            del error  # the traceback refers to this frame: a cycle otherwise
    return result  # type: ignore[no-any-return]
