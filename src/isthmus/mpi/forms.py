"""The three forms of a call, blocking, nonblocking and persistent, on one engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mpi4py import MPI

from ..program import extent
from ..recipe import Recipe, Sizes, recipe, settle
from ..registry import resolve
from . import memory, requests
from .buffers import Message, on_device
from .call import Call
from .context import Context
from .counts import Question, complete
from .plan import Binding, Plan, bind, uses_library

#: plans with more scratch memory than this are not kept
SCRATCH = 1 << 16


def make_plan(call: Call, found: Recipe, tag: int) -> Plan:
    """The rounds bound to the buffers, or to scratch where those have gaps."""
    c = call.context
    send, recv = memory.message_view(call.send), memory.message_view(call.recv)
    if recv is not None and uses_library(found.rounds) and len(recv.addresses) > 1:
        recv = None
    before, after, scratch = [], [], []
    if send is None:
        scratch.append(room := memory.scratch(call.sent))
        send = memory.scratch_view(room)
        before.append(memory.packer(call.send, room))
    if recv is None:
        scratch.append(room := memory.scratch(sum(call.recv.nbytes)))
        recv = memory.scratch_view(room)
        after.append(memory.unpacker(room, call.recv))
    here, there = found.units[c.mine], found.units[1 - c.mine]
    scratch.append(room := memory.scratch(extent(found.rounds, "tmp") * here))
    if any(len(x) for x in scratch) and any(
        on_device(x.owner) for x in (call.send, call.recv)
    ):
        raise ValueError(
            f"{found.entry.name!r} copies these buffers through the memory of the "
            "host, and they are on a device; 'direct', 'segmented' and 'balanced' "
            "with types without gaps do not"
        )
    views = {"send": send, "recv": recv, "tmp": memory.scratch_view(room)}
    binding = Binding(views, {"send": here, "recv": there, "tmp": here})
    stages = bind(found.rounds, binding, c.merged, c.local, tag)
    return Plan(stages, before, after, scratch)


def blocking(call: Call, key: Any, sizes: Sizes) -> None:
    """Do the call now; keep its plan where a key says what it depends on."""
    c = call.context
    plan = make_plan(call, recipe(call.name, sizes, c.number), tag=0)
    for step in plan.calls:
        step()
    if key is not None and not c.checked and plan.scratch_bytes <= SCRATCH:
        c.keep(key, plan)
    else:
        plan.free()


def question(call: Call) -> Question:
    """What an irregular call must ask first."""
    return Question(call.context, call.name, call.sent, call.recv.nbytes)


def _once(plan: Plan) -> Iterator[Sequence[MPI.Request]]:
    """The steps of a plan that serves one call only."""
    try:
        yield from plan.steps()
    finally:
        plan.free()


def _background(call: Call, sizes: Sizes, tag: int) -> Plan:
    """A plan that runs beside the caller."""
    return make_plan(call, recipe(call.name, sizes, call.context.number), tag)


def _after_counts(call: Call, tag: int) -> Iterator[Sequence[MPI.Request]]:
    """An irregular call that first learns what its own group sends."""
    own = yield from question(call).ask(tag)
    yield from _once(_background(call, call.sizes(own), tag))


def _in_one_request(call: Call, name: str) -> bool:
    """Whether all messages leave at once, as one request of the MPI library."""
    if call.name == "auto" and not call.context.threads:
        return True
    if name == "auto":
        return False
    if resolve("inter_allgatherv", name)[0].whole_blocks:
        return True
    if not call.context.threads:
        raise RuntimeError(
            f"the nonblocking and persistent forms of {name!r} need "
            "MPI_THREAD_MULTIPLE in every process; use algorithm='direct'"
        )
    if name.endswith("+library"):
        raise ValueError("the stage 'library' works in blocking calls only")
    return False


def nonblocking(call: Call) -> MPI.Request:
    """Start the call and give its request."""
    c = call.context
    tag = c.next_tag()
    name = call.name if call.v else settle(call.name, call.sizes())
    if _in_one_request(call, name):
        native = c.merged.Ialltoallw(*_alltoallw(call))
        return requests.request(native, None, (call, native))
    if call.v:
        return requests.start(_after_counts(call, tag), c, call)
    return requests.start(_once(_background(call, call.sizes(), tag)), c, call)


def persistent(call: Call) -> MPI.Prequest:
    """Set the call up, to be started any number of times."""
    c = call.context
    tag = c.next_tag()
    if not _in_one_request(call, call.name):
        sizes = call.sizes(complete(question(call).ask(tag)) if call.v else None)
        if not _in_one_request(call, settle(call.name, sizes)):
            plan = _background(call, sizes, tag)
            return requests.persistent(plan.steps, plan.free, c, call)
    native = c.merged.Alltoallw_init(*_alltoallw(call))
    return requests.kept(native, (call, native))


def _alltoallw(call: Call) -> tuple[list[Any], list[Any]]:
    """Every message of the direct exchange, in the user's own types."""
    c = call.context
    send, recv = call.send, call.recv
    own = [(send.counts[0], send.displs[0])] * c.there
    theirs = zip(recv.counts, recv.displs, strict=True)
    return _entries(c, send, own), _entries(c, recv, theirs)


def _entries(
    c: Context, message: Message, blocks: Iterable[tuple[int, int]]
) -> list[Any]:
    """A specification for all ranks of both groups: nothing for the own group."""
    nothing = [(0, 0, MPI.BYTE)] * c.here
    there = [memory.entry(n, at, message.datatype) for n, at in blocks]
    entries = [*there, *nothing] if c.mine else [*nothing, *there]
    return [memory.buffer(message.base), *map(list, zip(*entries, strict=True))]
