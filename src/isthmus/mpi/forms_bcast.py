"""Broadcast inside one group."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import Any

from mpi4py import MPI

from .. import choose, recipe
from ..registry import check_runs, fitting, resolve
from . import buffers, memory
from .buffers import Message
from .call import checked
from .context_intra import IntraContext
from .plan import Plan
from .room import Room

_log = logging.getLogger("isthmus")


@dataclass(frozen=True, slots=True)
class Broadcast:
    """What a rank passed to Bcast."""

    context: IntraContext
    name: str
    data: Message
    root: int

    @property
    def sent(self) -> int:
        """The bytes of the data."""
        return self.data.nbytes[0]

    @property
    def expected(self) -> dict[int, int]:
        """What is expected from the root."""
        return {self.root: self.sent}


def prepare(
    context: IntraContext, buf: Any, root: int, algorithm: str | None
) -> Broadcast:
    """Check the arguments, before anything is sent."""
    name = algorithm if algorithm is not None else context.asked_bcast

    def parse() -> Broadcast:
        if name not in ("auto", "native", "library"):
            check_runs(fitting("bcast", name, context.p))
        if not 0 <= root < context.p:
            raise ValueError(f"root {root}: there are ranks 0 to {context.p - 1}")
        data = buffers.block(buf, writable=context.number != root)
        return Broadcast(context, name, data, root)

    return checked(context, f"Bcast from {root}", name, parse)


def settle(call: Broadcast) -> str:
    """The algorithm asked for; for "auto", the one that fits the size."""
    if call.name != "auto":
        return call.name
    c = call.context
    found = choose.bcast(c.p, call.sent, lambda: c.machine, c.small)
    _log.debug("Bcast: %s", found)
    return found.name


def plan(call: Broadcast) -> Plan:
    """What this rank does; data with gaps go through scratch."""
    c, name, room = call.context, settle(call), Room()
    view = (room.source if c.number == call.root else room.target)(call.data)
    if name == "library":
        base = view.addresses[0] if view.addresses else 0
        spec = [memory.buffer(base), call.sent, MPI.BYTE]
        step = partial(c.comm.Bcast, spec, call.root)
        return Plan([], [*room.before, step], room.after, room.scratch)
    startup = c.machine.startup if "startup" in resolve("bcast", name)[0].options else 1
    found = recipe.bcast(name, call.sent, c.p, c.number, call.root, startup)
    return room.plan(found, {"recv": view}, c, 0)
