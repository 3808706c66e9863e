"""An operation: one call under way, with a plan, buffers, a number and a position.

`_run` is the only function that executes a plan. `advance` runs the plan as far as
possible without waiting; `wait` runs the plan to the end, and yields the processor
wherever a step must wait. Blocking, nonblocking and persistent calls, and
redistributions, differ only in the caller of these two.

A call is numbered in its first `advance`, as on all other ranks. An error before, in
reading arguments or for lack of memory, leaves no trace, since no other rank has heard
of the call. Every later error leaves the communicator refused and is announced to the
other ranks: messages of the call may be under way, and a later call would receive them.
"""

from __future__ import annotations

import os
import threading
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from mpi4py import MPI

from ..buffers.node_memory import fence_lock
from ..buffers.selection import HOST_PACKER, Packer
from ..waiting.errors import MismatchError, Stalled
from .steps import (
    NODE,
    SAID,
    TMP,
    Ask,
    Await,
    AwaitSized,
    Compute,
    Enter,
    Fetched,
    LongCopy,
    Meet,
    MessageStep,
    Move,
    Pack,
    ReduceLocal,
    ShortCopy,
    StartAllgatherv,
    StartBarrier,
    StartNative,
    StartReceive,
    StartSend,
    StartTypedReceive,
    StartTypedSend,
    Step,
    Store,
    Stored,
    Unpack,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..buffers.devices.transfer import Transfer
    from ..buffers.node_memory import AwaitedWords, RootedTurn
    from ..context.channel import Channel
    from ..requests.persistent import PersistentHandle
    from ..requests.request import Handle
    from .arrange import Arrangement
    from .plan import Plan

#: polls of messages, of about a microsecond each, before a waiting rank yields the
#: processor
POLLS_BEFORE_YIELD = 64
#: polls between two checks of the clock, of failed ranks, and of other operations
POLLS_BETWEEN_CHECKS = 64
_BYTE = MPI.BYTE
#: the buffer of messages without data
_NO_BYTES = memoryview(bytearray())
_Lock = threading.Lock
_yield_processor = os.sched_yield
#: steps that wait for other ranks: an operation interrupted there can go on later
_WAITING = (Await, AwaitSized, Enter, Fetched, Meet)
_INTERRUPTED = "a signal handler raised in the middle of this call, which cannot go on"


class AnyCall(Protocol):
    """The view of a call that every operation needs, besides the buffers."""

    #: MPI's name of the operation
    name: str
    #: the operators of reductions, each with the datatype of the elements
    operators: Sequence[tuple[MPI.Op, MPI.Datatype]]
    packer: Packer

    def begin_transfer(self, plan: Plan) -> Transfer:
        """Begin the copies from and to devices."""
        ...


class AskingCall(AnyCall, Protocol):
    """A call whose plan ends with a question to other ranks."""

    def plan_for(self, asked: Plan, answer: bytes) -> Plan:
        """The plan that follows a plan with a question, by the answer."""
        ...


class NativeStarter(AnyCall, Protocol):
    """A call whose plan has the MPI library's own call as a step."""

    def start_native(self, plan: Plan, buffers: Sequence[Any]) -> MPI.Request:
        """Start the MPI library's own call."""
        ...


class Operation:
    """A plan under way, advanced by one thread at a time: the holder of the lock."""

    # attributes read at every call are in slots: to read an attribute of the class
    # through an instance takes five times as long
    __slots__ = (
        "_awaited",
        "_buffers",
        "_deadline",
        "_fence",
        "_lock",
        "_requests",
        "_step_index",
        "_transfer",
        "answer",
        "call",
        "channel",
        "code",
        "done",
        "error",
        "half",
        "handle",
        "number",
        "only_asks",
        "plan",
        "polls",
        "staging",
        "tag",
        "turn",
    )

    def __init__(
        self,
        channel: Channel,
        plan: Plan,
        call: AnyCall,
        buffers: list[Any],
    ) -> None:
        """`buffers` has the user's memory by buffer numbers, and None for scratch and
        node memory, which come later.

        An error here leaves no trace, since no rank has heard of the call.
        """
        self.channel, self.plan, self.call = channel, plan, call
        self._buffers = buffers
        #: number and tag of the call on its channel; -1 until the call is numbered
        self.number = self.tag = -1
        #: the half of the node memory for the call, and the code that ranks write there
        #: in meetings; -1 until the call is numbered
        self.half = self.code = -1
        #: the earlier calls in that half, where not all ranks count the calls
        self.turn: RootedTurn | None = None
        #: whether the call is over, with or without an error
        self.done = False
        self.error: BaseException | None = None
        #: completes the user's request at the end; None for a blocking call
        self.handle: Handle | PersistentHandle | None = None
        #: held by the thread that advances the operation; None for a blocking call,
        #: which only the caller advances
        self._lock: threading.Lock | None = None
        #: polls so far: a number that has not changed says that nobody has advanced the
        #: operation meanwhile
        self.polls = 0
        #: the answer of the ranks before an irregular call, and whether the operation
        #: ends with the answer
        self.answer, self.only_asks = b"", False
        #: the memory fence of the operation alone (see `fence_lock`), set before the
        #: first step that touches the node memory
        self._fence: threading.Lock | None = None
        #: the index of the present step
        self._step_index = 0
        #: the words that the present meeting waits for; None before it has begun
        self._awaited: AwaitedWords | None = None
        #: seconds on the clock; 0.0 until a step has had to wait
        self._deadline = 0.0
        #: unpacks received data with gaps
        self.staging: Arrangement | None = None
        #: the copies from and to devices
        self._transfer: Transfer | None = None
        if plan.scratch:
            self._take_scratch(plan)
        buffers[SAID] = plan.said or _NO_BYTES
        if plan.transfers is not None:
            self._transfer = call.begin_transfer(plan)
        self._requests: list[Any] = [None] * plan.slots

    def _take_scratch(self, plan: Plan) -> None:
        """Allocate the scratch of a plan, on the host or the device of the data."""
        packer = self.call.packer
        allocate = self.channel.scratch.take if packer is HOST_PACKER else packer.room
        self._buffers[TMP] = allocate(plan.scratch)

    def _give_scratch_back(self) -> None:
        scratch = self._buffers[TMP]
        if scratch is not None and self.call.packer is HOST_PACKER:
            self.channel.scratch.give_back(scratch)
        self._buffers[TMP] = None

    # -- progress

    def share(self, handle: Handle | PersistentHandle) -> None:
        """Let other threads advance the operation too, found through the handle."""
        self.handle, self._lock = handle, _Lock()

    @property
    def is_held(self) -> bool:
        """Whether a thread advances the operation now, or waits for the end."""
        return self._lock is not None and self._lock.locked()

    def advance(self) -> bool:
        """Run the plan as far as possible without waiting; return `done`.

        An error is kept in `error`, for the user's wait.
        """
        if self.done:
            return True
        lock = self._lock
        assert lock is not None  # since `share`, without which only `wait` is called
        if lock.acquire(blocking=False):
            try:
                self._proceed(waits=False)
            finally:
                lock.release()
        return self.done

    def wait(self) -> None:
        """Run the plan to the end; raise the error of the call, if any."""
        if self._lock is None:
            self._proceed(waits=True)
        else:
            with self._lock:
                self._proceed(waits=True)
        if self.error is not None:
            raise self.error

    def _proceed(self, waits: bool) -> None:
        """Run the plan to the end, or up to a step that would have to wait.

        The first time numbers the call, as on all other ranks. An error is kept.
        """
        try:  # around all steps, since a signal handler may raise between two of them
            if self.done:
                return
            if self.number < 0:
                self.channel.count(self)
            if self._run(len(self.plan.steps), waits):
                self._end()
                return
            self.polls += 1
            if self.polls % POLLS_BETWEEN_CHECKS == 0:
                self.channel.check()
        except BaseException as error:
            self._fail(error)

    def _rest(self, polls_before_yield: int = 0) -> None:
        """Rest between two polls: yield the processor, and now and then check for
        failures and advance other operations."""
        self.polls = polls = self.polls + 1
        if polls > polls_before_yield:
            _yield_processor()
        if polls % POLLS_BETWEEN_CHECKS == 0:
            self._check_and_advance_others()

    def _check_and_advance_others(self) -> None:
        """Check for failed ranks and the time limit, and advance other operations:
        another rank may wait for their messages before it sends ours."""
        self.channel.check()
        self._check_limit()
        self.channel.advance_others(self)

    @property
    def position(self) -> int:
        """The index of the present step."""
        return self._step_index

    @classmethod
    def failed(cls, channel: Channel, error: BaseException) -> Operation:
        """An operation that could not begin and is over.

        For a persistent request that MPI alone has started: the user's wait raises the
        error.
        """
        operation = cls.__new__(cls)
        operation.channel, operation.error, operation.done = channel, error, True
        operation._lock = None
        return operation

    @property
    def _step_kind(self) -> type | None:
        steps = self.plan.steps
        index = self._step_index
        return type(steps[index]) if index < len(steps) else None

    def _check_limit(self) -> None:
        """Raise `Stalled` after the time limit of the communicator."""
        seconds = self.channel.context.limit.seconds
        if seconds is None:
            return
        now = monotonic()
        self._deadline = self._deadline or now + seconds
        if now > self._deadline:
            raise self._stalled(seconds)

    # -- the steps

    def _run(self, stop: int, waits: bool) -> bool:
        """Run the steps up to index `stop`; False where a step would have to wait.

        `_step_index` is set before each step, so that an operation interrupted in a
        wait can go on later.
        """
        steps, index, buffers = self.plan.steps, self._step_index, self._buffers
        requests, channel, tag = self._requests, self.channel, self.tag
        while index < stop:
            self._step_index = index
            step: Any = steps[index]
            kind = type(step)
            if kind is ShortCopy:
                source, read, target, written = step
                buffers[target][written] = buffers[source][read]
            elif kind is Meet:
                if not self._meet(step, waits):
                    return False
            elif kind is Enter:
                while not channel.turns.is_free(self):
                    if not waits:
                        return False
                    self._rest()
                buffers[NODE] = (
                    np.empty(self.plan.node, np.uint8).data
                    if channel.is_alone
                    else channel.segment.halves[self.half]
                )
                self._fence = fence = self._fence or fence_lock()
                fence.release()
                fence.acquire()
            elif kind is StartSend:
                rank, buffer, start, nbytes, slot = step
                spec = [buffers[buffer], nbytes, start, _BYTE]
                requests[slot] = channel.isend(spec, rank, tag)
            elif kind is StartReceive:
                rank, buffer, start, nbytes, slot = step
                spec = [buffers[buffer], nbytes, start, _BYTE]
                requests[slot] = channel.irecv(spec, rank, tag)
            elif kind is Await:
                for slot in step[0]:  # a complete request is complete at once
                    test = requests[slot].Test
                    try:
                        while not test():
                            if not waits:
                                return False
                            self._rest(POLLS_BEFORE_YIELD)
                    except MPI.Exception as error:
                        raise self._explained(error, slot) from None
            elif kind is ReduceLocal:
                sources, target, written, elements, operator = step
                op, datatype = self.call.operators[operator]
                combine = op.Reduce_local
                combined = buffers[target][written:], elements, datatype
                for source, read in sources:
                    combine((buffers[source][read:], elements, datatype), combined)
            elif kind is LongCopy:
                source, read, target, written = step
                np.copyto(
                    np.frombuffer(buffers[target][written], np.uint8),
                    np.frombuffer(buffers[source][read], np.uint8),
                )
            elif kind is Ask:
                buffer, start, nbytes = step
                self.answer = bytes(buffers[buffer][start : start + nbytes])
                return self.only_asks or self._run_answered(waits)
            else:
                while not self._do_rare_step(step):
                    if not waits:
                        return False
                    self._rest()
            index += 1
        self._step_index = index
        return True

    def _meet(self, step: Meet, waits: bool) -> bool:
        """Arrive at a meeting; False as long as ranks are missing."""
        segment, half, fence = self.channel.segment, self.half, self._fence
        ranges, meeting, _, contribution, expected = step
        assert fence is not None  # since the half was entered
        awaited = self._awaited
        if awaited is None:
            if contribution >= 0:
                segment.words[segment.contributed_at[half]] = contribution
            fence.release()
            fence.acquire()
            awaited = segment.arrive(half, self.code, meeting, ranges)
            self._awaited = awaited
        word, reads = awaited
        for read, n in reads:
            words = word * n
            while read() != words:
                if not waits:
                    return False
                self._rest()
        fence.release()
        fence.acquire()
        if expected and segment.contributed(half, ranges) != expected:
            self._raise_contributions_differ(step)
        self._awaited = None
        return True

    def _do_rare_step(self, step: Step) -> bool:
        """Run a step of a kind that short calls do not have; False where the step would
        have to wait."""
        buffers, requests, comm = self._buffers, self._requests, self.channel.context
        if isinstance(step, Pack):
            source, target = buffers[step.source], buffers[step.target]
            self.call.packer.pack(source, step.selection, target, step.start)
        elif isinstance(step, Unpack):
            source, target = buffers[step.source], buffers[step.target]
            self.call.packer.unpack(source, step.start, target, step.selection)
        elif isinstance(step, StartTypedSend | StartTypedReceive):
            kind = step.selection.datatype()
            spec = [buffers[step.buffer], 1, kind]
            if isinstance(step, StartTypedSend):
                request = self.channel.isend(spec, step.peer, self.tag)
            else:
                request = self.channel.irecv(spec, step.peer, self.tag)
            requests[step.slot] = request
            kind.Free()  # MPI keeps the datatype until the message is complete
        elif isinstance(step, StartAllgatherv):
            starts = step.offsets[:-1]
            sizes = [b - a for a, b in pairwise(step.offsets)]
            spec = [buffers[step.buffer], sizes, starts, _BYTE]
            group = comm.local if step.is_local else comm.comm
            requests[step.slot] = group.Iallgatherv(MPI.IN_PLACE, spec)
        elif isinstance(step, StartBarrier):
            requests[step.slot] = comm.comm.Ibarrier()
        elif isinstance(step, Move):
            source, target = buffers[step.source], buffers[step.target]
            self.call.packer.move(source, step.read, target, step.written)
        elif isinstance(step, AwaitSized):
            return self._is_received(step)
        elif isinstance(step, Fetched):
            assert self._transfer is not None
            while not self._transfer.has_come(step.number):
                self.channel.check()  # which lets messages that are sent go on
                if not step.is_awaited:
                    return False
        elif isinstance(step, Store):
            assert self._transfer is not None
            self._transfer.store(step.ranges)
        elif isinstance(step, Stored):
            assert self._transfer is not None
            return self._transfer.has_stored()
        elif isinstance(step, StartNative):
            starter = cast("NativeStarter", self.call)
            requests[step.slot] = starter.start_native(self.plan, buffers)
        elif isinstance(step, Compute):
            arrays = (
                np.ndarray(x.shape, x.dtype, buffers[x.buffer], x.first, x.strides)
                for x in (*step.read, *step.written)
            )
            step.function(*arrays)
            self.channel.check()  # which lets messages go on
        return True

    def _is_received(self, step: AwaitSized) -> bool:
        """Whether a message is complete; raise if the message is too short."""
        status = MPI.Status()
        try:
            if not self._requests[step.slot].Test(status):
                return False
        except MPI.Exception as error:
            raise self._explained(error, step.slot) from None
        nbytes = status.Get_count(_BYTE)
        if nbytes != step.nbytes:
            context = self.channel.context
            raise MismatchError(
                f"isthmus {self.call.name}: {context.who(step.source)} sends {nbytes} "
                f"bytes, {context.who(context.number)} expects {step.nbytes} of it",
                is_agreed=False,
            )
        return True

    def _explained(self, error: MPI.Exception, slot: int) -> Exception:
        """The error of a message; where the message is too long, in words of the call,
        since MPI names neither the call nor the rank."""
        steps = self.plan.steps
        receives = (
            step for step in steps if isinstance(step, StartReceive | StartTypedReceive)
        )
        receive = next((step for step in receives if step.slot == slot), None)
        if receive is None or error.Get_error_class() != MPI.ERR_TRUNCATE:
            return error
        context = self.channel.context
        sender, receiver = context.who(receive.peer), context.who(context.number)
        return MismatchError(
            f"isthmus {self.call.name}: {sender} sends more than the {receive.nbytes} "
            f"bytes that {receiver} expects of it",
            is_agreed=False,
        )

    def _run_answered(self, waits: bool) -> bool:
        """Go on with the plan for the values of the call and the answer.

        Where the ranks do not match, all ranks raise one error, since all have one
        answer: the call is over, and the communicator stays usable.
        """
        try:
            plan = cast("AskingCall", self.call).plan_for(self.plan, self.answer)
        except MismatchError as error:
            if not error.is_agreed:
                raise
            self.error = error
            return True
        if self.plan.scratch:
            self._give_scratch_back()
        if plan.scratch:
            self._take_scratch(plan)
        self._buffers[SAID] = plan.said or _NO_BYTES
        self.plan, self._step_index, self._requests = plan, 0, [None] * plan.slots
        if plan.transfers is not None:
            self._transfer = self.call.begin_transfer(plan)
        return self._run(len(plan.steps), waits)

    # -- the end

    def _end(self) -> None:
        """Unpack staged data, end the turn in the node memory, free the scratch."""
        if self.staging is not None and self.error is None:
            self.staging.stage_out()
        if self._fence is not None:  # reads of the node memory end before the turn ends
            self._fence.release()
            self._fence.acquire()
        self.channel.turns.end(self)
        if self.plan.scratch:
            self._give_scratch_back()
        self._complete()

    def _complete(self) -> None:
        """Complete the user's request and drop the buffers."""
        if self.handle is not None:
            self.handle.complete(self)
        self._buffers, self.staging, self._transfer = [], None, None
        self.done = True  # last: a persistent start reads `done` where a handle is open

    def _fail(self, error: BaseException) -> None:
        """Refuse all later calls on the communicator: messages of this call may still
        be under way.

        A signal handler that raises while the rank waits in a nonblocking call ends the
        wait, not the call. A call interrupted in the middle of a step cannot go on.
        """
        if self.number < 0:  # no rank has heard of the call
            self.error = error
            self._complete()
            return
        is_signal = self.handle is not None and not isinstance(error, Exception)
        if is_signal and self._step_kind in _WAITING:
            raise error
        context, algorithm = self.channel.context, self.plan.algorithm
        orphan = self, self._buffers
        self.error = context.failed(error, self.call.name, algorithm, orphan=orphan)
        if is_signal:
            self.error = RuntimeError(_INTERRUPTED)
        self._complete()
        if is_signal:
            raise error

    def _stalled(self, seconds: float) -> Stalled:
        """The error of the present step after the time limit, with the late ranks."""
        step, channel = self.plan.steps[self._step_index], self.channel
        ranks: list[int] = []
        has, round_number = "not begun", 0
        if isinstance(step, Await | AwaitSized):
            slots = step.slots if isinstance(step, Await) else self._started_slots()
            waiting = {k for k in slots if not self._requests[k].Get_status()}
            messages = (x for x in self.plan.steps if isinstance(x, MessageStep))
            ranks = sorted({x.peer for x in messages if x.slot in waiting})
            n = len(slots)
            has = f"{n - len(waiting)} of {n} messages of this round"
            round_number = step.round_number
        elif isinstance(step, Meet):
            meeting = self.half, self.code, step.meeting
            ranks = channel.segment.not_come(*meeting, step.ranges)
            n = sum(b - a for a, b in step.ranges)
            has = f"{n - len(ranks)} of {n} ranks at meeting {step.meeting}"
            round_number = step.round_number
        elif isinstance(step, Enter):
            ranks = channel.turns.not_ended(self)
        error = Stalled(seconds, ranks, has)
        error.round = round_number
        return error

    def _started_slots(self) -> list[int]:
        """The slots of all messages that this rank has started."""
        return [k for k, request in enumerate(self._requests) if request is not None]

    def _raise_contributions_differ(self, step: Meet) -> None:
        """Raise the error of a rank of the node that contributes another number of
        bytes than this rank expects."""
        context, segment = self.channel.context, self.channel.segment
        rows = segment.contributed(self.half, step.ranges)
        for (low, _), row, expected in zip(
            step.ranges, rows, step.expected or [], strict=True
        ):
            sizes = np.frombuffer(row, np.int64)
            expected_sizes = np.frombuffer(expected, np.int64)
            for i in np.flatnonzero(sizes != expected_sizes):
                peer = context.who(segment.ranks[low + int(i)])
                me, nbytes = context.who(context.number), expected_sizes[i]
                raise MismatchError(
                    f"isthmus {self.call.name}: {peer} contributes {sizes[i]} bytes, "
                    f"{me} expects {nbytes} of it",
                    is_agreed=False,
                )
