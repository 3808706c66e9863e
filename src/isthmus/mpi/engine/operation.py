"""Calls that go on while the caller does something else."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..context.check import MismatchError
from ..context.progress import driver
from ..waiting.errors import ProcessLost, Stalled
from ..waiting.waiting import Awaited, wait
from .plan import Plan

Steps = Iterator[Awaited]

_log = logging.getLogger("isthmus")
_INTERRUPTED = "a signal handler raised in the middle of this call, which cannot go on"


class Operation:
    """A running call: advanced by whoever has time, the caller or the thread."""

    #: whether a step is being done; so it stays if a signal handler raises there
    broken = False

    #: the rounds that were begun
    begun = 0

    def __init__(
        self,
        steps: Steps,
        end: Callable[[], Any],
        owner: Any,
        keep: Any,
        what: tuple[str, str] = ("", ""),
    ) -> None:
        """`end` completes the handle; `keep` has the buffers; `what` is the operation
        and its algorithm, in words."""
        self.owner, self.keep, self._what = owner, keep, what
        self._steps, self._end = steps, end
        self._lock = threading.Lock()
        #: what the next round waits for; None at the end
        self._open: Awaited | None = None
        self._begun = False
        self.done = False
        self.error: BaseException | None = None

    def _go(self, on: Callable[[], bool]) -> None:
        """Go on; at the end, or when something fails, the handle is completed.

        What a signal handler raises between two steps stops nothing: others go on. In
        the middle of one nobody can, and messages may be under way: the handle stays.
        """
        try:
            over = on()
        except Exception as error:
            driver.failed.append(self)
            self.error, self.broken, over = error, False, True
            if not isinstance(error, MismatchError):  # which all ranks raise
                if isinstance(error, Stalled):
                    error.round = error.round or self.begun
                self.error = self.owner.failed(error, *self._what)
            known = isinstance(self.error, ProcessLost | Stalled)
            _log.error("a nonblocking operation failed", exc_info=not known)
        except BaseException as error:
            if self.broken:
                driver.failed.append(self)
                self.error, self.done = RuntimeError(_INTERRUPTED), True
                self.owner.refuse(self.owner.number, error)
            raise
        if over:
            self._end()
        self.done = over

    def _wait(self) -> bool:
        """Go on to the end."""
        self._begin_steps()
        while self._open is not None:
            wait(self._open, self.owner.limit)
            self._step()
        return True

    def _begin_steps(self) -> None:
        if not self._begun:
            self._begun = True
            self._step()

    def _step(self) -> None:
        """Begin the next round."""
        self.broken = True
        self._open = next(self._steps, None)
        self.begun += 1
        self.broken = False

    def _test(self) -> bool:
        """Go on as far as possible without waiting; whether that is the end."""
        self._begin_steps()
        while self._open is not None and self._open.test():
            self._step()
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

    def __init__(
        self,
        plans: Sequence[Plan],
        end: Callable[[], Any],
        owner: Any,
        keep: Any,
        what: tuple[str, str] = ("", ""),
    ) -> None:
        """Plans take turns, if there are several."""
        super().__init__(iter(()), end, owner, keep, what)
        self._plans = plans
        self._choose(plans[0])
        self.done = True

    def _choose(self, plan: Plan) -> None:
        self._plan, self._plain = plan, True
        self._first, self._rest = plan.first, plan.rest

    def begin(self) -> None:
        """Begin the first round, while nobody else knows that it is made."""
        self.error, self._plain = None, True
        if (turn := self._plan.turn) is not None:
            number = turn.memory.take()
            self._choose(self._plans[number % len(self._plans)])
            if (turn := self._plan.turn) is not None:
                turn.number = number
        self._go(self._begin)

    def free(self) -> None:
        """Give the plans back."""
        for plan in self._plans:
            plan.free()

    def _begin(self) -> bool:
        self._do(self._first)
        return not self._rest

    def _do(self, calls: Sequence[Callable[[], Any]]) -> None:
        self.broken = True
        for call in calls:
            call()
        self.broken = False

    def _wait(self) -> bool:
        if self._plain:
            self._do(self._rest)
            return True
        return super()._wait()

    def _begin_steps(self) -> None:
        if self._plain:
            self._plain, self._steps, self.begun = False, self._plan.rounds(), 0
            self._step()
