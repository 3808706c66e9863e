"""The forms of a call between two groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
from mpi4py import MPI

from ..recipe import Group, Sizes, between, settle
from ..registry import check_runs, resolve
from . import buffers, forms, requests
from .buffers import Message
from .call import Call, check_disjoint, checked
from .context_inter import InterContext
from .counts import Question, alone, complete
from .plan import Plan
from .whole import alltoallw, of_both


def known(context: InterContext, name: str, v: bool = True) -> None:
    """Refuse an unknown algorithm."""
    if name not in ("auto", "native"):
        check_runs(resolve("inter_allgatherv" if v else "inter_allgather", name)[0])


def prepare(
    context: InterContext, sendbuf: Any, recvbuf: Any, algorithm: str | None, op: str
) -> Call:
    """Check the arguments of an operation, before anything is sent."""
    v = "gatherv" in op
    name = context.name(algorithm, v)

    def parse() -> Call:
        known(context, name, v)
        return Call(context, name, *messages(context, sendbuf, recvbuf, v), v)

    return checked(context, op, name, parse)


def messages(
    context: InterContext, sendbuf: Any, recvbuf: Any, v: bool
) -> tuple[Message, Message]:
    """What is sent to each of the other group, and received from them."""
    send = buffers.block(sendbuf, writable=False)
    if v:
        recv = buffers.vector(recvbuf, context.there)
    else:
        recv = buffers.block(recvbuf, writable=True, n=context.there)
    check_disjoint(send, recv)
    return send, recv


def sizes(call: Call, own: Group | None = None) -> Sizes:
    """Everyone's bytes; of an irregular call, once the own group is known."""
    return _context(call).sizes(call.sent, call.recv.nbytes, own)


def _context(call: Call) -> InterContext:
    assert isinstance(call.context, InterContext)
    return call.context


def plan(call: Call, own: Group | None, tag: int = 0) -> Plan:
    """What this rank does."""
    c = _context(call)
    found = between(call.name, sizes(call, own), c.number, c.machine)
    return forms.make_plan(call, found, tag)


def question(call: Call) -> Question:
    """What an irregular call must ask first."""
    return Question(_context(call), call.name, call.sent, call.recv.nbytes)


def blocking(call: Call, key: Any, own: Group | None = None) -> None:
    """Do the call now; without the own group, others of it do not matter."""
    if call.v and own is None:
        own = alone(_context(call), call.sent)
    forms.blocking(call.context, key, plan(call, own))


def at_once(call: Call) -> None:
    """Do a call that will not come again in this form."""
    asks = _context(call).must_ask(call.name)
    with call.context.uninterrupted():
        blocking(call, None, question(call).now() if asks else None)


def lengths(context: InterContext, name: str, own: int) -> np.ndarray:
    """A number of each rank of the other group."""
    found = np.empty(context.there, np.int64)
    send = buffers.block(np.array([own]), writable=False)
    recv = buffers.block(found, writable=True, n=context.there)
    blocking(Call(context, name, send, recv, v=False), None)
    return found


def _after_counts(call: Call, tag: int) -> Iterator[Sequence[MPI.Request]]:
    """An irregular call that first learns what its own group sends."""
    own = yield from question(call).ask(tag)
    yield from forms.once(plan(call, own, tag))


def _in_one_request(call: Call, name: str) -> bool:
    """Whether all messages leave at once, as one request of the MPI library."""
    if call.name == "auto" and not call.context.threads:
        return True
    if name == "auto":
        return False
    if resolve("inter_allgatherv", name)[0].whole_blocks:
        return True
    forms.check_threads(call.context, name, "direct")
    if name.endswith("+library"):
        raise ValueError("the stage 'library' works in blocking calls only")
    return False


def nonblocking(call: Call) -> MPI.Request | None:
    """Start the call and give its request; none for the library's own."""
    c = call.context
    if call.name == "native":
        return None
    tag = c.next_tag()
    name = (
        call.name if call.v else settle(call.name, sizes(call), _context(call).machine)
    )
    if _in_one_request(call, name):
        native = c.comm.Ialltoallw(*_alltoallw(call))
        return _context(call).request(native, (call, native))
    if call.v:
        return requests.start(_after_counts(call, tag), c, call)
    return forms.nonblocking(call, plan(call, None, tag))


def persistent(call: Call) -> MPI.Prequest | None:
    """Set the call up, to be started any number of times; not the library's own."""
    c = call.context
    if call.name == "native":
        return None
    tag = c.lasting_tag()
    if not _in_one_request(call, call.name):
        with c.uninterrupted():
            own = complete(question(call).ask(tag)) if call.v else None
        found = settle(call.name, sizes(call, own), _context(call).machine)
        if not _in_one_request(call, found):
            return forms.persistent(call, plan(call, own, tag), tag)
    native = requests.own(c.comm.Alltoallw_init, *_alltoallw(call))
    if native is not None:
        return _context(call).kept(native, (call, native))
    forms.check_threads(c, call.name)
    own = alone(_context(call), call.sent) if call.v else None
    return forms.persistent(call, plan(replace(call, name="direct"), own, tag), tag)


def _alltoallw(call: Call) -> tuple[list[Any], list[Any]]:
    """Every message of the direct exchange, in the user's own types."""
    c, send, recv = _context(call), call.send, call.recv
    assert send is not None
    own = [(send.counts[0], send.displs[0], send.datatype)] * c.there
    theirs = list(zip(recv.counts, recv.displs, repeat(recv.datatype)))
    sides = (send.base, of_both(c, own)), (recv.base, of_both(c, theirs))
    return alltoallw(*sides)
