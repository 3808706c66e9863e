"""The three forms of a call, blocking, nonblocking and persistent, on one engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from ..program import extent
from ..recipe import Recipe
from . import memory, requests
from .buffers import on_device
from .call import Call
from .context import Context
from .memory import View
from .plan import Binding, Plan, Step, bind, uses_library

#: plans with more scratch memory than this are not kept
SCRATCH = 1 << 16


class Room:
    """Where the data of a call lie: in its buffers, or in scratch where those have
    gaps; and what must be copied before, meanwhile and after."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.before: list[Step] = []
        self.meanwhile: list[Step] = []
        self.after: list[Step] = []
        self.scratch: list[np.ndarray] = []

    def fresh(self, nbytes: int) -> np.ndarray:
        """Scratch memory of that size."""
        self.scratch.append(room := memory.scratch(nbytes))
        return room

    def send(self) -> View:
        """What is sent, packed if it has gaps."""
        message = self.call.send
        assert message is not None
        found = memory.message_view(message)
        if found is None:
            room = self.fresh(self.call.sent)
            self.before.append(memory.packer(message, room))
            found = memory.scratch_view(room)
        return found

    def recv(self, fits: Callable[[View], bool]) -> View:
        """Where blocks arrive; scratch, unpacked afterwards, if that does not fit."""
        message = self.call.recv
        found = memory.message_view(message)
        if found is None or not fits(found):
            room = self.fresh(sum(message.nbytes))
            self.after.append(memory.unpacker(room, message))
            found = memory.scratch_view(room)
        return found

    def own_block(self, recv: View) -> View:
        """Put this rank's contribution where it belongs among the blocks; where the
        blocks can be sent from. If the contribution lies in one piece, that is from
        there, and the copy is made while messages are on their way."""
        call, i = self.call, self.call.context.index
        start = sum(call.recv.nbytes[:i])
        stop = start + call.sent
        there = recv.pieces(start, stop)
        if call.send is None:
            if self.after and there:
                self.before.append(
                    memory.packer(call.recv.block(i), memory.array(there[0]))
                )
            return recv
        here = memory.message_view(call.send)
        if here is None:
            if there:
                self.before.append(memory.packer(call.send, memory.array(there[0])))
            return recv
        mine = here.pieces(0, call.sent)
        self.meanwhile.append(memory.copier(mine, there))
        return memory.view(
            [*recv.pieces(0, start), *mine, *recv.pieces(stop, recv.nbytes)]
        )

    def check_device(self, name: str) -> None:
        """Refuse to copy through the host what lies on a device."""
        call = self.call
        owners = [x.owner for x in (call.send, call.recv) if x is not None]
        if any(len(x) for x in self.scratch) and any(map(on_device, owners)):
            raise ValueError(
                f"{name!r} copies these buffers through the memory of the host, and "
                "they are on a device; 'direct', 'segmented' and 'balanced' with types "
                "without gaps do not"
            )


def make_plan(call: Call, found: Recipe, tag: int) -> Plan:
    """The rounds bound to the buffers, or to scratch where those have gaps."""
    c, room = call.context, Room(call)
    one_piece = uses_library(found.rounds)
    views = {"recv": room.recv(lambda x: not one_piece or len(x.addresses) <= 1)}
    sources = {}
    if found.in_place:
        sources["recv"] = room.own_block(views["recv"])
    else:
        views["send"] = room.send()
    tmp = extent(found.rounds, "tmp") * found.units["tmp"]
    views["tmp"] = memory.scratch_view(room.fresh(tmp))
    room.check_device(found.entry.name)
    binding = Binding(views, found.units, sources)
    stages = bind(found.rounds, binding, c.comm, c.local, tag)
    return Plan(stages, room.before, room.after, room.scratch, room.meanwhile)


def blocking(c: Context, key: Any, plan: Plan) -> None:
    """Run the plan of a call; keep it where a key says what it depends on."""
    for step in plan.calls:
        step()
    if key is not None and not c.checked and plan.scratch_bytes <= SCRATCH:
        c.keep(key, plan)
    else:
        plan.free()


def once(plan: Plan) -> Iterator[Sequence[MPI.Request]]:
    """The steps of a plan that serves one call only."""
    try:
        yield from plan.steps()
    finally:
        plan.free()


def nonblocking(call: Call, plan: Plan) -> MPI.Request:
    """Start the call and give its request."""
    return requests.start(once(plan), call.context, call)


def persistent(call: Call, plan: Plan) -> MPI.Prequest:
    """A request that can be started any number of times."""
    return requests.persistent(plan.steps, plan.free, call.context, call)


def check_threads(call: Call, name: str, instead: str) -> None:
    """Refuse what only a thread of ours can bring forward, where it may not."""
    if not call.context.threads:
        raise RuntimeError(
            f"the nonblocking and persistent forms of {name!r} need "
            f"MPI_THREAD_MULTIPLE in every process; use algorithm={instead!r}"
        )
