"""The three forms of a call, blocking, nonblocking and persistent, on one engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mpi4py import MPI

from ..recipe import Recipe
from . import requests
from .call import Call
from .context import SCRATCH, Context
from .plan import Plan, uses_library
from .room import Room


def make_plan(call: Call, found: Recipe, tag: int) -> Plan:
    """The rounds bound to the buffers, or to scratch where those have gaps."""
    room = Room()
    one_piece = uses_library(found.rounds)
    recv = room.target(call.recv, lambda x: not one_piece or len(x.addresses) <= 1)
    if found.in_place:
        sources = {"recv": room.own_block(call, recv)}
        return room.plan(found, {"recv": recv}, call.context, tag, sources=sources)
    assert call.send is not None
    views = {"recv": recv, "send": room.source(call.send)}
    return room.plan(found, views, call.context, tag)


def blocking(c: Context, key: Any, plan: Plan) -> None:
    """Run the plan of a call; keep it where a key says what it depends on."""
    with c.uninterrupted():
        for step in plan.calls:
            step()
    if key is not None and not c.checked and plan.scratch_bytes <= SCRATCH:
        c.keep(key, plan)
    else:
        plan.free()


def once(plan: Plan) -> Iterator[Sequence[MPI.Request]]:
    """The steps of a plan that serves one call only."""
    yield from plan.steps()
    # not in a `finally`, which the garbage collector may run, inside MPI perhaps; and
    # where a step fails, requests may be under way
    plan.free()


def nonblocking(call: Call, plan: Plan) -> MPI.Request:
    """Start the call and give its request."""
    return requests.start(once(plan), call.context, call)


def persistent(call: Call, plan: Plan, tag: int) -> MPI.Prequest:
    """A request that can be started any number of times."""
    made = requests.persistent(plan, call.context, call)
    call.context.lasting[tag] = made
    return made


def check_threads(context: Context, name: str, instead: str = "") -> None:
    """Refuse what only a thread of ours can bring forward, where it may not."""
    if not context.threads:
        other = f"use algorithm={instead!r}" if instead else "this MPI library has none"
        raise RuntimeError(
            f"the nonblocking and persistent forms of {name!r} need "
            f"MPI_THREAD_MULTIPLE in every process; {other}"
        )
