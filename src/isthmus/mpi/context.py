"""What the collectives of isthmus need on a user's communicator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from mpi4py import MPI

from ..settings import Settings, read
from .attribute import attached
from .board import interrupted
from .check import MismatchError
from .known import Known
from .plan import Plan
from .progress import driver
from .tuning import eager, inline, nodes_of, tuned

#: how many plans are kept for a communicator, and how many bytes of scratch memory
PLANS = 64
SCRATCH = 1 << 25

#: the plan that is kept for calls that are left to the MPI library
LEFT = Plan([])

#: mpi4py's own class, whatever somebody may put in its place later
Native = MPI.Intracomm


class Context:
    """Private communicators, plans and tags of one communicator.

    All traffic runs on `comm`, whose ranks are the numbers of the schedules; `local` is
    the own group, the same where there is only one. `nodes` has the node of every rank,
    as the number of the first rank there.
    """

    #: who records its calls (see `recorder`)
    recorder: Any = None
    #: why no more calls are made, if so
    refused = ""

    def __init__(self, comm: MPI.Intracomm, local: MPI.Intracomm) -> None:
        self.comm, self.local = comm, local
        self.number, self.index = comm.Get_rank(), local.Get_rank()
        threads = np.array(MPI.Query_thread())
        comm.Allreduce(MPI.IN_PLACE, threads, MPI.MIN)
        self.threads = bool(threads == MPI.THREAD_MULTIPLE)
        #: rank 0's, so that all ranks decide alike
        self.settings: Settings = comm.bcast(read() if self.number == 0 else None)
        self.checked = self.settings.checked
        self.plans: dict[Any, Plan] = {}
        self.scratch = 0
        self.known = Known()
        self.tag_limit = int(comm.Get_attr(MPI.TAG_UB) or 32767)
        self.tags = 0
        #: persistent calls by their tags, and the tags that are left
        self.lasting: WeakValueDictionary[int, MPI.Prequest] = WeakValueDictionary()
        self._tags_left: Iterator[int] | None = None
        self.nodes = nodes_of(comm)
        self.cut = eager(self.nodes)
        self.inline = inline(self.nodes, self.number)
        self.freed = False
        try:
            self.tuned = tuned(comm, self.nodes)
        except ValueError:  # on all ranks alike
            Context.free(self)  # there is nothing of a subclass yet
            raise

    def who(self, number: int) -> str:
        """A rank, in words."""
        return f"rank {number}"

    @property
    def senders(self) -> range:
        """The numbers of those from whom this rank receives, in the order of blocks."""
        return range(self.comm.size)

    def check_usable(self) -> None:
        """Refuse a call after one that was interrupted."""
        if self.refused:
            raise RuntimeError(self.refused)

    def refuse(self, number: int, error: BaseException | None = None) -> str:
        """Make no more calls, as a rank was interrupted in the middle of one: what it
        sent, and what others sent it, would be taken for that of a later call."""
        self.refused = self.refused or interrupted(self.who(number), error)
        self.known.clear()
        return self.refused

    @contextmanager
    def uninterrupted(self) -> Iterator[None]:
        """What is done in here is done to its end, or no more calls are made; ranks
        that differ in their arguments raise that together, and can go on."""
        try:
            yield
        except MismatchError:
            raise
        except BaseException as error:
            self.refuse(self.number, error)
            raise

    def next_tag(self) -> int:
        """A tag for a nonblocking call, from the lower half; 0 is for blocking ones.

        All ranks count alike. Before tags are used again, this rank ends its calls that
        have them; messages of one tag between two ranks stay in their order.
        """
        if self.tags == self.tag_limit // 2:
            driver.finish(self)
            self.tags = 0
        self.tags += 1
        return self.tags

    def lasting_tag(self) -> int:
        """A tag for a persistent call, from the upper half, that no other call has as
        long as its request lives on any rank; collective."""
        tags = range(self.tag_limit // 2 + 1, self.tag_limit + 1)
        if self._tags_left is None:
            self._tags_left = iter(tags)
        tag = next(self._tags_left, None)
        if tag is None:
            alive = [x for x, request in self.lasting.items() if request]
            used = set().union(*self.comm.allgather(alive))
            self._tags_left = (x for x in tags if x not in used)
            tag = next(self._tags_left, None)
        if tag is None:
            raise RuntimeError(
                f"no tag is left for a persistent call: {len(tags)} requests of this "
                "communicator live; free some"
            )
        return tag

    def run(self, key: Any) -> bool:
        """Run the plan kept for a key, if there is one."""
        plan = self.plans.get(key)
        if plan is not None:
            self.runner(plan)()
        return plan is not None

    def runner(self, plan: Plan) -> Callable[[], Any]:
        """What runs a plan that is kept; one that fails is kept no longer, unless it
        is a call of the MPI library."""
        calls = plan.calls
        if len(calls) == 1 and not plan.stages:
            return calls[0]

        def run() -> None:
            try:
                for call in calls:
                    call()
            except BaseException as error:
                self.refuse(self.number, error)
                del self.plans[plan.key]  # its requests may be in any state
                self.scratch -= plan.scratch_bytes
                raise

        return run

    def keep(self, key: Any, plan: Plan) -> None:
        """Keep a plan for the next such call; the oldest ones make room."""
        plan.key = key
        self.plans[key] = plan
        self.scratch += plan.scratch_bytes
        while len(self.plans) > PLANS or self.scratch > SCRATCH:
            self.known.clear()
            oldest = self.plans.pop(next(iter(self.plans)))
            self.scratch -= oldest.scratch_bytes
            oldest.free()

    def forget(self) -> None:
        """Give back the plans that are kept."""
        for plan in self.plans.values():
            plan.free()
        self.plans.clear()
        self.scratch = 0
        self.known.clear()

    def leave(self) -> None:
        """Take no more calls; this calls nothing of MPI."""
        self.freed = True
        self.known.clear()

    def free(self) -> None:
        """Give everything back; collective, like freeing the user's communicator."""
        self.leave()
        driver.finish(self)
        self.forget()
        if self.local is not self.comm:
            self.local.Free()
        self.comm.Free()


Made = TypeVar("Made", bound=Context)


def context_of(comm: MPI.Comm, make: Callable[[Any], Made]) -> Made:
    """The context of a communicator, made at its first collective call."""
    try:
        found = attached(comm, "context", make)
    except ValueError:  # a tuning file that cannot be read, on all ranks alike
        raise
    except BaseException as error:
        why = interrupted("this rank", error)
        attached(comm, "context", lambda _: _Refused(why))
        raise
    found.check_usable()
    return found


class _Refused:
    """In place of a context that was not made to its end."""

    def __init__(self, why: str) -> None:
        self.why = why

    def check_usable(self) -> None:
        """Refuse every call."""
        raise RuntimeError(self.why)

    def leave(self) -> None:
        """There is nothing to leave."""

    def free(self) -> None:
        """There is nothing to give back."""
