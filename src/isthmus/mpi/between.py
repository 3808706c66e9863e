"""How a collective between groups is called, in its three forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mpi4py import MPI

from . import task, tasks_all, tasks_rooted
from .call import checked
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


class Between(Comm):
    """What all collectives between groups share."""

    _found: Any
    _context: Callable[[], Any]

    def _task(self, op: str, args: tuple[Any, ...], name: str) -> Task:
        context = self._context()
        return checked(context, op, name, partial(TASKS[op], context, name, *args))

    def _blocking(self, op: str, args: tuple[Any, ...], algorithm: str | None) -> None:
        found = self._found or self._context()
        if found.again(op, args, algorithm):
            return
        name = found.asked_for(op, algorithm)
        if name == "native":
            getattr(super(), op)(*args)
        else:
            task.blocking(self._task(op, args, name), call_key(op, args, algorithm))

    def _nonblocking(
        self, op: str, args: tuple[Any, ...], algorithm: str | None
    ) -> MPI.Request:
        name = self._context().asked_for(op, algorithm)
        if name == "native":
            return getattr(super(), "I" + op.lower())(*args)  # type: ignore[no-any-return]
        return task.nonblocking(self._task(op, args, name))

    def _persistent(
        self, op: str, args: tuple[Any, ...], info: MPI.Info, algorithm: str | None
    ) -> MPI.Prequest:
        name = self._context().asked_for(op, algorithm)
        if name == "native":
            return getattr(super(), op + "_init")(*args, info)  # type: ignore[no-any-return]
        return task.persistent(self._task(op, args, name))
