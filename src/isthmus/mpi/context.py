"""What isthmus keeps for a user's intercommunicator, on an attribute of it."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
from mpi4py import MPI

from .plan import Plan
from .progress import driver

#: how many plans are kept for a communicator
PLANS = 64
#: groups up to this size do not ask what their members send before they choose
FEW = 8


class Context:
    """Private communicators and plans of one intercommunicator.

    All traffic runs on `merged`, both groups in one numbering, where the MPI library
    has its fastest path; `local` is the own group. Group A, whose rank 0 comes first in
    the world, is numbered from 0, group B from p.
    """

    def __init__(self, inter: MPI.Intercomm) -> None:
        self.merged = inter.Merge(_comes_second(inter))
        self.number = self.merged.Get_rank()
        self.mine = int(self.number != inter.Get_rank())
        self.local = MPI.Intracomm(self.merged.Split(self.mine, self.number))
        sizes = inter.Get_size(), inter.Get_remote_size()
        self.p, self.q = sizes if self.mine == 0 else sizes[::-1]
        self.here, self.there = sizes
        self.index = inter.Get_rank()
        self.there_base = 0 if self.mine else self.p
        self.few = max(sizes) <= FEW
        threads = np.array(MPI.Query_thread())
        self.merged.Allreduce(MPI.IN_PLACE, threads, MPI.MIN)
        self.threads = bool(threads == MPI.THREAD_MULTIPLE)
        self.checked = os.environ.get("ISTHMUS_CHECK", "0") not in ("", "0")
        both = os.environ.get("ISTHMUS_ALLGATHER", "auto")
        self.asked = both, os.environ.get("ISTHMUS_ALLGATHERV", both)
        self.plans: dict[Any, Plan] = {}
        self.questions: dict[Any, Any] = {}
        self.tags = 0
        self.tag_limit = int(self.merged.Get_attr(MPI.TAG_UB) or 32767)
        self.freed = False

    def next_tag(self) -> int:
        """A tag for an operation that others may overtake; 0 is for blocking ones."""
        self.tags = self.tags % self.tag_limit + 1
        return self.tags

    def run(self, key: Any) -> bool:
        """Run the plan kept for a key, if there is one."""
        plan = self.plans.get(key)
        if plan is None:
            return False
        try:
            for call in plan.calls:
                call()
        except BaseException:
            del self.plans[key]  # its requests may be in any state
            raise
        return True

    def keep(self, key: Any, plan: Plan) -> None:
        """Keep a plan for the next such call; the oldest one makes room."""
        self.plans[key] = plan
        if len(self.plans) > PLANS:
            self.plans.pop(next(iter(self.plans))).free()

    def keep_question(self, key: Any, question: Any) -> None:
        """Keep what such a call must ask; the oldest one makes room."""
        self.questions[key] = question
        if len(self.questions) > PLANS:
            self.questions.pop(next(iter(self.questions)))

    def name(self, algorithm: str | None, v: bool) -> str:
        """The algorithm asked for by a call or by the environment.

        Only what everyone knows may decide: of an irregular call, the group sizes.
        """
        name = algorithm if algorithm is not None else self.asked[v]
        return "direct" if v and self.few and name == "auto" else name

    def must_ask(self, algorithm: str | None) -> bool:
        """Whether an irregular call depends on what the own group's members send."""
        return self.name(algorithm, True) not in ("direct", "native")

    def free(self) -> None:
        """Give everything back; collective, like freeing the user's communicator."""
        driver.finish(self)
        for plan in self.plans.values():
            plan.free()
        self.plans.clear()
        self.freed = True
        self.local.Free()
        self.merged.Free()


def _comes_second(inter: MPI.Intercomm) -> bool:
    """Whether the own group is B: its rank 0 comes after the other's in the world.

    Groups of different worlds all say no, and MPI orders them.
    """
    world = MPI.COMM_WORLD.Get_group()
    groups = inter.Get_group(), inter.Get_remote_group()
    mine, other = (group.Translate_ranks([0], world)[0] for group in groups)
    for group in (world, *groups):
        group.Free()
    return bool(mine != MPI.UNDEFINED and MPI.UNDEFINED != other < mine)


def _delete(comm: MPI.Comm, keyval: int, context: Context) -> None:
    context.free()


@cache
def _keyval() -> int:
    """Our attribute on communicators; made when MPI is certainly running."""
    return MPI.Comm.Create_keyval(delete_fn=_delete)


def context_of(inter: MPI.Intercomm) -> Context:
    """The context of an intercommunicator, made at its first collective call."""
    found = inter.Get_attr(_keyval())
    if isinstance(found, Context):
        return found
    context = Context(inter)
    inter.Set_attr(_keyval(), context)
    return context
