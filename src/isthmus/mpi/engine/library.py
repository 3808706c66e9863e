"""The MPI library's own Allgather(v) inside a group.

Plans of ours call it on bytes, because some libraries choose their algorithm by the
size of the local type, and hang where ranks describe the same data by different types.
Blocks of one size, which all ranks know, are an Allgather however they are passed: that
takes less time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any

from mpi4py import MPI

from ..memory import memory
from ..memory.memory import View
from ..operations.call import Call
from .plan import Plan
from .staging import Staging


def plan(call: Call) -> Plan:
    """The call as one step; what has gaps goes through scratch."""
    if call.root is not None:
        return _bcast(call)
    if not call.recv:
        return _plan(call, Staging(), call.context.comm.Barrier)
    (into,) = call.recv
    staging, comm, sizes = Staging(), call.context.comm, into.nbytes
    irregular = min(sizes) < max(sizes)
    recv = staging.target(into, _is_near if irregular else _is_whole)
    base, displs = _places(recv, sizes)
    send = _send(call, staging, recv)
    if irregular:
        spec = [base, (list(sizes), displs), MPI.BYTE]
        step: Callable[[], Any] = partial(comm.Allgatherv, send, spec)
    else:
        step = partial(comm.Allgather, send, [base, sizes[0], MPI.BYTE])
    return _plan(call, staging, step)


def _plan(call: Call, staging: Staging, step: Callable[[], Any]) -> Plan:
    """A call of the library's as one step, with what is copied before and after."""
    steps = [*staging.before, step], staging.after, staging.scratch
    return Plan([], call.context.limit, *steps, library=True)


def _bcast(call: Call) -> Plan:
    """A Bcast of bytes."""
    staging, comm = Staging(), call.context.comm
    view = staging.source(call.send[0]) if call.send else staging.target(call.recv[0])
    base = view.addresses[0] if view.addresses else 0
    step = partial(comm.Bcast, [memory.buffer(base), call.nbytes, MPI.BYTE], call.root)
    return _plan(call, staging, step)


def _is_whole(recv: View) -> bool:
    """Whether all blocks lie in one piece, as in an Allgather."""
    return len(recv.addresses) <= 1


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


def _send(call: Call, staging: Staging, recv: View) -> Any:
    """What is sent, from where it lies, or packed if it is in pieces; MPI.IN_PLACE only
    where the user says so, as all ranks must."""
    if not call.send:
        staging.own_block(call, recv)
        return MPI.IN_PLACE
    (sent,) = call.send
    here = staging.source(sent)
    if len(here.addresses) > 1:
        packed = memory.scratch_view(staging.fresh(here.nbytes))
        pieces = here.pieces(0, here.nbytes), packed.pieces(0, here.nbytes)
        staging.before.append(memory.copier(*pieces))
        here = packed
    base = here.addresses[0] if here.addresses else 0
    return [memory.buffer(base), here.nbytes, MPI.BYTE]


def beside(call: Call, recvbuf: Any) -> Any:
    """What is received, as the MPI library's own requests take it.

    Open MPI takes two buffers of one address for MPI.IN_PLACE, wherever in them the
    blocks lie; so the address that blocks are counted from is moved by some elements.
    """
    (recv,) = call.recv
    extent = recv.datatype.Get_extent()[1]
    if not call.send or not call.v or not extent:
        return recvbuf
    (send,) = call.send
    if send.base + send.displs[0] != recv.base:
        return recvbuf
    displs = [displ // extent - memory.ASIDE for displ in recv.displs]
    base = memory.buffer(recv.base + memory.ASIDE * extent)
    return [base, (list(recv.counts), displs), recv.datatype]
