"""The forms of a call inside one group."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from mpi4py import MPI

from ..choose import allgatherv
from ..recipe import Equal, Group, inside, listed
from ..registry import resolve
from . import buffers, forms, library
from .call import Call, check_disjoint, checked
from .context_intra import IntraContext
from .plan import Plan

_log = logging.getLogger("isthmus")
#: the call of the MPI library, on the user's communicator or on ours
NATIVE = ("native", "library")
_HINT = "; for data that are in their place already, send MPI.IN_PLACE"


def known(name: str, v: bool, p: int) -> None:
    """Refuse an algorithm that is unknown, or not made for p ranks."""
    if name not in ("auto", "native"):
        entry, _ = resolve("allgatherv", name)
        if not entry.needs(p):
            raise ValueError(f"{name!r} does not work for a group of {p}")


def prepare(
    context: IntraContext, sendbuf: Any, recvbuf: Any, algorithm: str | None, op: str
) -> Call:
    """Check the arguments of an operation, before anything is sent."""
    v = "gatherv" in op
    name = context.name(algorithm, v)

    def parse() -> Call:
        known(name, v, context.p)
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
    found = allgatherv(counts, lambda: c.machine, call.v)
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


def in_background(call: Call) -> str:
    """The algorithm of a call that goes on beside the caller; "native" where only the
    library can bring it forward."""
    if call.name == "auto" and not call.context.threads:
        return "native"
    name = settle(call)
    if name in NATIVE:
        return "native"
    forms.check_threads(call, name, "native")
    return name
