"""Plans: how one is made for a call, and how those of calls of the same values are
kept and found.

A plan whose messages go through the memory of its node serves buffers anywhere; so does
one that copies them. Others are kept by the addresses of the buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from ...choose.recipe import Recipe
from ...schedules.ir import Library, Pieces
from ..memory.memory import Given
from ..memory.node_memory import Turn
from ..operations.call import Call
from . import devices, library
from .flow import Slot
from .plan import Plan, Tag, uses_library
from .staging import Staging

#: the addresses for which a call of the same values keeps plans
PLACES = 16
#: of calls of so many bytes, it keeps them for a few, for others that come again soon,
#: and one for buffers anywhere: to copy these takes less time than to make a plan
SHORT, FEW_PLACES = 1 << 21, 4
#: so many nonblocking calls of one key, under way at once, have plans that are kept
AT_ONCE = 8


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


class Rounds(NamedTuple):
    """What calls of the same values do; None where this rank has no part in them, or
    the MPI library makes them."""

    recipe: Recipe | None = None
    #: whether it uses the memory of the node
    node: bool = False
    #: whether it does not matter where the buffers are, and whether that can be had by
    #: copies
    anywhere: bool = False
    copied: bool = False


def rounds_of(call: Call, found: Recipe | None, lasting: bool) -> Rounds:
    """What a call does by a recipe, which others of the same values may do again."""
    if found is None:  # who has no part in it reads and writes nothing
        return Rounds(anywhere=call.name != "library")
    node = found.entry.node_memory
    if not lasting or not _is_plain(call):
        return Rounds(found, node)
    return Rounds(found, node, node and _is_apart(found), not node and _is_short(call))


def _is_apart(found: Recipe) -> bool:
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


def _owner(x: Any) -> Any:
    return x[0] if isinstance(x, list) and x else x


def places_of(args: tuple[Any, ...]) -> tuple[list[Any], bool]:
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


class Plans(dict[Any, Plan]):
    """Some plans, of which the oldest is given back when there are too many. Threads
    may take them out and keep them again at the same time."""

    def __init__(self, most: int = PLACES) -> None:
        super().__init__()
        self._most = most
        #: keys of buffers that came once
        self._seen: dict[Any, None] = {}
        #: plans of calls that are under way
        self._lent: set[Plan] = set()

    def key(
        self, values: tuple[Any, ...], rounds: Rounds, places: Sequence[Any]
    ) -> tuple[tuple[Any, ...], bool]:
        """What a plan is found by, and whether it is for buffers anywhere."""
        if rounds.anywhere:
            return values, True
        key = *values, *[None if x is None else x.address for x in places]
        if rounds.copied and self._is_transient(key):
            return values, True
        return key, False

    def _is_transient(self, key: Any) -> bool:
        """Whether buffers are new, as many before them were, and may not come again."""
        seen, n = self._seen, len(self) + len(self._lent)
        if key in self or n < FEW_PLACES:
            return False
        if key in seen and n < self._most:
            del seen[key]
            return False
        seen[key] = None
        if len(seen) > self._most:
            del seen[next(iter(seen))]
        return True

    def take(self, key: Any) -> Plan | None:
        """One for a nonblocking call, if there is one that no other has."""
        found = (self.pop(x, None) for x in _each(key))
        return next((x for x in found if x is not None), None)

    def lend(self, plan: Plan) -> None:
        """A nonblocking call has it."""
        self._lent.add(plan)

    def put_back(self, key: Any, plan: Plan, keep: bool) -> None:
        """The call is over; its plan may be kept for another one."""
        self._lent.discard(plan)
        free = next((x for x in _each(key) if x not in self), None)
        if keep and free is not None:
            self.keep(free, plan)
        else:
            plan.free()

    def keep(self, key: Any, plan: Plan) -> None:
        """Keep one more."""
        self._give_back(key)
        for oldest in list(self)[: max(0, len(self) - self._most + 1)]:
            self._give_back(oldest)
        self[key] = plan

    def _give_back(self, key: Any) -> None:
        if (plan := self.pop(key, None)) is not None:
            plan.free()

    @property
    def scratch_bytes(self) -> int:
        """How much memory of our own they hold."""
        return sum(plan.scratch_bytes for plan in list(self.values()))

    def free(self) -> None:
        """Give all of them back."""
        for key in list(self):
            self._give_back(key)


def _each(key: Any) -> Iterator[Any]:
    """A key for each of the plans of calls that are under way at once."""
    yield key
    for i in range(1, AT_ONCE):
        yield i, key


class Kept:
    """What is kept for calls of the same values."""

    #: when it was used last, and the algorithm that was taken
    used, taken = 0, ""

    def __init__(self, most: int = PLACES) -> None:
        self.plans = Plans(most)

    @property
    def scratch_bytes(self) -> int:
        """How much memory of our own the plans hold."""
        return self.plans.scratch_bytes

    def free(self) -> None:
        """Give the plans back."""
        self.plans.free()
