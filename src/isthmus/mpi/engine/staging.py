"""Where the data of a call lie while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from mpi4py import MPI

from ...choose.recipe import Recipe
from ...schedules.program import extent
from ..context.context import Context
from ..memory import memory
from ..memory.buffers import Message
from ..memory.memory import Given, View
from ..memory.node_memory import Turn
from ..operations.call import Call
from . import devices
from .flow import Slot
from .plan import Binding, Plan, Step, Tag, bind, uses_library


def _anything(view: View) -> bool:
    return True


class Staging:
    """Where the data of a call lie: in its buffers, or in scratch where those have
    gaps; and what must be copied before, meanwhile and after."""

    def __init__(self, given: Given | None = None, copied: bool = False) -> None:
        """Of a plan for buffers anywhere, where in these the data lie; in scratch, if
        they are copied."""
        self.given, self._copied = given, copied and given is not None
        self.before: list[Step] = []
        self.meanwhile: list[Step] = []
        self.after: list[Step] = []
        self.scratch: list[np.ndarray] = []
        #: what is copied meanwhile: from where, to where
        self._moves: list[tuple[Any, Any]] = []

    def _view(self, message: Message) -> View | None:
        """Where the data of a message lie."""
        if self.given is not None:
            message = replace(message, base=0)
        return memory.message_view(message)

    def fresh(self, nbytes: int) -> np.ndarray:
        """Scratch memory of that size."""
        self.scratch.append(room := memory.scratch(nbytes))
        return room

    def source(self, message: Message, copy: bool = False) -> View:
        """What is sent, packed if it has gaps or must be a copy."""
        found = self._view(message)
        if found is not None and self._copied:
            return self._brought(found)
        if found is None or copy:
            room = self.fresh(sum(message.nbytes))
            self.before.append(memory.packer(message, room))
            found = memory.scratch_view(room)
        return found

    def _brought(self, data: View, back: bool = False) -> View:
        """Scratch for data that are copied from the buffers of a call, or to them."""
        assert self.given is not None
        found = memory.scratch_view(self.fresh(data.nbytes))
        there, here = (x.pieces(0, data.nbytes) for x in (data, found))
        if back:
            step = memory.given_copier(self.given, here, there, "", "recv")
            self.after.append(step)
        else:
            step = memory.given_copier(self.given, there, here, "send", "")
            self.before.append(step)
        return found

    def target(
        self, message: Message, fits: Callable[[View], bool] = _anything
    ) -> View:
        """Where blocks arrive; scratch, unpacked afterwards, if that does not fit."""
        found = self._view(message)
        if found is not None and self._copied:
            return self._brought(found, back=True)
        if found is None or not fits(found):
            room = self.fresh(sum(message.nbytes))
            self.after.append(memory.unpacker(room, message))
            found = memory.scratch_view(room)
        return found

    def elements(
        self, message: Message, back: bool = False, copy: bool = False
    ) -> View:
        """Elements as an operator takes them, side by side: to be read, or to be
        written (back) where they have gaps; in any case, if it must be a copy."""
        found = self._view(message)
        if found is not None and self._copied:
            return self._brought(found, back)
        if found is None or copy:
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
        i, (into,) = call.context.index, call.recv
        start = sum(into.nbytes[:i])
        stop = start + into.nbytes[i]
        there = recv.pieces(start, stop)
        if not call.send:
            if self.after and there:
                self.before.append(memory.packer(into.block(i), memory.array(there[0])))
            return recv
        (send,) = call.send
        here = self._view(send)
        if here is None:
            if there:
                self.before.append(memory.packer(send, memory.array(there[0])))
            return recv
        mine = here.pieces(0, stop - start)
        if self.given is not None:
            ends = mine, there, "send", "" if self._copied else "recv"
            self.before.append(memory.given_copier(self.given, *ends))
            return recv
        self.meanwhile.append(memory.copier(mine, there))
        self._moves.append((mine, there))
        return memory.view(
            [*recv.pieces(0, start), *mine, *recv.pieces(stop, recv.nbytes)]
        )

    def plan(
        self,
        found: Recipe,
        views: dict[str, View],
        c: Context,
        tag: int | Tag,
        turn: Turn | None = None,
        slot: Slot | None = None,
        **more: Any,
    ) -> Plan:
        """The rounds bound to the buffers, with scratch for what passes through, and
        the memory of the node; to the host memory that stands for arrays on a device,
        where a slot has such."""
        tmp = extent(found.rounds, "tmp") * found.units.get("tmp", 1)
        views["tmp"] = memory.scratch_view(self.fresh(tmp))
        if turn is not None:
            size, base = turn.memory.room, turn.memory.bases[turn.room]
            assert extent(found.rounds, "node") * found.units["node"] <= size
            views["node"] = memory.view([(base, size)])
            if more.get("sources") and self.meanwhile:
                # the memory of the node is filled from where blocks belong
                self.before += self.meanwhile
                self.meanwhile = []
        given = None if self._copied else self.given
        at = Binding(views, found.units, given=given, **more)
        # a recorded call has one request for each message; so has one with a tag, which
        # is not blocking and must send nothing until it is started
        cut = 0 if c.recorder else c.cut
        if slot is not None and self._is_traced(found) and c.recorder is None:
            assert isinstance(tag, int)
            return self._staged(found, at, c, tag, cut, turn, slot)
        inline = 0 if c.recorder or tag else c.inline
        stages = bind(found.rounds, at, c.comm, c.local, tag, cut, inline, turn)
        steps = self.before, self.after, self.scratch, self.meanwhile
        plan = Plan(stages, c.limit, *steps, turn, self.given)
        if c.recorder is not None:
            c.recorder.watch(plan, found)
        return plan if slot is None else devices.whole(plan, slot)

    def _is_traced(self, found: Recipe) -> bool:
        """Whether it is known of every step which memory it reads and writes."""
        copies = len(self.before) + len(self.meanwhile)
        opaque = copies > len(self._moves) or self.after
        return not (opaque or uses_library(found.rounds))

    def _staged(
        self,
        found: Recipe,
        at: Binding,
        c: Context,
        tag: int,
        cut: int,
        turn: Turn | None,
        slot: Slot,
    ) -> Plan:
        """The plan that copies from and to devices while messages are on their way."""
        steps = [*self.before, *self.meanwhile]
        moves = [(*ends, step) for ends, step in zip(self._moves, steps, strict=True)]
        made, flow = devices.bind(found.rounds, at, c.comm, tag, cut, turn, slot, moves)
        ends = [flow.begin], [flow.end], self.scratch
        return Plan(made, c.limit, *ends, turn=turn)
