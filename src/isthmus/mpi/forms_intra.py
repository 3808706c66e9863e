"""The forms of a call inside one group."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from mpi4py import MPI

from ..choose import allgatherv, stage_for
from ..recipe import Equal, Group, inside, listed
from ..registry import check_runs, fitting, resolve
from . import buffers, forms, library
from .call import Call, check_disjoint, checked
from .context_intra import IntraContext
from .plan import Plan

_log = logging.getLogger("isthmus")
#: the call of the MPI library, on the user's communicator or on ours
NATIVE = ("native", "library")
_HINT = "; for data that are in their place already, send MPI.IN_PLACE"


def known(context: IntraContext, name: str) -> None:
    """Refuse an algorithm that is unknown, or not made for so many ranks."""
    if name not in ("auto", "native"):
        check_runs(fitting("allgatherv", name, context.p))


def prepare(
    context: IntraContext, sendbuf: Any, recvbuf: Any, algorithm: str | None, op: str
) -> Call:
    """Check the arguments of an operation, before anything is sent."""
    v = "gatherv" in op
    name = context.name(algorithm, v)

    def parse() -> Call:
        known(context, name)
        if v:
            recv = buffers.vector(recvbuf, context.p)
        else:
            recv = buffers.block(recvbuf, writable=True, n=context.p)
        if sendbuf is None or sendbuf is MPI.IN_PLACE:
            return Call(context, name, None, recv, v)
        send = buffers.block(sendbuf, writable=False)
        check_disjoint(send, recv, _HINT)
        call = Call(context, name, send, recv, v)
        _check_own(call)
        return call

    return checked(context, op, name, parse)


def _check_own(call: Call) -> None:
    """A rank must send as much as it expects of itself."""
    expected = call.recv.nbytes[call.context.index]
    if call.sent != expected:
        raise ValueError(
            f"message: this rank sends {call.sent} bytes, and has room for {expected} "
            "of its own"
        )


def _context(call: Call) -> IntraContext:
    assert isinstance(call.context, IntraContext)
    return call.context


def group(call: Call) -> Group:
    """What everyone contributes, in bytes."""
    sizes = call.recv.nbytes
    if min(sizes) == max(sizes):
        return Equal(len(sizes), sizes[0])
    return listed(sizes)


def settle(call: Call) -> str:
    """The algorithm asked for; for "auto", the one that fits the counts."""
    if call.name != "auto":
        return call.name
    c = _context(call)
    counts = np.array(call.recv.nbytes, np.int64)
    found = allgatherv(counts, lambda: c.machine, call.v, c.small)
    _log.debug("Allgather%s: %s", "v" * call.v, found)
    return found.name


def plan(call: Call, name: str, tag: int = 0) -> Plan:
    """What this rank does."""
    if name == "library":
        return library.plan(call)
    c = _context(call)
    entry, _ = resolve("allgatherv", name)
    nodes = c.nodes if "nodes" in entry.options else ()
    startup = c.machine.startup if "startup" in entry.options else 1.0
    found = inside(name, group(call), c.number, startup, nodes)
    return forms.make_plan(call, found, tag)


def blocking(call: Call, key: Any) -> None:
    """Do the call now."""
    forms.blocking(call.context, key, plan(call, settle(call)))


def at_once(call: Call) -> None:
    """Do a call that will not come again in this form."""
    blocking(call, None)


def lengths(context: IntraContext, name: str, own: int) -> np.ndarray:
    """A number of each rank: so short that the library's call is best."""
    found = np.empty(context.p, np.int64)
    context.comm.Allgather(np.array([own]), found)
    return found


def _in_background(call: Call) -> str | None:
    """The algorithm that goes on beside the caller; none where only the library can
    bring it on, or where it takes less time than a request of ours."""
    c = _context(call)
    if call.name == "auto" and (not c.threads or sum(call.recv.nbytes) < c.small):
        return None
    name = settle(call)
    if name in NATIVE:
        return None
    forms.check_threads(call.context, name, "native")
    return name


def nonblocking(call: Call) -> MPI.Request | None:
    """Start the call and give its request; none for the library's own."""
    name = _in_background(call)
    if call.name == "auto" and _context(call).p == 1:
        # a copy; MPICH 4.0 puts it at the start of the buffer, whatever the place
        name = settle(call)
    if name is None:
        return None
    return forms.nonblocking(call, plan(call, name, call.context.next_tag()))


def persistent(call: Call) -> MPI.Prequest | None:
    """Set the call up, to be started any number of times; not the library's own."""
    name = _in_background(call)
    if name is None:
        return None
    tag = call.context.lasting_tag()
    return forms.persistent(call, plan(call, name, tag), tag)


def driven(call: Call) -> MPI.Prequest:
    """The same by a request of ours, where the library has none of its own."""
    c, name = _context(call), settle(call)
    forms.check_threads(c, call.name)
    if name in NATIVE:
        name = stage_for(c.p, sum(call.recv.nbytes))
    tag = c.lasting_tag()
    return forms.persistent(call, plan(call, name, tag), tag)
