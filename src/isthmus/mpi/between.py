"""How a collective between groups is called, in its three forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mpi4py import MPI

from . import forms, task, tasks_all, tasks_rooted
from .buffers import on_device
from .call import checked
from .context import LEFT
from .family import Comm
from .keys import call_key
from .task import Task

#: what makes the task of a rank from the arguments of a call
TASKS: dict[str, Callable[..., Task]] = {
    "Bcast": tasks_rooted.bcast,
    "Reduce": tasks_rooted.reduce,
    "Gather": tasks_rooted.gather,
    "Gatherv": partial(tasks_rooted.gather, v="v"),
    "Scatter": tasks_rooted.scatter,
    "Scatterv": partial(tasks_rooted.scatter, v="v"),
    "Allreduce": tasks_all.allreduce,
    "Reduce_scatter": tasks_all.reduce_scatter,
    "Reduce_scatter_block": tasks_all.reduce_scatter_block,
    "Alltoall": tasks_all.alltoall,
    "Alltoallv": tasks_all.alltoallv,
    "Alltoallw": tasks_all.alltoallw,
    "Barrier": tasks_all.barrier,
}


#: the MPI library's own blocking calls
NATIVE: dict[str, Callable[..., None]] = {
    op: getattr(MPI.Intercomm, op) for op in TASKS
}

#: these combine or copy in the memory of the host
_ON_HOST = {
    "Reduce",
    "Allreduce",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Gather",
    "Scatter",
    "Alltoall",
}


def _is_native(op: str, args: tuple[Any, ...], name: str) -> bool:
    """Whether a call is left to the MPI library: asked for, or on a device."""
    if name == "native" or op not in _ON_HOST:
        return name == "native"
    owners = (x[0] if isinstance(x, list | tuple) and x else x for x in args[:2])
    return any(map(on_device, owners))


class Between(Comm):
    """What all collectives between groups share."""

    _found: Any
    _context: Callable[[], Any]

    def _task(self, op: str, args: tuple[Any, ...], name: str) -> Task:
        context = self._context()
        return checked(context, op, name, partial(TASKS[op], context, name, *args))

    def _blocking(self, op: str, args: tuple[Any, ...], algorithm: str | None) -> None:
        found = self._found or self._context()
        plan = found.kept(op, args, algorithm)
        if plan is LEFT:
            NATIVE[op](self, *args)
        elif plan is not None:
            found.do(plan)
        else:
            self._anew(found, op, args, algorithm)

    def _anew(
        self, context: Any, op: str, args: tuple[Any, ...], algorithm: str | None
    ) -> None:
        """Do a blocking call for which nothing is kept yet."""
        name, key = context.asked_for(op, algorithm), call_key(op, args, algorithm)
        if _is_native(op, args, name):
            NATIVE[op](self, *args)
            return
        made = self._task(op, args, name)
        if name == "auto" and made.recipe and context.leaves(op, made.nbytes):
            NATIVE[op](self, *args)
            forms.blocking(context, key, LEFT)  # runs nothing, and is kept
        else:
            task.blocking(made, key)

    def _nonblocking(
        self, op: str, args: tuple[Any, ...], algorithm: str | None
    ) -> MPI.Request:
        context = self._context()
        name, tag = context.asked_for(op, algorithm), context.next_tag()
        if _is_native(op, args, name):
            return getattr(super(), "I" + op.lower())(*args)  # type: ignore[no-any-return]
        return task.nonblocking(self._task(op, args, name), tag)

    def _persistent(
        self, op: str, args: tuple[Any, ...], info: MPI.Info, algorithm: str | None
    ) -> MPI.Prequest:
        context = self._context()
        name, tag = context.asked_for(op, algorithm), context.next_tag()
        if _is_native(op, args, name):
            return getattr(super(), op + "_init")(*args, info)  # type: ignore[no-any-return]
        return task.persistent(self._task(op, args, name), tag)
