"""What is kept for an intercommunicator: both groups in one numbering."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from mpi4py import MPI

from ...choose.between import Times, per_byte, runs
from ...choose.choose import BUILT_IN, NETWORK
from ...choose.estimate import Machine
from ...choose.recipe import Equal, Group, Sizes, listed
from ...choose.recipe_between import Pair
from ..costs.probe import probe
from ..costs.tuning import shared
from ..memory.node_memory import NodeMemory
from ..waiting.bounded import bounded
from ..waiting.errors import ProcessLost
from ..waiting.waiting import until
from .attribute import limit_of
from .context import Context, Native
from .library_requests import holding

#: so many calls of a collective go by before its candidates are tried: who makes few
#: does not wait for that
UNTRIED = 16
#: in these some ranks have no part
_ROOTED = ("bcast", "gather", "gatherv", "reduce", "scatter", "scatterv")
#: mpi4py's own class, whatever somebody may put in its place later
_Inter = MPI.Intercomm


class Countdown:
    """How many calls of a collective there are until its candidates are tried."""

    def __init__(self) -> None:
        self.left = UNTRIED

    def is_over(self) -> bool:
        """Count a call; whether it is the last one."""
        self.left -= 1
        return self.left == 0


class InterContext(Context):
    """Both groups of an intercommunicator.

    All traffic runs between the ranks of one merged communicator, where the MPI library
    has its fastest path. Group A, whose rank 0 comes first in the world, is numbered
    from 0, group B from p.
    """

    def __init__(self, inter: MPI.Intercomm) -> None:
        merged = Native(inter.Merge(_comes_second(inter)))
        self.mine = int(merged.Get_rank() != inter.Get_rank())
        local = merged.Split(self.mine, merged.Get_rank())
        super().__init__(merged, Native(local), limit_of(inter))
        sizes = inter.Get_size(), inter.Get_remote_size()
        self.p, self.q = sizes if self.mine == 0 else sizes[::-1]
        self.here, self.there = sizes
        self.there_base = 0 if self.mine else self.p
        self.here_base = self.p if self.mine else 0
        self.pair = Pair(self.here, self.there, self.mine, self.index, self.placement)
        #: what the candidates for collectives take, once they were tried
        self.times: dict[str, Times] = {}
        self.tries = self.settings.trial and not self.checked
        #: the calls of collectives that were not tried yet
        self.untried: dict[str, Countdown] = {}
        #: what a message costs, the same on every rank: tuned, or a guess until it is
        #: measured
        guess = BUILT_IN if self.one_node else shared(NETWORK, self.nodes)
        self.machine: Machine = self.tuned or guess
        self._measured = self.tuned is not None or self.one_node
        self._intercomms: dict[int | None, MPI.Intercomm] = {}
        self._rooted_comms: dict[int, MPI.Intracomm] = {}
        #: roots whose persistent Reduce the MPI library makes, and refuses to make
        self._made: set[int] = set()
        self.unmade: set[int] = set()
        #: requests of the MPI library's; under Open MPI they outlive no communicator
        self.requests: WeakValueDictionary[int, MPI.Request] = WeakValueDictionary()

    def apart(self) -> tuple[Any, NodeMemory]:
        """As if each rank were a node of its own; and the memory of this one."""
        found, memory = super().apart()
        found.pair = replace(self.pair, placement=found.placement)
        return found, memory

    def free(self) -> None:
        """Give everything back."""
        self.leave()  # first, as known calls use what is given back below
        for request in list(self.requests.values()):
            until(request.Get_status, self.limit)  # the user still has to wait for it
        for comm in (*self._intercomms.values(), *self._rooted_comms.values()):
            comm.Free()
        super().free()

    def request(self, native: Any, held: Any) -> Any:
        """A request of the MPI library's on a private communicator, and its buffers."""
        made = holding(native, held, self)
        self.requests[id(made)] = made
        return made

    def who(self, number: int) -> str:
        """A rank, in words."""
        p = self.p
        return f"group A rank {number}" if number < p else f"group B rank {number - p}"

    def count_refused(self, op: str) -> None:
        """As those do who have no part in a call with a root."""
        name = op.lower()
        if op.endswith("_init") and name[: -len("_init")] in _ROOTED:
            self.lasting_tag()
        elif op[0] == "I" and name[1:] in _ROOTED:
            self.next_tag()
            self.memory.skip()
        elif name in _ROOTED:
            for _ in range(2 if name == op else 1):  # objects take two calls
                self.memory.skip()

    @property
    def group(self) -> range:
        """The numbers of the own group."""
        return range(self.here_base, self.here_base + self.here)

    @property
    def senders(self) -> range:
        """The numbers of the other group."""
        return range(self.there_base, self.there_base + self.there)

    @cached_property
    def one_node(self) -> bool:
        """Whether all processes are on one node."""
        return len(set(self.nodes)) == 1

    @cached_property
    def node_memory(self) -> bool:
        """Whether calls may go through the memory of nodes."""
        return self.shares_nodes and self.device != "direct"

    def intercomm(self, root: int | None = None) -> MPI.Intercomm:
        """Both groups, or a root, by its number, and the other group, for the MPI
        library's own requests, which the user's could bring out of step; made by these
        together, when they first ask for it."""
        if root not in self._intercomms:
            with self.uninterrupted():
                made = bounded(partial(self._make_intercomm, root), self.limit)
                self._intercomms[root] = made
        return self._intercomms[root]

    def _make_intercomm(self, root: int | None) -> MPI.Intercomm:
        if root is None:
            return self.local.Create_intercomm(0, self.comm, self.there_base)
        # MPICH fails where one process alone makes one with others that have more
        # communicators; so they are one already
        both = self.rooted_comm(root)
        side = Native(both.Split(both.rank > 0))
        made = side.Create_intercomm(0, both, 0 if both.rank else 1)
        side.Free()
        return made

    def survivors(self) -> tuple[MPI.Intercomm, tuple[str, ...]]:
        """The processes of both groups that are left, and who is missing, in words.
        Shrinking the private communicator of both is what libraries can do; shrinking
        an intercommunicator is not."""
        left = Native(self.comm.Shrink())
        before, after = self.comm.Get_group(), left.Get_group()
        numbers = after.Translate_ranks(range(after.size), before)
        before.Free()
        after.Free()
        missing = sorted(set(range(self.comm.size)).difference(numbers))
        who = tuple(map(self.who, missing))
        others = [i for i, n in enumerate(numbers) if (n >= self.p) != self.mine]
        if not others:
            left.Free()
            group = "AB"[1 - self.mine]
            raise ProcessLost(missing, who, f"group {group} has died out")
        side = Native(left.Split(self.mine, left.Get_rank()))
        made = side.Create_intercomm(0, left, others[0])
        side.Free()
        left.Free()
        return made, who

    def rooted_comm(self, root: int) -> MPI.Intracomm:
        """A root, by its number, and after it the other group; made by these together,
        when they first ask for it."""
        if root not in self._rooted_comms:
            others = self.senders if root == self.number else self.group
            everyone = self.comm.Get_group()
            some = everyone.Incl([root, *others])
            self._rooted_comms[root] = Native(self.comm.Create_group(some))
            everyone.Free()
            some.Free()
        return self._rooted_comms[root]

    def has_made(self, root: int, request: MPI.Prequest | None) -> bool:
        """Whether the MPI library made its request for a root on all who have a part in
        it: asked once. One that some have is given back, with its communicator, on
        which they would be a call ahead of the others."""
        if root not in self._made:
            ok = np.array(request is not None)
            comm = self.rooted_comm(root)
            bounded(partial(comm.Allreduce, MPI.IN_PLACE, ok, MPI.LAND), self.limit)
            (self._made if ok else self.unmade).add(root)
            if not ok:
                if request is not None:
                    request.Free()
                self._intercomms.pop(root).Free()
        return root in self._made

    @cached_property
    def _runs(self) -> int:
        """How often a chain of a group comes to the same node."""
        return max(runs(self.nodes[: self.p]), runs(self.nodes[self.p :]))

    def per_byte(self, collective: str) -> dict[str, tuple[float, float]]:
        """What bytes take on the port of a node; nothing, where there is but one."""
        if self.one_node:
            return {}
        return per_byte(collective, self.p, self.q, self.machine, self._runs)

    def measure(self) -> None:
        """Measure what a message costs, if nobody did; by all ranks together."""
        if not self._measured:
            found = bounded(partial(probe, self.comm, self.nodes), self.limit)
            self.machine = shared(found, self.nodes)
            self._measured = True

    def asked_for(self, op: str, algorithm: str | None) -> str:
        """The algorithm asked for by a call or by the environment, as in
        ISTHMUS_BCAST=circulant."""
        return self.settings.between[op] if algorithm is None else algorithm

    def sizes(self, sent: int, received: tuple[int, ...], own: Group | None) -> Sizes:
        """Everyone's bytes; of an irregular call, once the own group is known."""
        here: Group = own or Equal(self.here, sent)
        there: Group = listed(received) if own else Equal(self.there, received[0])
        return Sizes(here, there) if self.mine == 0 else Sizes(there, here)


def _comes_second(inter: MPI.Intercomm) -> bool:
    """Whether the own group is B: its rank 0 comes after the other's in the world.

    All of a group must say the same. In groups of processes of several worlds not all
    of them see it: these say no, and MPI orders the groups.
    """
    world = MPI.COMM_WORLD.Get_group()
    groups = inter.Get_group(), inter.Get_remote_group()
    mine, other = (group.Translate_ranks([0], world)[0] for group in groups)
    for group in (world, *groups):
        group.Free()
    seen = np.array(mine != MPI.UNDEFINED and MPI.UNDEFINED != other < mine)
    theirs, ours = np.empty_like(seen), np.empty_like(seen)
    _Inter.Allreduce(inter, seen, theirs, MPI.LAND)  # what all of the other group say
    _Inter.Allreduce(inter, theirs, ours, MPI.LAND)  # and they tell what all of ours do
    return bool(ours)
