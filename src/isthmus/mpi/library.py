"""The MPI library's own Allgather(v) inside a group, on bytes.

Bytes, because some libraries choose their algorithm by the size of the local type, and
hang where ranks describe the same data by different types.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any

from mpi4py import MPI

from . import memory
from .call import Call
from .memory import View
from .plan import Plan
from .room import Room


def plan(call: Call) -> Plan:
    """The call as one step; what has gaps goes through scratch."""
    room, comm = Room(), call.context.comm
    recv = room.target(call.recv, _is_near)
    base, displs = _places(recv, call.recv.nbytes)
    send = _send(call, room, recv)
    room.check_device("library")
    if call.v:
        into: list[Any] = [base, (list(call.recv.nbytes), displs), MPI.BYTE]
        step: Callable[[], Any] = partial(comm.Allgatherv, send, into)
    else:
        into = [base, call.recv.nbytes[0], MPI.BYTE]
        step = partial(comm.Allgather, send, into)
    return Plan([], [*room.before, step], room.after, room.scratch)


def _is_near(recv: View) -> bool:
    """Whether an int can say how far apart the places are."""
    places = recv.addresses or (0,)
    return max(places) - min(places) + recv.nbytes <= memory.LIMIT


def _places(recv: View, nbytes: tuple[int, ...]) -> tuple[Any, list[int]]:
    """A base, and where each block lies from there."""
    base = min(recv.addresses, default=0)
    starts = accumulate(nbytes[:-1], initial=0)
    found = [recv.pieces(at, at + n) for at, n in zip(starts, nbytes, strict=True)]
    displs = [pieces[0][0] - base if pieces else 0 for pieces in found]
    return memory.buffer(base), displs


def _send(call: Call, room: Room, recv: View) -> Any:
    """What is sent, from where it lies; else from its place among the blocks."""
    here = memory.message_view(call.send) if call.send is not None else None
    if here is not None and len(here.addresses) <= 1:
        base = here.addresses[0] if here.addresses else 0
        return [memory.buffer(base), here.nbytes, MPI.BYTE]
    room.own_block(call, recv)
    room.before += room.meanwhile
    return MPI.IN_PLACE
