"""The three forms of every call: blocking, nonblocking and persistent, on one engine.

A call is known by its values: operation, algorithm, sizes, types, operator, root. For
these a plan is kept: rounds bound to memory. One whose messages go through the memory
of its node serves buffers anywhere; others are kept by addresses too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from ...choose.recipe import Recipe
from ...schedules.ir import Library, Pieces
from ..context.check import MismatchError
from ..context.context import SCRATCH, Context
from ..context.library_requests import holding, made_by
from ..context.progress import EMPTY, driver
from ..memory.memory import Given
from ..memory.node_memory import ROOMS, Saying, Turn
from ..memory.staged import Copies
from ..operations.call import Call
from ..operations.negotiation import Negotiation, complete
from ..waiting.bounded import bounded
from ..waiting.errors import Stalled
from ..waiting.waiting import Awaited
from . import devices, library, requests
from .devices import Slot
from .plan import Plan, Tag, uses_library
from .staging import Staging

#: a message that is complete once it is received: what a rank does without a part
_NOTHING = EMPTY, MPI.PROC_NULL
#: the addresses for which a call of the same values keeps plans
PLACES = 16
#: of calls of so many bytes, it keeps them for a few, for others that come again soon,
#: and one for buffers anywhere: to copy these takes less time than to make a plan
SHORT, FEW_PLACES = 1 << 21, 4


class Known(NamedTuple):
    """What is known of calls of the same values."""

    found: Recipe | None = None
    #: whether it uses the memory of the node
    node: bool = False
    #: whether it does not matter where the buffers are, and whether that can be had by
    #: copies
    given: bool = False
    copied: bool = False


# -- plans


def _is_given(found: Recipe) -> bool:
    """Whether no message of a call goes from or to the user's buffers, so that it does
    not matter where they are."""
    for r in found.rounds:
        for c in r.comm:
            if isinstance(c, Library):
                return False
            data = (c.data,) if isinstance(c.data, Pieces) else c.data
            if any(x.buf in ("send", "recv") for x in data):
                return False
    return True


def _is_plain(call: Call) -> bool:
    """Whether the data of a call lie in one array, or two, as they travel."""
    if call.in_place:
        return False
    ends = [x for x in (call.send, call.recv) if x]
    return all(len({m.base for m in x}) == 1 for x in ends) and all(
        type(_owner(m.owner)) is np.ndarray and m.is_dense for x in ends for m in x
    )


def _is_short(call: Call) -> bool:
    return sum(sum(m.nbytes) for m in (*call.send, *call.recv)) <= SHORT


def _is_transient(key: Any, plans: dict[Any, Plan], seen: dict[Any, None]) -> bool:
    """Whether buffers are new, as many before them were, and may not come again."""
    if key in plans or len(plans) < FEW_PLACES:
        return False
    if key in seen and len(plans) < PLACES:
        del seen[key]
        return False
    seen[key] = None
    if len(seen) > PLACES:
        del seen[next(iter(seen))]
    return True


def _owner(x: Any) -> Any:
    return x[0] if isinstance(x, list) and x else x


def make_plan(
    call: Call,
    found: Recipe | None,
    tag: int | Tag = 0,
    turn: Turn | None = None,
    given: Given | None = None,
    slot: Slot | None = None,
) -> Plan:
    """The rounds bound to the buffers, or to scratch where those have gaps; a slot has
    the copies of a call with arrays on a device."""
    if call.name == "library":
        plan = library.plan(call)
        return plan if slot is None else devices.whole(plan, slot)
    if found is None:
        return Plan([], call.context.limit)
    staging = Staging(given, copied=turn is None)
    views: dict[str, Any] = {}
    sources: dict[str, Any] = {}
    if call.operator is not None:
        ends = [staging.elements(x, copy=call.in_place) for x in call.send]
        targets = [staging.elements(x, back=True) for x in call.recv]
    else:
        one_piece = uses_library(found.rounds)
        targets = [
            staging.target(x, lambda x: not one_piece or len(x.addresses) <= 1)
            for x in call.recv
        ]
        own = found.in_place and call.recv and call.root is None
        if own:  # what this rank contributes belongs among the blocks
            sources = {"recv": staging.own_block(call, targets[0])}
        ends = [] if own else [staging.source(x, call.in_place) for x in call.send]
    if targets:
        views["recv"] = staging.joined(targets)
    if ends:
        views["recv" if found.in_place else "send"] = staging.joined(ends)
    more = {"sources": sources, "operator": call.operator}
    return staging.plan(found, views, call.context, tag, turn, slot, **more)


# -- blocking


class CachedCall:
    """What is kept for blocking calls of the same values."""

    #: counts calls until the candidates of the operation are tried
    untried: Any = None

    def __init__(
        self, op: str, name: str, call: Call, keep: bool, slot: Slot | None = None
    ) -> None:
        self._op, self._name, self.slot = op, name, slot
        self.context, self.negotiation = call.context, call.negotiation
        #: where others are asked, in each room; None where in messages
        self._sayings: dict[int, Saying | None] = {}
        self.counted, self.among = call.counted, call.among
        self.recipe, self.keep = call.recipe, keep and not call.context.checked
        self.used = 0
        self.plans: dict[Any, Plan] = {}
        self._seen: dict[Any, None] = {}
        #: by what others said
        self._rounds: dict[Any, Known] = {}
        self._last = Known()

    @property
    def taken(self) -> str:
        """The algorithm that was taken last."""
        found = self._last.found
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
            places, doubtful = _places(args)
            if doubtful:
                call = call or comm._read(self._op, self._name, args)
        self.used = c.clock = c.clock + 1
        heard, number = (), memory.calls
        if self.negotiation is not None:
            heard = self._ask(memory.take())
        known = self._rounds.get(heard)
        if known is None:
            call = call or comm._read(self._op, self._name, args)
            known = self._known(heard, number, call)
        self._last = known
        room = number % ROOMS if known.node else None
        key, given = _key((heard, room), known, places, self.plans, self._seen)
        plan = self.plans.get(key)
        if plan is None:
            call = call or comm._read(self._op, self._name, args)
            plan = self._bind(key, known.found, room, call, given)
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
            if plan.stages or known.node or stopped:
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

    def _known(self, heard: Any, number: int, call: Call) -> Known:
        answer: tuple[Any, ...] = ()
        if self.negotiation is not None:
            answer = _read(self.negotiation, heard, self.context, number)
        found = None if self.recipe is None else self.recipe(*answer)
        node = found is not None and found.entry.node_memory
        # who has no part in it reads and writes nothing
        given = found is None and call.name != "library"
        copied = False
        if found is not None and self.keep and self.slot is None and _is_plain(call):
            given = node and _is_given(found)
            copied = not node and _is_short(call)
        known = Known(found, node, given, copied)
        if self.keep:
            if len(self._rounds) >= PLACES:
                self._rounds.clear()
            self._rounds[heard] = known
        return known

    def _bind(
        self,
        key: Any,
        found: Recipe | None,
        room: int | None,
        call: Call,
        given: bool,
    ) -> Plan:
        """A plan for other buffers, or anywhere, or the other room of the memory."""
        turn = None if room is None else self.context.turn(room, self.among)
        plan = make_plan(call, found, 0, turn, Given() if given else None, self.slot)
        if plan.scratch_bytes > SCRATCH:
            self.keep = False
        if len(self.plans) >= PLACES:
            self.plans.pop(next(iter(self.plans))).free()
        self.plans[key] = plan
        return plan

    @property
    def scratch_bytes(self) -> int:
        """How much memory of our own the plans hold."""
        return sum(plan.scratch_bytes for plan in self.plans.values())

    def free(self) -> None:
        """Give the plans back."""
        for plan in self.plans.values():
            plan.free()
        self.plans.clear()


def _places(args: tuple[Any, ...]) -> tuple[list[Any], bool]:
    """Where the buffers of a call lie, and whether they may be wrong, so that they are
    to be read: one has gaps or is read-only, or two have memory in common."""
    found: list[Any] = []
    doubtful = False
    for x in args:
        array = x[0] if type(x) is list and x else x
        if type(array) is np.ndarray:
            try:
                place = MPI.memory(array)
            except (BufferError, ValueError):  # it has gaps
                return [], True
            doubtful |= place.readonly
            found.append(place)
        elif x is None or x is MPI.IN_PLACE:
            found.append(None)
    if len(found) > 1 and None not in found:
        a, b = found[:2]
        x, y = a.address, b.address
        doubtful |= x < y + b.nbytes and y < x + a.nbytes
    return found, doubtful


def _addresses(places: Sequence[Any]) -> list[int | None]:
    return [None if x is None else x.address for x in places]


def _key(
    values: tuple[Any, ...],
    known: Known,
    places: Sequence[Any],
    plans: dict[Any, Plan],
    seen: dict[Any, None],
) -> tuple[tuple[Any, ...], bool]:
    """What a plan is found by, and whether it is for buffers anywhere."""
    if known.given:
        return values, True
    key = *values, *_addresses(places)
    if known.copied and _is_transient(key, plans, seen):
        return values, True
    return key, False


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


def is_lasting(call: Call) -> bool:
    """Whether nonblocking calls of the same values have the same rounds."""
    own = call.recipe is not None and call.alltoallw is None
    return own and call.negotiation is None


class CachedStart:
    """What is kept for nonblocking calls of the same values: plans, each of which
    serves one call at a time."""

    used, taken = 0, ""
    _is_freed = False

    def __init__(self, op: str, native: str, name: str, call: Call) -> None:
        """Of a call that need not ask what others pass; by the name of an operation, of
        its nonblocking form and of the algorithm that was asked for."""
        assert call.recipe is not None
        check_threads(call.context, call.name)
        self.context, self.counted, self.among = call.context, call.counted, call.among
        self._asked, self._what = (op, native, name), (native, call.name)
        self._recipe = call.recipe()
        node, plain = self._recipe.entry.node_memory, _is_plain(call)
        given = plain and node and _is_given(self._recipe)
        copied = plain and not node and _is_short(call)
        self._known = Known(self._recipe, node, given, copied)
        self.plans: dict[Any, Plan] = {}
        self._seen: dict[Any, None] = {}

    def start(
        self, comm: Any, args: tuple[Any, ...], call: Call | None = None
    ) -> MPI.Request:
        """Start a call; its arguments may have been read."""
        c, memory = self.context, self.context.memory
        places, doubtful = _places(args)
        room = memory.calls % ROOMS if self._known.node else None
        key, given = _key((room,), self._known, places, self.plans, self._seen)
        if doubtful or key not in self.plans:
            call = call or comm._read_nonblocking(*self._asked, args)
        plan = self.plans.pop(key, None)
        if plan is None:  # or was given back just now
            call = call or comm._read_nonblocking(*self._asked, args)
            turn = None if room is None else c.turn(room, self.among)
            tag = Tag()
            found = Given() if given else None
            plan = make_plan(call, self._recipe, tag, turn, found)
            plan.tag = tag
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
        if self._is_freed or plan.scratch_bytes > SCRATCH:
            plan.free()
            return
        for oldest in list(self.plans)[: len(self.plans) - PLACES + 1]:
            if (other := self.plans.pop(oldest, None)) is not None:
                other.free()
        self.plans[key] = plan

    @property
    def scratch_bytes(self) -> int:
        """How much memory of our own the plans hold."""
        return sum(plan.scratch_bytes for plan in list(self.plans.values()))

    def free(self) -> None:
        """Give the plans back; those of calls under way when these are over."""
        self._is_freed = True
        for key in list(self.plans):
            if (plan := self.plans.pop(key, None)) is not None:
                plan.free()


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
