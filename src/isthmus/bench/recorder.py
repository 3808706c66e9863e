"""Recording of real runs: the start and the end of each message.

While a communicator is recorded, its blocking calls are made by operations that read
the clock between any two steps, at a cost of some microseconds a message. Operations of
unrecorded communicators have no branch for recording, and lose no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..cost.recorded import Log, MessageEnd, Recorded, timeline
from ..mpi.context.context import Context
from ..mpi.plan.operation import POLLS_BEFORE_YIELD, Operation
from ..mpi.plan.steps import (
    Ask,
    Await,
    AwaitSized,
    MessageStep,
    StartSend,
    StartTypedSend,
)
from .clock import now, offset

if TYPE_CHECKING:
    from ..mpi.context.channel import Channel
    from ..mpi.plan.operation import AnyCall
    from ..mpi.plan.plan import Plan


class ObservedOperation(Operation):
    """An operation that logs the start and the end of messages."""

    recorder: Recorder
    _started: dict[int, float]
    _completed: dict[int, float]
    _begin = 0.0

    def _run(self, stop: int, waits: bool) -> bool:
        """Do the steps in order, and read the clock after each."""
        if not self._step_index and self.number >= 0 and not self._begin:
            self._begin, self._started, self._completed = now(), {}, {}
        while self._step_index < stop:
            step = self.plan.steps[self._step_index]
            if isinstance(step, Ask):
                self._started, self._completed = {}, {}
                return super()._run(stop, waits)
            if isinstance(step, MessageStep):
                self._started[step.slot] = now()
            elif isinstance(step, Await | AwaitSized):
                while not self._is_complete(step):
                    if not waits:
                        return False
                    self._rest(POLLS_BEFORE_YIELD)
            if not super()._run(self._step_index + 1, waits):
                return False
        return True

    def _is_complete(self, step: Await | AwaitSized) -> bool:
        """Whether all messages of a step are complete.

        All messages under way are tested and their times logged, since a message may be
        complete long before the step that waits for it.
        """
        for slot in self._started.keys() - self._completed.keys():
            if self._requests[slot].Test():
                self._completed[slot] = now()
        slots = step.slots if isinstance(step, Await) else (step.slot,)
        return all(k in self._completed or k not in self._started for k in slots)

    def _end(self) -> None:
        super()._end()
        ends = tuple(self._ends())
        self.recorder.add(Log(self._begin, now(), ends))

    def _ends(self) -> Iterator[MessageEnd]:
        """The ends of the messages at this rank, with their times."""
        rounds: dict[int, int] = {}
        for step in self.plan.steps:
            if isinstance(step, Await):
                rounds |= dict.fromkeys(step.slots, step.round_number - 1)
        for step in self.plan.steps:
            if not isinstance(step, MessageStep):
                continue
            is_send = isinstance(step, StartSend | StartTypedSend)
            times = self._started[step.slot], self._completed[step.slot]
            round_number = rounds[step.slot]
            yield MessageEnd(is_send, step.peer, step.nbytes, round_number, *times)


class Recorder:
    """The calls of a communicator while it is recorded."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.offset = offset(context.comm)
        self.logs: list[Log] = []

    def operation(
        self, channel: Channel, plan: Plan, call: AnyCall, buffers: list[Any]
    ) -> ObservedOperation:
        """An operation whose log goes to this recorder."""
        operation = ObservedOperation(channel, plan, call, buffers)
        operation.recorder = self
        return operation

    def add(self, log: Log) -> None:
        """Append a log, converted to the clock of rank 0."""
        by = self.offset
        ends = (replace(x, start=x.start + by, end=x.end + by) for x in log.ends)
        self.logs.append(Log(log.begin + by, log.end + by, tuple(ends)))

    def logs_by_call(self) -> list[list[Log]]:
        """The logs of all ranks for each call; collective, with equal results."""
        logs_by_rank = self.context.comm.allgather(self.logs)
        return [list(logs) for logs in zip(*logs_by_rank, strict=True)]

    def timelines(self) -> list[Recorded]:
        """A timeline of all ranks for each call; collective, with equal results."""
        return [timeline(logs) for logs in self.logs_by_call()]


@contextmanager
def recording(comm: Any) -> Iterator[Recorder]:
    """Record the blocking calls of a communicator of isthmus; collective.

    Calls of the MPI library itself are not recorded, since their messages are hidden.
    """
    context: Context = comm._context()
    context.plans.clear()
    context.observer = recorder = Recorder(context)
    try:
        yield recorder
    finally:
        context.observer = None
        context.plans.clear()
