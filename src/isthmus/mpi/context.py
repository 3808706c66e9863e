"""What isthmus keeps for a user's communicator, on an attribute of it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np
from mpi4py import MPI

from .plan import Plan, Step
from .progress import driver

#: how many plans are kept for a communicator
PLANS = 64


#: mpi4py's own class, whatever somebody may put in its place later
Native = MPI.Intracomm


def asked(variable: str, default: str = "auto") -> str:
    """The algorithm that an environment variable asks for."""
    return os.environ.get(variable, default)


@dataclass(slots=True)
class Last:
    """The last call of arrays: the very same one is found by identity, which takes a
    fraction of the time of its key, above all when caches are cold. It keeps no array
    alive."""

    op: str
    send: Callable[[], Any]
    recv: Callable[[], Any]
    #: counts, or counts and displacements, that followed the array
    counts: Any
    algorithm: str | None
    key: Any
    calls: list[Step]


class Context:
    """Private communicators, plans and tags of one communicator.

    All traffic runs on `comm`, whose ranks are the numbers of the schedules; `local` is
    the own group, the same where there is only one.
    """

    def __init__(self, comm: MPI.Intracomm, local: MPI.Intracomm) -> None:
        self.comm, self.local = comm, local
        self.number, self.index = comm.Get_rank(), local.Get_rank()
        threads = np.array(MPI.Query_thread())
        comm.Allreduce(MPI.IN_PLACE, threads, MPI.MIN)
        self.threads = bool(threads == MPI.THREAD_MULTIPLE)
        self.checked = os.environ.get("ISTHMUS_CHECK", "0") not in ("", "0")
        self.plans: dict[Any, Plan] = {}
        self.last: Last | None = None
        self.tags = 0
        self.tag_limit = int(comm.Get_attr(MPI.TAG_UB) or 32767)
        self.freed = False

    def who(self, number: int) -> str:
        """A rank, in words."""
        return f"rank {number}"

    def senders(self, number: int) -> range:
        """The numbers of those from whom a rank receives, in the order of blocks."""
        return range(self.comm.size)

    def next_tag(self) -> int:
        """A tag for an operation that others may overtake; 0 is for blocking ones."""
        self.tags = self.tags % self.tag_limit + 1
        return self.tags

    def repeat(self, op: str, send: Any, recv: Any, algorithm: str | None) -> bool:
        """Run the last plan, if it was made for the very same arguments."""
        last = self.last
        if (
            last is None
            or send is not last.send()
            or op is not last.op
            or algorithm != last.algorithm
        ):
            return False
        if last.counts is None:
            if recv is not last.recv():
                return False
        elif (
            type(recv) is not list
            or len(recv) != 2
            or recv[0] is not last.recv()
            or recv[1] != last.counts
        ):
            return False
        try:
            for call in last.calls:
                call()
        except BaseException:
            self._drop(last.key)
            raise
        return True

    def run(self, key: Any) -> bool:
        """Run the plan kept for a key, if there is one."""
        plan = self.plans.get(key)
        if plan is None:
            return False
        try:
            for call in plan.calls:
                call()
        except BaseException:
            self._drop(key)
            raise
        return True

    def _drop(self, key: Any) -> None:
        """Forget a plan that failed: its requests may be in any state."""
        self.last = None
        del self.plans[key]

    def keep(self, key: Any, plan: Plan) -> None:
        """Keep a plan for the next such call; the oldest one makes room."""
        self.plans[key] = plan
        if len(self.plans) > PLANS:
            self.last = None
            self.plans.pop(next(iter(self.plans))).free()

    def remember(
        self, op: str, send: Any, recv: Any, algorithm: str | None, key: Any
    ) -> None:
        """Let the same call find its plan at once, if that was kept."""
        plan = self.plans.get(key)
        if plan is None:
            return
        array, counts = recv, None
        if type(recv) is list and len(recv) == 2 and type(recv[1]) is list:
            array, counts = recv[0], list(recv[1])
        sent, received = _reference(send), _reference(array)
        if sent is not None and received is not None:
            calls = plan.calls
            self.last = Last(op, sent, received, counts, algorithm, key, calls)

    def free(self) -> None:
        """Give everything back; collective, like freeing the user's communicator."""
        driver.finish(self)
        for plan in self.plans.values():
            plan.free()
        self.plans.clear()
        self.last = None
        self.freed = True
        if self.local is not self.comm:
            self.local.Free()
        self.comm.Free()


def _reference(x: Any) -> Callable[[], Any] | None:
    """What gives an argument back without keeping it alive; none for other buffers
    than arrays, whose memory might move."""
    if x is MPI.IN_PLACE or x is None or type(x) is int:
        return lambda: x
    return weakref.ref(x) if type(x) is np.ndarray else None


def _delete(comm: MPI.Comm, keyval: int, context: Context) -> None:
    context.free()


@cache
def _keyval() -> int:
    """Our attribute on communicators; made when MPI is certainly running."""
    return MPI.Comm.Create_keyval(delete_fn=_delete)


Made = TypeVar("Made", bound=Context)


def context_of(comm: MPI.Comm, make: Callable[[Any], Made]) -> Made:
    """The context of a communicator, made at its first collective call."""
    found = comm.Get_attr(_keyval())
    if isinstance(found, Context):
        return cast(Made, found)
    context = make(comm)
    comm.Set_attr(_keyval(), context)
    return context
