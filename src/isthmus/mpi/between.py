"""How a collective between groups is called, in its three forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mpi4py import MPI

from . import device, forms, task, tasks_exchange, tasks_rooted, tasks_sums
from .again import Again
from .agreement import Kept, as_before
from .asking import ask, asks
from .call import checked, checked_value
from .context import LEFT
from .keys import Key
from .known import weakly
from .task import Task

#: what makes the task of a rank from the arguments of a call
TASKS: dict[str, Callable[..., Task]] = {
    "Bcast": tasks_rooted.bcast,
    "Reduce": tasks_rooted.reduce,
    "Gather": tasks_rooted.gather,
    "Gatherv": partial(tasks_rooted.gather, v="v"),
    "Scatter": tasks_rooted.scatter,
    "Scatterv": partial(tasks_rooted.scatter, v="v"),
    "Allreduce": tasks_sums.allreduce,
    "Reduce_scatter": tasks_sums.reduce_scatter,
    "Reduce_scatter_block": tasks_sums.reduce_scatter_block,
    "Allgather": tasks_exchange.allgather,
    "Allgatherv": partial(tasks_exchange.allgather, v=True),
    "Alltoall": tasks_exchange.alltoall,
    "Alltoallv": tasks_exchange.alltoallv,
    "Alltoallw": tasks_exchange.alltoallw,
    "Barrier": tasks_exchange.barrier,
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


def _read(context: Any, name: str, op: str, args: tuple[Any, ...]) -> Task:
    """The task of a rank, of arguments that are right."""
    if op in _ON_HOST:
        device.check_on_host(op, *args[:2])
    return TASKS[op](context, name, *args)


class Between(Again):
    """What all collectives between groups share."""

    def _task(self, op: str, args: tuple[Any, ...], name: str) -> Task:
        context = self._context()
        return checked(context, op, name, partial(_read, context, name, op, args))

    def _unread(self, op: str, args: tuple[Any, ...]) -> None:
        """Check a call that the MPI library reads."""
        check = partial(device.check_all, *args[:2])
        checked_value(self._context(), op, "native", check)

    def _anew(self, key: Key, args: tuple[Any, ...], values: Any) -> None:
        (op, algorithm, *_), context = key, self._context()
        name = context.asked_for(op, algorithm)
        if name == "native":
            self._unread(op, args)
            self._leave(op, args, values)
            return
        made = self._task(op, args, name)
        if asks(made):
            self._ask(made, name, key, args, values)
        elif name == "auto" and made.recipe and context.leaves(op, made.nbytes):
            self._leave(op, args, values)
        else:
            task.blocking(made, values)

    def _ask(
        self, made: Task, name: str, key: Key, args: tuple[Any, ...], values: Any
    ) -> None:
        """Do a call by what others say, and know it then."""
        assert made.among is not None
        with made.context.uninterrupted():
            made.among.same(0)  # those who know this call must ask too
            kept = ask(made, values)
        if kept is not None:
            op, weak = key[0], [weakly(x) for x in args]
            again = partial(self._ask_again, op, name, values, weak)
            do = as_before(made.among, again, kept)
            self._context().known.keep(key, args, do)

    def _ask_again(
        self, op: str, name: str, values: Any, weak: list[Callable[[], Any]]
    ) -> Kept | None:
        """Do a call that others, it turned out, make in another way than before."""
        with self._context().uninterrupted():
            made = self._task(op, tuple(x() for x in weak), name)
            return ask(made, values)

    def _leave(self, op: str, args: tuple[Any, ...], values: Any) -> None:
        """Leave a call to the MPI library, from now on."""
        self._native(op)(*args)
        forms.blocking(self._context(), values, LEFT)  # runs nothing, and is kept

    def _nonblocking(
        self, op: str, args: tuple[Any, ...], algorithm: str | None
    ) -> MPI.Request:
        context = self._context()
        name, tag = context.asked_for(op, algorithm), context.next_tag()
        if name == "native":
            self._unread(op, args)
            return getattr(super(), "I" + op.lower())(*args)  # type: ignore[no-any-return]
        return task.nonblocking(self._task(op, args, name), tag)

    def _persistent(
        self, op: str, args: tuple[Any, ...], info: MPI.Info, algorithm: str | None
    ) -> MPI.Prequest:
        context = self._context()
        name, tag = context.asked_for(op, algorithm), context.lasting_tag()
        if name == "native":
            self._unread(op, args)
            return getattr(super(), op + "_init")(*args, info)  # type: ignore[no-any-return]
        context.lasting[tag] = made = task.persistent(self._task(op, args, name), tag)
        return made
