"""One call under way: a plan, its buffers, its number, and where it is.

`_run` is the only function that executes a plan. `advance` lets it come as far as it
can without waiting; `wait` lets it wait, and give way to others, wherever it must. So
blocking, nonblocking and persistent calls differ only in who calls what, and so do
redistributions.

A call counts from the first act of its first `advance` on, as it does on all other
ranks. What fails before, in reading arguments or for lack of memory, has said nothing
to anybody and leaves no trace. Whatever is raised later leaves the communicator refused
and the other ranks told: messages of this call may be under way, and would be taken for
those of the next one.
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
    Copy,
    Enter,
    Fetched,
    Gather,
    LongCopy,
    Meet,
    Move,
    Pack,
    Post,
    PostTyped,
    Reduce,
    Send,
    SendTyped,
    StartNative,
    Step,
    Store,
    Stored,
    Synchronize,
    Unpack,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..buffers.devices.transfer import Transfer
    from ..buffers.node_memory import AwaitedWords, RootedTurn
    from ..context.channel import Channel
    from ..requests.handle import Handle, PersistentHandle
    from .arrange import Arrangement
    from .plan import Plan

#: looks for messages before who waits gives way to other processes, each of about a
#: microsecond
SPINS = 64
#: looks between two looks at the clock, for failed ranks, and at other operations
LOOKS = 64
_BYTE = MPI.BYTE
#: what a message without data is received into
_NOTHING = memoryview(bytearray())
_Lock = threading.Lock
_give_way = os.sched_yield
#: steps at which a rank waits for others: who is interrupted there can go on later
_WAITING = (Await, AwaitSized, Enter, Fetched, Meet)
_MESSAGES = (Post, PostTyped, Send, SendTyped)
_INTERRUPTED = "a signal handler raised in the middle of this call, which cannot go on"


class AnyCall(Protocol):
    """What an operation needs of its call, besides buffers."""

    #: MPI's name of the operation
    name: str
    #: what combines elements, and the types of these
    operators: Sequence[tuple[MPI.Op, MPI.Datatype]]
    packer: Packer

    def begin_transfer(self, plan: Plan) -> Transfer:
        """Begin the copies from and to devices."""


class AskingCall(AnyCall, Protocol):
    """A call with a plan that ends with an answer."""

    def plan_for(self, asked: Plan, answer: bytes) -> Plan:
        """The plan that goes on after one that has asked."""


class NativeStarter(AnyCall, Protocol):
    """A call with a plan that has the MPI library's own call as a step."""

    def start_native(self, plan: Plan, buffers: Sequence[Any]) -> MPI.Request:
        """Start the MPI library's own call."""


