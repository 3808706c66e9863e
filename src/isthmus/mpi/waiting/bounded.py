"""Blocking calls of the MPI library that a limit or a signal ends: another thread makes
them.

MPI has no other way to leave a collective that makes a communicator, and a nonblocking
collective does not match a blocking one: so a process with a limit and one without make
the same call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from mpi4py import MPI

from .errors import Stalled
from .waiting import Limit

Value = TypeVar("Value")


class _Helper:
    """A thread that makes one call after the other, until one is its last."""

    def __init__(self, last: bool) -> None:
        self._given, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self._call: Callable[[], Any] | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.last = last
        threading.Thread(target=self._run, name="isthmus-call", daemon=True).start()

    def begin(self, call: Callable[[], Any]) -> None:
        """Make a call."""
        self._call = call
        self._given.release()

    def _run(self) -> None:
        while True:
            self._given.acquire()
            assert self._call is not None
            try:
                self.result = self._call()
            except BaseException as error:
                self.error = error
            self._call = None
            self.done.release()
            if self.last:
                break

    def answer(self) -> Any:
        """What the call gave, or raised; nothing of it is kept."""
        result, error = self.result, self.error
        self.result = self.error = None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback has this frame
        return result


_idle: list[_Helper] = []


def bounded(call: Callable[[], Value], limit: Limit) -> Value:
    """Make a blocking call; raise `Stalled` where it takes longer than the limit, and
    what the handler of a signal raises.

    It goes on beside the caller then, to whose end nobody waits. Without
    MPI_THREAD_MULTIPLE there is no limit. Without a limit no thread is kept.
    """
    free = limit.seconds is None
    signals = threading.current_thread() is threading.main_thread()
    if MPI.Query_thread() != MPI.THREAD_MULTIPLE or (free and not signals):
        return call()
    helper = _idle.pop() if _idle and not free else _Helper(last=free)
    helper.begin(call)
    try:
        if not helper.done.acquire(timeout=limit.seconds):
            assert limit.seconds is not None
            raise Stalled(limit.seconds)
    except BaseException:
        helper.last = True
        raise
    if not helper.last:
        _idle.append(helper)
    return helper.answer()  # type: ignore[no-any-return]
