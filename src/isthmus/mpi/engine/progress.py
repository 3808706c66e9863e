"""Operations that go on while the caller does something else, and who advances them."""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import count
from typing import Any, Protocol

from mpi4py import MPI

from ..context.check import MismatchError
from ..memory.node_memory import Meeting, Turn
from .plan import Plan, Wait

Steps = Iterator[Wait]

_log = logging.getLogger("isthmus")
_INTERRUPTED = "a signal handler raised in the middle of this call, which cannot go on"
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

    #: whether a step is being done; so it stays if a signal handler raises there
    broken = False

    def __init__(
        self, steps: Steps, end: Callable[[], Any], owner: Any, keep: Any
    ) -> None:
        """`end` completes the handle; `keep` has the buffers."""
        self.owner, self.keep = owner, keep
        self._steps, self._end = steps, end
        self._lock = threading.Lock()
        #: what the next round waits for; None at the end
        self._open: Wait | None = ()
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
            _log.exception("a nonblocking operation failed")
            driver.failed.append(self)
            self.error, self.broken, over = error, False, True
            if not isinstance(error, MismatchError):  # which all ranks raise
                self.owner.refuse(self.owner.number, error)
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
        while self._open is not None:
            if isinstance(self._open, Meeting | Turn):
                self._open.wait()
            else:
                MPI.Request.Waitall(self._open)
            self._step()
        return True

    def _step(self) -> None:
        """Begin the next round."""
        self.broken = True
        self._open = next(self._steps, None)
        self.broken = False

    def _test(self) -> bool:
        """Go on as far as possible without waiting; whether that is the end."""
        while self._open is not None and self._is_complete(self._open):
            self._step()
        return self._open is None

    @staticmethod
    def _is_complete(found: Wait) -> bool:
        """Whether what a round waits for is complete."""
        if isinstance(found, Meeting | Turn):
            return found.test()
        return bool(MPI.Request.Testall(found))

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
        self, plans: Sequence[Plan], end: Callable[[], Any], owner: Any, keep: Any
    ) -> None:
        """Plans take turns, if there are several."""
        super().__init__(iter(()), end, owner, keep)
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
        if not self._plain:
            return super()._wait()
        self._do(self._rest)
        return True

    def _test(self) -> bool:
        if self._plain:
            self._plain, self._steps = False, self._plan.rounds()
            self._step()
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
        #: operations that failed, whose messages may still be under way
        self.failed: list[Operation] = []
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

    def add(self, operation: Operation) -> None:
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

    def _known(self) -> list[Operation | Watched]:
        with self._wake:
            idle = [x() for x in self._idle]
            return [*self._active, *(x for x in idle if x is not None)]

    def _end(self, *_: Any) -> None:
        """MPI is about to end: wait for the end of all operations, and of the thread.

        Others may wait for what this process has yet to send.
        """
        for x in self._known():
            with suppress(Exception):
                if not isinstance(x, Operation):
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
            moved = [x for x in idle if x is not None and x.look()]
            del idle
            going = [operation for operation in active if operation.advance()]
            with self._wake:
                self._active = [x for x in self._active if not x.done]
            rest = REST[0] if moved or going else min(2 * rest, REST[1])
            time.sleep(rest)


driver = _Driver()