class Operation:
    """A plan on its way; advanced by one thread at a time, whoever has its lock."""

    # what is read at every call is in slots: an attribute that an instance has from its
    # class takes five times as long to read
    __slots__ = (
        "_at",
        "_awaited",
        "_buffers",
        "_deadline",
        "_fence",
        "_lock",
        "_requests",
        "_transfer",
        "answer",
        "call",
        "channel",
        "code",
        "done",
        "error",
        "half",
        "handle",
        "looks",
        "number",
        "only_asks",
        "plan",
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
        """Of a call, on the user's buffers by their numbers; the others have no memory
        yet.

        What fails here has said nothing to anybody.
        """
        self.channel, self.plan, self.call = channel, plan, call
        self._buffers = buffers
        #: of the call on its channel; negative as long as it does not count
        self.number = self.tag = -1
        #: which half of the node memory it may use, and what ranks write there in
        #: meetings
        self.half = self.code = -1
        #: which calls had that half before, where not all ranks count them
        self.turn: RootedTurn | None = None
        #: whether it is over, well or not
        self.done = False
        self.error: BaseException | None = None
        #: what completes the user's request when it is over, and who advances it;
        #: nobody but its caller knows a blocking call, which has neither
        self.handle: Handle | PersistentHandle | None = None
        self._lock: threading.Lock | None = None
        #: looks at it: whoever sees the same number again knows that nobody has
        #: advanced it
        self.looks = 0
        #: what the ranks have said before an irregular call, and whether the operation
        #: ends with that
        self.answer, self.only_asks = b"", False
        #: set before the first step that touches the node memory
        self._fence: threading.Lock | None = None
        #: the step that is being done, and what it waits for, if that was begun
        self._at = 0
        self._awaited: AwaitedWords | None = None
        self._deadline = 0.0
        #: unpacks what is received, where it has gaps
        self.staging: Arrangement | None = None
        #: the copies from and to devices
        self._transfer: Transfer | None = None
        if plan.scratch:
            self._take_scratch(plan)
        buffers[SAID] = plan.said or _NOTHING
        if plan.transfers is not None:
            self._transfer = call.begin_transfer(plan)
        self._requests: list[Any] = [None] * plan.slots

    def _take_scratch(self, plan: Plan) -> None:
        """Take the scratch of a plan, where the data of the call are."""
        packer = self.call.packer
        room = self.channel.scratch.take if packer is HOST_PACKER else packer.room
        self._buffers[TMP] = room(plan.scratch)

    def _give_scratch_back(self) -> None:
        scratch = self._buffers[TMP]
        if scratch is not None and self.call.packer is HOST_PACKER:
            self.channel.scratch.give_back(scratch)
        self._buffers[TMP] = None

    # -- who advances it

    def share(self, handle: Handle | PersistentHandle) -> None:
        """Let others advance the operation too, who know it by its handle."""
        self.handle, self._lock = handle, _Lock()

    @property
    def is_held(self) -> bool:
        """Whether somebody advances it now, or waits in it."""
        return self._lock is not None and self._lock.locked()

    def advance(self) -> bool:
        """Do all that can be done without waiting; whether the operation is over.

        What fails is kept in `error`, for whoever waits.
        """
        if self.done:
            return True
        lock = self._lock
        assert lock is not None  # whoever advances it knows its handle
        if lock.acquire(blocking=False):
            try:
                self._go(waits=False)
            finally:
                lock.release()
        return self.done

    def wait(self) -> None:
        """Go on to the end; raise what went wrong."""
        if self._lock is None:
            self._go(waits=True)
        else:
            with self._lock:
                self._go(waits=True)
        if self.error is not None:
            raise self.error

    def _go(self, waits: bool) -> None:
        """Do all that can be done now, or all there is; what fails is kept.

        From here on the operation counts, as on all other ranks.
        """
        try:  # around all, as a signal handler may raise between two steps
            if self.done:
                return
            if self.number < 0:
                self.channel.count(self)
            if self._run(len(self.plan.steps), waits):
                self._end()
                return
            self.looks += 1
            if self.looks % LOOKS == 0:
                self.channel.check()
        except BaseException as error:
            self._fail(error)

    def _rest(self, spins: int = 0) -> None:
        """Rest between two looks at what is awaited: give way to other processes, after
        some looks or at once, and now and then look around."""
        self.looks = looks = self.looks + 1
        if looks > spins:
            _give_way()
        if looks % LOOKS == 0:
            self._look_around()

    def _look_around(self) -> None:
        """Look for ranks that failed, at the clock, and at what else this process has
        to do."""
        self.channel.check()
        self._check_limit()
        self.channel.advance_others(self)

    @property
    def position(self) -> int:
        """The step that is being done."""
        return self._at

    @classmethod
    def failed(cls, channel: Channel, error: BaseException) -> Operation:
        """An operation that could not begin, and is over."""
        operation = cls.__new__(cls)
        operation.channel, operation.error, operation.done = channel, error, True
        operation._lock = None
        return operation

    @property
    def _step_kind(self) -> type | None:
        steps = self.plan.steps
        return type(steps[self._at]) if self._at < len(steps) else None

    def _check_limit(self) -> None:
        """Raise where this process has waited too long."""
        seconds = self.channel.context.limit.seconds
        if seconds is None:
            return
        now = monotonic()
        self._deadline = self._deadline or now + seconds
        if now > self._deadline:
            raise self._stalled(seconds)

    # -- the steps

    def _run(self, stop: int, waits: bool) -> bool:
        """Do the steps up to one; whether it came so far.

        Where a step would have to wait, and must not, that is the end for now. `_at`
        says which step is being done, so that who is interrupted while it waits can go
        on later.
        """
        steps, at, buffers = self.plan.steps, self._at, self._buffers
        requests, channel, tag = self._requests, self.channel, self.tag
        while at < stop:
            self._at = at
            step: Any = steps[at]
            kind = type(step)
            if kind is Copy:
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
                buffers[NODE] = channel.segment.halves[self.half]
                self._fence = fence = self._fence or fence_lock()
                fence.release()
                fence.acquire()
            elif kind is Send:
                rank, buffer, start, nbytes, slot = step
                spec = [buffers[buffer], nbytes, start, _BYTE]
                requests[slot] = channel.isend(spec, rank, tag)
            elif kind is Post:
                rank, buffer, start, nbytes, slot = step
                spec = [buffers[buffer], nbytes, start, _BYTE]
                requests[slot] = channel.irecv(spec, rank, tag)
            elif kind is Await:
                try:
                    for slot in step[0]:  # one that is complete is so at once
                        test = requests[slot].Test
                        while not test():
                            if not waits:
                                return False
                            self._rest(SPINS)
                except MPI.Exception as error:
                    raise self._explained(error, slot) from None
            elif kind is Reduce:
                sources, target, written, elements, which = step
                op, datatype = self.call.operators[which]
                combine = op.Reduce_local
                result = buffers[target][written:], elements, datatype
                for source, read in sources:
                    combine((buffers[source][read:], elements, datatype), result)
            elif kind is LongCopy:
                source, read, target, written = step
                np.copyto(
                    np.frombuffer(buffers[target][written], np.uint8),
                    np.frombuffer(buffers[source][read], np.uint8),
                )
            elif kind is Ask:
                buffer, start, nbytes = step
                self.answer = bytes(buffers[buffer][start : start + nbytes])
                return self.only_asks or self._answered(waits)
            else:
                while not self._do_rarely(step):
                    if not waits:
                        return False
                    self._rest()
            at += 1
        self._at = at
        return True

    def _meet(self, step: Meet, waits: bool) -> bool:
        """Come to a meeting; whether all others have."""
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
            self._differ(step)
        self._awaited = None
        return True

    def _do_rarely(self, step: Step) -> bool:
        """The kinds of steps that short calls do not have; False where one would have
        to wait."""
        buffers, requests, comm = self._buffers, self._requests, self.channel.context
        if isinstance(step, Pack):
            source, target = buffers[step.source], buffers[step.target]
            self.call.packer.pack(source, step.selection, target, step.start)
        elif isinstance(step, Unpack):
            source, target = buffers[step.source], buffers[step.target]
            self.call.packer.unpack(source, step.start, target, step.selection)
        elif isinstance(step, SendTyped | PostTyped):
            kind = step.selection.datatype()
            spec = [buffers[step.buffer], 1, kind]
            if isinstance(step, SendTyped):
                request = self.channel.isend(spec, step.target, self.tag)
            else:
                request = self.channel.irecv(spec, step.source, self.tag)
            requests[step.slot] = request
            kind.Free()  # the message keeps it
        elif isinstance(step, Gather):
            starts = step.offsets[:-1]
            sizes = [b - a for a, b in pairwise(step.offsets)]
            spec = [buffers[step.buffer], sizes, starts, _BYTE]
            group = comm.local if step.is_local else comm.comm
            requests[step.slot] = group.Iallgatherv(MPI.IN_PLACE, spec)
        elif isinstance(step, Synchronize):
            requests[step.slot] = comm.comm.Ibarrier()
        elif isinstance(step, Move):
            source, target = buffers[step.source], buffers[step.target]
            self.call.packer.move(source, step.read, target, step.written)
        elif isinstance(step, AwaitSized):
            return self._has_come(step)
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

    def _has_come(self, step: AwaitSized) -> bool:
        """Whether a message has come; raise if it is shorter than it must be."""
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
        """The error of a message, in words of the call where it is too long."""
        posts = (x for x in self.plan.steps if isinstance(x, Post | PostTyped))
        post = next((x for x in posts if x.slot == slot), None)
        if post is None or error.Get_error_class() != MPI.ERR_TRUNCATE:
            return error
        nbytes = post.nbytes if isinstance(post, Post) else post.selection.nbytes
        context = self.channel.context
        return MismatchError(
            f"isthmus {self.call.name}: {context.who(post.source)} sends more than the "
            f"{nbytes} bytes that {context.who(context.number)} expects of it",
            is_agreed=False,
        )

    def _answered(self, waits: bool) -> bool:
        """Go on with the plan for the values of the call and for what was heard.

        Where the ranks do not match, all of them have heard the same and raise the
        same, so the call is over and the next one can be made.
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
        self._buffers[SAID] = plan.said or _NOTHING
        self.plan, self._at, self._requests = plan, 0, [None] * plan.slots
        if plan.transfers is not None:
            self._transfer = self.call.begin_transfer(plan)
        return self._run(len(plan.steps), waits)

    # -- the end

    def _end(self) -> None:
        """Put staged data where they belong, and give back what was lent."""
        if self.staging is not None and self.error is None:
            self.staging.stage_out()
        if self._fence is not None:  # what was read in the node memory is read
            self._fence.release()
            self._fence.acquire()
        self.channel.turns.end(self)
        if self.plan.scratch:
            self._give_scratch_back()
        self._complete()

    def _complete(self) -> None:
        """Complete the user's request; then nobody needs the memory any more."""
        if self.handle is not None:
            self.handle.complete(self)
        self._buffers, self.staging, self._transfer = [], None, None
        self.done = True  # last: whoever finds a handle open looks whether it is

    def _fail(self, error: BaseException) -> None:
        """Let nothing come after this call: its messages may be under way.

        A signal handler that raises while the rank waits in a nonblocking call ends the
        wait, not the call. In the middle of a step nobody can go on.
        """
        if self.number < 0:  # nothing was said to anybody
            self.error = error
            self._complete()
            return
        is_signal = self.handle is not None and not isinstance(error, Exception)
        if is_signal and self._step_kind in _WAITING:
            raise error
        context = self.channel.context
        what = self.call.name, self.plan.algorithm
        self.error = context.failed(error, *what, orphan=(self, self._buffers))
        if is_signal:
            self.error = RuntimeError(_INTERRUPTED)
        self._complete()
        if is_signal:
            raise error

    def _stalled(self, seconds: float) -> Stalled:
        """What to raise where this process has waited too long."""
        step, channel = self.plan.steps[self._at], self.channel
        ranks: list[int] = []
        has, round_number = "not begun", 0
        if isinstance(step, Await | AwaitSized):
            slots = step.slots if isinstance(step, Await) else self._begun()
            waiting = {k for k in slots if not self._requests[k].Get_status()}
            messages = (x for x in self.plan.steps if isinstance(x, _MESSAGES))
            peers = (_peer(x) for x in messages if x.slot in waiting)
            ranks = sorted({*peers})
            n = len(slots)
            has = f"{n - len(waiting)} of {n} messages of this round"
            round_number = step.round_number
        elif isinstance(step, Meet):
            at = self.half, self.code, step.meeting
            ranks = channel.segment.not_come(*at, step.ranges)
            n = sum(b - a for a, b in step.ranges)
            has = f"{n - len(ranks)} of {n} ranks at meeting {step.meeting}"
            round_number = step.round_number
        elif isinstance(step, Enter):
            ranks = channel.turns.not_ended(self)
        error = Stalled(seconds, ranks, has)
        error.round = round_number
        return error

    def _begun(self) -> list[int]:
        """The slots of all messages that this rank has begun."""
        return [k for k, request in enumerate(self._requests) if request is not None]

    def _differ(self, step: Meet) -> None:
        """Raise, as a rank of the node contributes another number of bytes than this
        rank expects of it."""
        context, segment = self.channel.context, self.channel.segment
        rows = segment.contributed(self.half, step.ranges)
        for (low, _), row, expected in zip(
            step.ranges, rows, step.expected or [], strict=True
        ):
            sizes = np.frombuffer(row, np.int64)
            wanted = np.frombuffer(expected, np.int64)
            for i in np.flatnonzero(sizes != wanted):
                other = context.who(segment.ranks[low + int(i)])
                raise MismatchError(
                    f"isthmus {self.call.name}: {other} contributes {sizes[i]} bytes, "
                    f"{context.who(context.number)} expects {wanted[i]} of it",
                    is_agreed=False,
                )


def _peer(message: Post | PostTyped | Send | SendTyped) -> int:
    """The number of the rank that a message comes from or goes to."""
    if isinstance(message, Post | PostTyped):
        return message.source
    return message.target
