"""What is kept for an intercommunicator: both groups in one numbering."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

from ...choose.between import TrialTimes, most_visits, per_byte
from ...choose.choose import BUILT_IN, NETWORK
from ...choose.estimate import MessageCosts
from ...collectives.collective import BETWEEN
from ...collectives.placement import Placement
from ...collectives.records import record_of
from ...schedules.registry import Algorithm
from ...settings import BETWEEN_PREFIX
from ..arguments.between import BETWEEN_READERS
from ..buffers.node_memory import (
    HALF_BYTES,
    ROOTED_HALF_BYTES,
    NodeMemory,
    RootedTurns,
)
from ..costs.probe import advance, probe_in_steps
from ..costs.tuning import with_shared_ports
from ..waiting.bounded import bounded
from ..waiting.errors import ProcessLost
from .attribute import limit_of
from .channel import Channel, RootedChannel
from .context import CHUNKS, Context, Native

if TYPE_CHECKING:
    from ..arguments.readers import Reader
    from ..costs.trial import Trial

#: so many calls of a collective go ahead before its candidates are tried: who makes few
#: does not wait for that
WARM_UP_CALLS = 16
#: mpi4py's own class, whatever somebody may put in its place later
_Inter = MPI.Intercomm


class WarmUp:
    """The calls of a collective that are left until its candidates are tried."""

    def __init__(self) -> None:
        self.left = WARM_UP_CALLS

    def is_over(self) -> bool:
        """Count a call that goes ahead; whether calls make steps of a trial now."""
        self.left -= 1
        return self.left <= 0


class InterContext(Context):
    """Both groups of an intercommunicator.

    All traffic runs between the ranks of one merged communicator, where the MPI library
    has its fastest path. Group A, whose rank 0 comes first in the world, is numbered
    from 0, group B from p.
    """

    readers: Mapping[str, Reader] = BETWEEN_READERS
    groups = BETWEEN
    #: of calls of all ranks, and of those with a root in group A, and in group B
    halves = HALF_BYTES, ROOTED_HALF_BYTES, ROOTED_HALF_BYTES

    def __init__(self, inter: MPI.Intercomm) -> None:
        merged = Native(inter.Merge(_comes_second(inter)))
        self.mine = int(merged.Get_rank() != inter.Get_rank())
        local = merged.Split(self.mine, merged.Get_rank())
        sizes = inter.Get_size(), inter.Get_remote_size()
        self.p, self.q = sizes if self.mine == 0 else sizes[::-1]
        self.here, self.there = sizes
        self.there_base = 0 if self.mine else self.p
        self.here_base = self.p if self.mine else 0
        super().__init__(merged, Native(local), limit_of(inter))
        #: what the candidates for collectives take, once they were tried
        self.times: dict[str, TrialTimes] = {}
        self.tries = self.settings.trial and not self.checked
        #: the trial under way: its collective and its steps; one at a time
        self.trial: tuple[str, Trial] | None = None
        #: the calls of collectives that were not tried yet
        self._warm_ups: dict[str, WarmUp] = {}
        guess = BUILT_IN if self.one_node else with_shared_ports(NETWORK, self.nodes)
        self._machine: MessageCosts = self.tuned or guess
        self._is_measured = self.tuned is not None or self.one_node

    def _placement_for(
        self, algorithm: Algorithm, ranks: Sequence[int] | None
    ) -> Placement:
        """Where ranks are; calls with a root, which some ranks make, have smaller
        halves."""
        machine = self.machine
        placement = replace(
            self.placement, startup_bytes=machine.startup, ring_bytes=machine.ring
        )
        if ranks is None:
            return placement
        half = self._rooted_turns[0].segment.half_bytes
        return replace(placement.only(ranks), chunk_bytes=half // CHUNKS)

    def _use(self, memory: NodeMemory) -> None:
        """Make calls in some memory of nodes."""
        super()._use(memory)
        #: by the number of a root, of the calls between that and the other group
        self._rooted_channels: dict[int, RootedChannel] = {}
        groups = range(self.p, self.p + self.q), range(self.p)
        self._rooted_turns = [
            RootedTurns(segment, others)
            for segment, others in zip(memory.segments[1:], groups, strict=True)
        ]

    def channel_of(self, root: int | None) -> Channel:
        """The channel of the calls of a root, or of those of all ranks."""
        if root is None:
            return self.channel
        channel = self._rooted_channels.get(root)
        if channel is None:
            first = self.tag_limit // 4 + 1
            tags = range(first, self.tag_limit // 2 + 1)
            each = max(len(tags) // self.size, 1)
            start = root * each % len(tags)
            turns = self._rooted_turns[root >= self.p]
            memory, own = self.channel.memory, tags[start : start + each]
            channel = RootedChannel(self, memory, own, turns, root)
            self._rooted_channels[root] = channel
        return channel

    def _channels(self) -> list[Channel]:
        return [*super()._channels(), *self._rooted_channels.values()]

    def who(self, number: int) -> str:
        """A rank, in words."""
        p = self.p
        return f"group A rank {number}" if number < p else f"group B rank {number - p}"

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

    @property
    def node_memory(self) -> bool:
        """Whether calls may go through the memory of nodes."""
        return len(set(self.nodes)) < self.size and self.device != "direct"

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
        inter = side.Create_intercomm(0, left, others[0])
        side.Free()
        left.Free()
        return inter, who

    @cached_property
    def _runs(self) -> int:
        """How often a chain of a group comes to the same node."""
        return max(most_visits(self.nodes[: self.p]), most_visits(self.nodes[self.p :]))

    def per_byte(self, collective: str) -> dict[str, tuple[float, float]]:
        """What bytes take on the port of a node; nothing, where there is but one."""
        if self.one_node:
            return {}
        return per_byte(collective, self.p, self.q, self.machine, self._runs)

    @property
    def machine(self) -> MessageCosts:
        """What a message costs, the same on every rank: tuned, or a guess until it is
        measured."""
        return self._machine

    def measure(self) -> Iterator[None]:
        """Measure messages, if nobody did; by all ranks together, in steps."""
        if self._is_measured:
            return
        steps = probe_in_steps(self.comm, self.nodes)
        while (machine := bounded(partial(advance, steps), self.limit)) is None:
            yield
        self._machine = with_shared_ports(machine, self.nodes)
        self._is_measured = True

    def warm_up(self, op: str) -> Callable[[], bool] | None:
        """Counts the calls of an operation that go ahead, until its candidates are
        tried."""
        collective = record_of(op, BETWEEN).tried_as
        if not self.tries or not collective or collective in self.times:
            return None
        if self.observer is not None:
            return None
        return self._warm_ups.setdefault(collective, WarmUp()).is_over

    def is_root(self, root: int) -> bool:
        """Whether this rank is the root that the argument of a call names."""
        return root == MPI.ROOT

    def asked_for(self, op: str, algorithm: str | None) -> str:
        """The algorithm asked for by a call or by the environment, as in
        ISTHMUS_BCAST=circulant."""
        if algorithm is not None:
            return algorithm
        return self.settings.algorithm(BETWEEN_PREFIX, op)


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
