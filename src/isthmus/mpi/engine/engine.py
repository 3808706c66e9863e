"""The three forms of every call: blocking, nonblocking and persistent, on one engine.

A call is known by its values: operation, algorithm, sizes, types, operator, root. For
these, plans are kept: rounds bound to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from mpi4py import MPI

from ...choose.recipe import Recipe
from ..context.check import MismatchError
from ..context.context import SCRATCH, Context
from ..context.library_requests import holding, made_by
from ..context.progress import EMPTY, driver
from ..memory.memory import Given
from ..memory.node_memory import ROOMS, Saying
from ..memory.staged import Copies
from ..operations.call import Call
from ..operations.negotiation import Negotiation, complete
from ..waiting.bounded import bounded
from ..waiting.errors import Stalled
from ..waiting.waiting import Awaited
from . import devices, requests
from .flow import Slot
from .native import AlltoallwStart
from .plan import Plan, Tag
from .plans import PLACES, Kept, Rounds, make_plan, places_of, rounds_of

#: a message that is complete once it is received: what a rank does without a part
_NOTHING = EMPTY, MPI.PROC_NULL


# -- blocking


class CachedCall(Kept):
    """What is kept for blocking calls of the same values."""

    #: counts calls until the candidates of the operation are tried
    untried: Any = None

    def __init__(
        self, op: str, name: str, call: Call, keep: bool, slot: Slot | None = None
    ) -> None:
        super().__init__()
        self._op, self._name, self.slot = op, name, slot
        self.context, self.negotiation = call.context, call.negotiation
        #: where others are asked, in each room; None where in messages
        self._sayings: dict[int, Saying | None] = {}
        self.counted, self.among = call.counted, call.among
        self.recipe, self.keep = call.recipe, keep and not call.context.checked
        #: by what others said
        self._rounds: dict[Any, Rounds] = {}
        self._last = Rounds()

    @property
    def taken(self) -> str:  # type: ignore[override]
        """The algorithm that was taken last."""
        found = self._last.recipe
        return "library" if found is None else found.entry.name

    def run(
        self,
        comm: Any,
        args: tuple[Any, ...],
        call: Call | None = None,
    ) -> None:
        """Make the call; its arguments may have been read."""
        c, memory = self.context, self.context.memory
        places: list[Any] = []
        if self.keep:
            places, doubtful = places_of(args)
            if doubtful:
                call = call or comm._read(self._op, self._name, args)
        self.used = c.clock = c.clock + 1
        heard, number = (), memory.calls
        if self.negotiation is not None:
            heard = self._ask(memory.take())
        rounds = self._rounds.get(heard)
        if rounds is None:
            call = call or comm._read(self._op, self._name, args)
            rounds = self._rounds_of(call, heard, number)
        self._last = rounds
        room = number % ROOMS if rounds.node else None
        key, anywhere = self.plans.key((heard, room), rounds, places)
        plan = self.plans.get(key)
        if plan is None:
            call = call or comm._read(self._op, self._name, args)
            plan = self._bind(key, rounds.recipe, room, call, anywhere)
        if plan.turn is not None:
            plan.turn.number = number
            if self.negotiation is None:
                memory.take()
        elif self.negotiation is not None:
            memory.done(number)
        elif self.counted:
            memory.skip()
        if plan.given is not None:
            plan.given.fill(places)
        try:
            plan.run()
        except BaseException as error:
            stopped = isinstance(error, Stalled) or c.has_lost(error)
            if plan.stages or rounds.node or stopped:
                driver.failed.append((plan, args, call))
                raise c.failed(error, self._op, self.taken) from None
            raise
        if plan.given is not None:
            plan.given.clear()
        if not self.keep:
            self.free()

    def _ask(self, number: int) -> Any:
        """What others say before a call, by its number."""
        assert self.negotiation is not None
        c, room = self.context, number % ROOMS
        try:
            if room not in self._sayings:
                self._sayings[room] = self.negotiation.meeting(c, room)
            asking = self.negotiation.ask(self._sayings[room], number)
            return complete(asking, c.limit)
        except BaseException as error:
            raise c.failed(error, self._op, self._name) from None

    def _rounds_of(self, call: Call, heard: Any, number: int) -> Rounds:
        answer: tuple[Any, ...] = ()
        if self.negotiation is not None:
            answer = _read(self.negotiation, heard, self.context, number)
        found = None if self.recipe is None else self.recipe(*answer)
        rounds = rounds_of(call, found, self.keep and self.slot is None)
        if self.keep:
            if len(self._rounds) >= PLACES:
                self._rounds.clear()
            self._rounds[heard] = rounds
        return rounds

    def _bind(
        self,
        key: Any,
        found: Recipe | None,
        room: int | None,
        call: Call,
        anywhere: bool,
    ) -> Plan:
        """A plan for other buffers, or anywhere, or the other room of the memory."""
        turn = None if room is None else self.context.turn(room, self.among)
        given = Given() if anywhere else None
        plan = make_plan(call, found, 0, turn, given, self.slot)
        if plan.scratch_bytes > SCRATCH:
            self.keep = False
        self.plans.keep(key, plan)
        return plan


def once(call: Call) -> None:
    """Make a call that will not come again in this form."""
    CachedCall("", call.name, call, keep=False).run(None, (), call)


# -- nonblocking


def _read(asked: Negotiation, heard: Any, c: Context, number: int) -> tuple[Any, ...]:
    """What was heard before a call, which is over where ranks differ in what they pass:
    all of them raise that, and go on."""
    try:
        return asked.read(heard)
    except MismatchError:
        c.memory.done(number)
        raise


def _negotiating(
    call: Call, number: int, tag: int, slot: Slot | None = None
) -> Iterator[Awaited]:
    """The steps of a call that must ask first, and so may not need its room."""
    c, asked = call.context, call.negotiation
    assert asked is not None
    heard = yield from asked.ask(asked.meeting(c, number % ROOMS), number, tag)
    plan = _numbered(call, _read(asked, heard, c, number), number, tag, slot)
    if plan.turn is None:
        c.memory.done(number)
    yield from _running(plan)


def _running(plan: Plan) -> Iterator[Awaited]:
    """The steps of a plan that serves one call only."""
    yield from plan.steps()
    # not in a `finally`, which the garbage collector may run, inside MPI perhaps; and
    # where a step fails, requests may be under way
    plan.free()


def _numbered(
    call: Call, answer: tuple[Any, ...], number: int, tag: int, slot: Slot | None
) -> Plan:
    """The plan of a call with a number."""
    found = None if call.recipe is None else call.recipe(*answer)
    if found is None or not found.entry.node_memory:
        return make_plan(call, found, tag, slot=slot)
    turn = call.context.turn(number % ROOMS, call.among)
    turn.number = number
    return make_plan(call, found, tag, turn, slot=slot)


class CachedStart(Kept):
    """What is kept for nonblocking calls of the same values: plans, each of which
    serves one call at a time."""

    _is_freed = False

    def __init__(self, op: str, native: str, name: str, call: Call) -> None:
        """Of a call that need not ask what others pass."""
        super().__init__()
        assert call.recipe is not None
        check_threads(call.context, call.name)
        self.context, self.counted, self.among = call.context, call.counted, call.among
        self._asked, self._what = (op, native, name), (native, call.name)
        self._rounds = rounds_of(call, call.recipe(), True)

    def start(
        self, comm: Any, args: tuple[Any, ...], call: Call | None = None
    ) -> MPI.Request:
        """Start a call; its arguments may have been read."""
        c, memory = self.context, self.context.memory
        places, doubtful = places_of(args)
        room = memory.calls % ROOMS if self._rounds.node else None
        key, anywhere = self.plans.key((room,), self._rounds, places)
        if doubtful:
            call = call or comm._read_nonblocking(*self._asked, args)
        plan = self.plans.take(key)
        if plan is None:
            call = call or comm._read_nonblocking(*self._asked, args)
            turn = None if room is None else c.turn(room, self.among)
            tag, given = Tag(), Given() if anywhere else None
            plan = make_plan(call, self._rounds.recipe, tag, turn, given)
            plan.tag = tag
        self.plans.lend(plan)
        self.used = c.clock = c.clock + 1
        plan.tag.value = c.next_tag()
        if plan.turn is not None:
            plan.turn.number = memory.take()
        elif self.counted:
            memory.skip()
        if plan.given is not None:
            plan.given.fill(places)
        return requests.start(self._running(plan, key), c, (args, call), self._what)

    def _running(self, plan: Plan, key: Any) -> Iterator[Awaited]:
        """The steps of a call; then its plan is there for another one."""
        yield from plan.steps()
        if plan.given is not None:
            plan.given.clear()
        keep = not self._is_freed and plan.scratch_bytes <= SCRATCH
        self.plans.put_back(key, plan, keep)

    def free(self) -> None:
        """Give the plans back; those of calls under way when these are over."""
        self._is_freed = True
        super().free()


def kept_start(
    op: str, native: str, name: str, call: Call
) -> AlltoallwStart | CachedStart | None:
    """What is kept for nonblocking calls of the same values, if they are started alike;
    by the name of an operation, of its nonblocking form and of the algorithm that was
    asked for."""
    if call.negotiation is not None:
        return None
    if call.alltoallw is not None:
        return AlltoallwStart(op, native, name, call)
    return None if call.recipe is None else CachedStart(op, native, name, call)


def check_threads(context: Context, name: str) -> None:
    """Refuse what only a thread of ours can bring forward, where it may not."""
    if not context.threads:
        raise RuntimeError(
            f"the nonblocking and persistent forms of {name!r} need "
            "MPI_THREAD_MULTIPLE in every process"
        )


def nonblocking(
    call: Call, tag: int, op: str = "", copies: Copies | None = None
) -> MPI.Request:
    """Start a call and give its request; with copies of arrays on a device."""
    c, memory = call.context, call.context.memory
    slot = None if copies is None else Slot(copies)
    if call.alltoallw is not None and call.negotiation is None:
        if call.counted:
            memory.skip()
        if copies is not None:
            return devices.beside(
                partial(c.comm.Ialltoallw, *call.alltoallw()), copies, c
            )
        native = c.comm.Ialltoallw(*call.alltoallw())
        return c.request(native, (call, native))  # type: ignore[no-any-return]
    if call.recipe is None:
        memory.skip()
        return c.comm.Irecv(*_NOTHING)  # type: ignore[no-any-return]
    check_threads(c, call.name)
    what = op, call.name
    if call.negotiation is not None:
        steps = _negotiating(call, memory.take(), tag, slot)
        return requests.start(steps, c, (call, slot), what)
    plan = _numbered(call, (), memory.calls, tag, slot)
    if plan.turn is not None:
        memory.take()
    elif call.counted:
        memory.skip()
    return requests.start(_running(plan), c, (call, slot), what)


# -- persistent


def persistent(
    call: Call,
    tag: int,
    read: Callable[[Any], Call],
    op: str = "",
    copies: Copies | None = None,
) -> MPI.Prequest:
    """Set a call up, to be started any number of times; with copies of arrays on a
    device at every start. `read` reads it again, for another context."""
    c, slot = call.context, None if copies is None else Slot(copies)
    if call.recipe is None:
        # With MPICH 4.0, a persistent message from nobody spoils the persistent
        # collective that is made after it.
        alone = made_by(MPI.COMM_SELF.Barrier_init)
        return alone or c.comm.Recv_init(*_NOTHING)
    answer: tuple[Any, ...] = ()
    if call.negotiation is not None:
        with c.uninterrupted():
            heard = complete(call.negotiation.by_messages(tag), c.limit)
            answer = call.negotiation.read(heard)
    native = single(call, answer)
    if native is not None:
        if copies is not None:
            return devices.again(native, copies, c)
        return c.request(native, (call, native))  # type: ignore[no-any-return]
    check_threads(c, call.name)
    found = call.recipe(*answer)
    if not found.entry.node_memory:
        made = make_plan(call, found, tag, slot=slot)
        if made.only_request is not None:
            return holding(made.only_request, (call, made), c)
        return requests.persistent([made], c, (call, slot), (op, call.name))
    with c.uninterrupted():
        memory = bounded(partial(c.own_memory, call.among, tag), c.limit)
    if memory is None:  # for anybody
        apart, memory = c.apart()
        call = replace(read(apart), context=c)
        assert call.recipe is not None
        found = call.recipe(*answer)
    turns = [c.turn(k, call.among, memory) for k in range(ROOMS)]
    plans = [make_plan(call, found, tag, turn, slot=slot) for turn in turns]
    return requests.persistent(plans, c, (call, slot), (op, call.name))


def single(call: Call, answer: tuple[Any, ...]) -> MPI.Prequest | None:
    """The one request of the MPI library that does it, if it has such requests."""
    native = None if call.own is None else call.own(call, *answer)
    if native is None and call.alltoallw is not None:
        native = made_by(call.context.comm.Alltoallw_init, *call.alltoallw())
    return native
