"""Calls that depend on what others say, and what is kept of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from mpi4py import MPI

from . import forms, memory, task
from .agreement import Kept
from .buffers import Message
from .counts import complete
from .plan import Plan, Step
from .ready import Ready
from .task import Left, Task

#: vectors of up to so many bytes are copied so that one request does such calls; among
#: few processes, of up to so many times the cube of their number (measured)
COPIED, COPIED_BY_FEW = 1 << 16, 1 << 7
#: so many requests are kept on a communicator
MOST = 64
#: gives a method of the MPI library's own communicator
Native = Callable[[str], Callable[..., Any]]


def ask(made: Task, key: Any, native: Native) -> Kept | None:
    """Do a call by what others say; what is kept of that, if anything."""
    assert made.question is not None and made.among is not None
    answer = complete(made.question(True))
    number = made.among.number(answer)  # by all of them, whatever they can keep
    left = made.library and made.library(*answer)
    ready = _ready(made, answer, number) if left else None
    if left is None:
        steps = _planned(made, answer, key)
    elif ready is None:
        steps = _done(_library(made, left, native))
    else:
        steps = _done(*ready.bound(*made.send, *made.recv))
    if not steps or key is None or made.context.checked:
        return None
    if made.meanwhile is None or not made.meanwhile(*answer):
        return Kept(number, steps)
    if ready is not None:
        return Kept(number, steps, ready.run)
    return Kept(number, steps, partial(_stand_in, _bare(made), answer, left, native))


def _done(*steps: Step) -> tuple[Step, ...]:
    """Do the steps of a call."""
    for step in steps:
        step()
    return steps


def _ready(made: Task, answer: tuple[Any, ...], number: int) -> Ready | None:
    """The MPI library's request that does such calls, made by all together when they
    first ask; the first few calls that are short have one."""
    assert made.among is not None
    found = made.among.ready
    if number not in found and len(found) < MOST:
        found[number] = None
        most = min(COPIED, COPIED_BY_FEW * made.among.comm.Get_size() ** 3)
        if made.nbytes <= most and made.own is not None:
            there = _elsewhere(made)
            request = task.single(there, answer)
            if request is not None:
                found[number] = Ready(request, *there.send, *there.recv)
    return found.get(number)


def _planned(made: Task, answer: tuple[Any, ...], key: Any) -> tuple[Step, ...]:
    """Do it by a plan; what does that again, if it is kept."""
    key, c = key and (key, answer), made.context
    if not c.run(key):
        forms.blocking(c, key, task.plan(made, answer))
    kept = c.plans.get(key)
    return () if kept is None else (c.runner(kept),)


def _library(made: Task, left: Left, native: Native) -> Step:
    """The MPI library's own call that does the same."""
    op, rest = left
    places = (*made.send, *made.recv)
    return partial(native(op), *map(memory.in_place, places), *rest)


def _bare(made: Task) -> Task:
    """A task that keeps none of its buffers alive."""
    send, recv = (
        tuple(replace(x, owner=None, base=0) for x in side)
        for side in (made.send, made.recv)
    )
    return replace(made, send=send, recv=recv, whole=None)


def _stand_in(
    bare: Task, answer: tuple[Any, ...], left: Left | None, native: Native
) -> None:
    """Do a call in memory of its own, so that others who make it can end."""
    made = _elsewhere(bare)
    if left is not None:
        _library(made, left, native)()
        return
    plan: Plan = task.plan(made, answer)
    for step in plan.calls:
        step()
    plan.free()


def _elsewhere(made: Task) -> Task:
    """The same, in memory of its own."""
    send, recv = (tuple(map(_moved, side)) for side in (made.send, made.recv))
    return replace(made, send=send, recv=recv, whole=None)


def _moved(message: Message) -> Message:
    """A message of the same form, in memory of its own."""
    room = memory.scratch(message.counts[0] * message.datatype.Get_extent()[1])
    return replace(message, owner=room, base=MPI.memory(room).address, displs=(0,))
