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
from .plan import Plan
from .task import Left, Task

#: gives a method of the MPI library's own communicator
Native = Callable[[str], Callable[..., Any]]


def ask(made: Task, key: Any, native: Native) -> Kept | None:
    """Do a call by what others say; what is kept of that, if anything."""
    assert made.question is not None and made.among is not None
    answer = complete(made.question(True))
    number = made.among.number(answer)  # by all of them, whatever they can keep
    left = made.library and made.library(*answer)
    if left is None:
        run = _planned(made, answer, key)
    else:
        run = _library(made, left, native)
        run()
    if run is None or key is None or made.context.checked:
        return None
    if made.meanwhile is None or not made.meanwhile(*answer):
        return Kept(number, run)
    return Kept(number, run, partial(_stand_in, _bare(made), answer, left, native))


def _planned(made: Task, answer: tuple[Any, ...], key: Any) -> Callable[[], Any] | None:
    """Do it by a plan; what does that again, if it is kept."""
    key, c = key and (key, answer), made.context
    if not c.run(key):
        forms.blocking(c, key, task.plan(made, answer))
    kept = c.plans.get(key)
    return None if kept is None else c.runner(kept)


def _library(made: Task, left: Left, native: Native) -> Callable[[], Any]:
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
    return replace(made, send=send, recv=recv, whole=None, own=None)


def _stand_in(
    bare: Task, answer: tuple[Any, ...], left: Left | None, native: Native
) -> None:
    """Do a call in memory of its own, so that others who make it can end."""
    send, recv = (tuple(map(_elsewhere, side)) for side in (bare.send, bare.recv))
    made = replace(bare, send=send, recv=recv)
    if left is not None:
        _library(made, left, native)()
        return
    plan: Plan = task.plan(made, answer)
    for step in plan.calls:
        step()
    plan.free()


def _elsewhere(message: Message) -> Message:
    """A message of the same form, in memory of its own."""
    room = memory.scratch(message.counts[0] * message.datatype.Get_extent()[1])
    return replace(message, owner=room, base=MPI.memory(room).address, displs=(0,))
