"""Where the data of a call lie while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from ..program import extent
from ..recipe import Recipe
from . import memory
from .buffers import Message
from .call import Call
from .context import Context
from .device import on_device
from .memory import View
from .plan import Binding, Plan, Step, bind


def _anything(view: View) -> bool:
    return True


class Room:
    """Where the data of a call lie: in its buffers, or in scratch where those have
    gaps; and what must be copied before, meanwhile and after."""

    def __init__(self) -> None:
        self.before: list[Step] = []
        self.meanwhile: list[Step] = []
        self.after: list[Step] = []
        self.scratch: list[np.ndarray] = []
        self.owners: list[Any] = []

    def fresh(self, nbytes: int) -> np.ndarray:
        """Scratch memory of that size."""
        self.scratch.append(room := memory.scratch(nbytes))
        return room

    def source(self, message: Message) -> View:
        """What is sent, packed if it has gaps."""
        self.owners.append(message.owner)
        found = memory.message_view(message)
        if found is None:
            room = self.fresh(sum(message.nbytes))
            self.before.append(memory.packer(message, room))
            found = memory.scratch_view(room)
        return found

    def target(
        self, message: Message, fits: Callable[[View], bool] = _anything
    ) -> View:
        """Where blocks arrive; scratch, unpacked afterwards, if that does not fit."""
        self.owners.append(message.owner)
        found = memory.message_view(message)
        if found is None or not fits(found):
            room = self.fresh(sum(message.nbytes))
            self.after.append(memory.unpacker(room, message))
            found = memory.scratch_view(room)
        return found

    def elements(self, message: Message, back: bool = False) -> View:
        """Elements as an operator takes them, side by side: to be read, or to be
        written (back) where they have gaps."""
        self.owners.append(message.owner)
        found = memory.message_view(message)
        if found is None:
            (n,), extent = message.counts, message.datatype.Get_extent()[1]
            room = self.fresh(n * extent)
            found = memory.scratch_view(room)
            address = MPI.memory(room).address
            inside = Message(room, address, message.datatype, (n,), (0,))
            if back:
                self.after.append(memory.converter(inside, message))
            else:
                self.before.append(memory.converter(message, inside))
        return found

    @staticmethod
    def joined(views: Sequence[View]) -> View:
        """Several views one after the other."""
        if len(views) == 1:
            return views[0]
        return memory.view([x for v in views for x in v.pieces(0, v.nbytes)])

    def own_block(self, call: Call, recv: View) -> View:
        """Put this rank's contribution where it belongs among the blocks; where the
        blocks can be sent from. If the contribution lies in one piece, that is from
        there, and the copy is made while messages are on their way."""
        i = call.context.index
        start = sum(call.recv.nbytes[:i])
        stop = start + call.sent
        there = recv.pieces(start, stop)
        if call.send is None:
            if self.after and there:
                self.before.append(
                    memory.packer(call.recv.block(i), memory.array(there[0]))
                )
            return recv
        self.owners.append(call.send.owner)
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

    def plan(
        self, found: Recipe, views: dict[str, View], c: Context, tag: int, **more: Any
    ) -> Plan:
        """The rounds bound to the buffers, with scratch for what passes through."""
        tmp = extent(found.rounds, "tmp") * found.units.get("tmp", 1)
        views["tmp"] = memory.scratch_view(self.fresh(tmp))
        self.check_device(found.entry.name)
        at = Binding(views, found.units, **more)
        # a recorded call has one request for each message; so has one with a tag, which
        # is not blocking and must send nothing until it is started
        cut = 0 if c.recorder else c.cut
        inline = 0 if c.recorder or tag else c.inline
        stages = bind(found.rounds, at, c.comm, c.local, tag, cut, inline)
        plan = Plan(stages, self.before, self.after, self.scratch, self.meanwhile)
        if c.recorder is not None:
            c.recorder.watch(plan, found)
        return plan

    def check_device(self, name: str) -> None:
        """Refuse to copy through the host what lies on a device."""
        if any(len(x) for x in self.scratch) and any(map(on_device, self.owners)):
            raise ValueError(
                f"{name!r} copies these buffers through the memory of the host, and "
                "they are on a device; 'direct', 'segmented' and 'balanced' with types "
                "without gaps do not"
            )
