"""The context of an intercommunicator: two groups in one numbering."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

from ...choose.estimate import ring_bytes
from ...choose.tried import TrialTimes, per_byte
from ...choose.tuning import untuned
from ...collectives.collective import BETWEEN
from ...collectives.placement import Placement
from ...collectives.records import record_of
from ...cost.machine import Machine
from ...schedules.registry import Algorithm
from ...settings import BETWEEN_PREFIX
from ..arguments.between import BETWEEN_READERS
from ..buffers.node_memory import (
    HALF_BYTES,
    ROOTED_HALF_BYTES,
    NodeMemory,
    RootedTurns,
)
from ..costs import trial
from ..costs.probe import advance, probe_in_steps
from ..native_classes import NativeIntercomm, NativeIntracomm
from ..waiting.bounded import bounded
from ..waiting.errors import ProcessLost
from .attribute import limit_of
from .channel import Channel, RootedChannel
from .context import CHUNKS_PER_HALF, Context

if TYPE_CHECKING:
    from ..arguments.readers import Reader
    from ..costs.trial import Run, Trial

#: calls of a collective before the candidates are tried: a program with few calls would
#: wait longer for the trial than for the calls
WARM_UP_CALLS = 16


class WarmUp:
    """The countdown of a collective's calls before the candidates are tried."""

    def __init__(self) -> None:
        self.left = WARM_UP_CALLS

    def is_over(self) -> bool:
        """Count a call that goes ahead, and tell whether a trial makes steps."""
        self.left -= 1
        return self.left <= 0


class InterContext(Context):
    """The context of an intercommunicator, with both groups.

    All messages run on a merged intracommunicator, because MPI libraries are fastest
    there. Group A, whose rank 0 comes first in the world, is numbered from 0, group B
    from p.
    """

    readers: Mapping[str, Reader] = BETWEEN_READERS
    groups = BETWEEN
    native_class: type[MPI.Comm] = NativeIntercomm
    #: for calls of all ranks, for roots in group A, and for roots in group B
    half_sizes = HALF_BYTES, ROOTED_HALF_BYTES, ROOTED_HALF_BYTES

    def __init__(self, inter: MPI.Intercomm) -> None:
        merged = NativeIntracomm(inter.Merge(_comes_second(inter)))
        self.group_number = int(merged.Get_rank() != inter.Get_rank())
        local = merged.Split(self.group_number, merged.Get_rank())
        sizes = inter.Get_size(), inter.Get_remote_size()
        self.p, self.q = sizes if self.group_number == 0 else sizes[::-1]
        self.here, self.there = sizes
        self.there_base = 0 if self.group_number else self.p
        self.here_base = self.p if self.group_number else 0
        super().__init__(merged, NativeIntracomm(local), limit_of(inter))
        #: times of the candidates of each collective, after a trial
        self.times: dict[str, TrialTimes] = {}
        self.tries = self.settings.trial and not self.checked
        #: the trial under way, as a collective and steps: a trial at a time
        self._trial: tuple[str, Trial] | None = None
        #: countdowns of collectives not yet tried
        self._warm_ups: dict[str, WarmUp] = {}
        self._machine: Machine = self.tuned or untuned(self.nodes)
        self._is_measured = self.tuned is not None or self.one_node

    def _placement_for(
        self, algorithm: Algorithm, ranks: Sequence[int] | None
    ) -> Placement:
        """The placement of ranks, with smaller halves for calls with a root."""
        startup_bytes = self.machine.startup_bytes
        placement = replace(self.placement, startup_bytes=startup_bytes)
        if algorithm.staged:
            placement = replace(placement, ring_bytes=ring_bytes(self.machine))
        if ranks is None:
            return placement
        half = self._rooted_turns[0].segment.half_bytes
        return replace(placement.only(ranks), chunk_bytes=half // CHUNKS_PER_HALF)

    def _use(self, memory: NodeMemory) -> None:
        """Set up the channels of all calls in a node memory."""
        super()._use(memory)
        #: the channel of calls between a root and the remote group, by the root's
        #: number
        self._rooted_channels: dict[int, RootedChannel] = {}
        groups = range(self.p, self.p + self.q), range(self.p)
        self._rooted_turns = [
            RootedTurns(segment, remote_ranks)
            for segment, remote_ranks in zip(memory.segments[1:], groups, strict=True)
        ]

    def channel_of(self, root: int | None) -> Channel:
        """The channel of a root's calls, or of the calls of all ranks."""
        if root is None:
            return self.channel
        channel = self._rooted_channels.get(root)
        if channel is None:
            first = self.tag_limit // 4 + 1
            tags = range(first, self.tag_limit // 2 + 1)
            tag_count = max(len(tags) // self.size, 1)
            start = root * tag_count % len(tags)
            turns = self._rooted_turns[root >= self.p]
            memory, own_tags = self.channel.memory, tags[start : start + tag_count]
            channel = RootedChannel(self, memory, own_tags, turns, root)
            self._rooted_channels[root] = channel
        return channel

    def _channels(self) -> list[Channel]:
        return [*super()._channels(), *self._rooted_channels.values()]

    def who(self, number: int) -> str:
        """The group and rank of a number, in words."""
        p = self.p
        return f"group A rank {number}" if number < p else f"group B rank {number - p}"

    @property
    def group(self) -> range:
        """The numbers of the own group."""
        return range(self.here_base, self.here_base + self.here)

    @property
    def senders(self) -> range:
        """The numbers of the remote group."""
        return range(self.there_base, self.there_base + self.there)

    @cached_property
    def one_node(self) -> bool:
        """Whether all processes of both groups share a node."""
        return len(set(self.nodes)) == 1

    @property
    def node_memory(self) -> bool:
        """Whether ranks share nodes, and calls may use the node memory."""
        return len(set(self.nodes)) < self.size and self.device != "direct"

    def survivors(self) -> tuple[MPI.Intercomm, tuple[str, ...]]:
        """An intercommunicator of the surviving processes, and the lost ranks in words.

        The private communicator of both groups is shrunk, since MPI libraries cannot
        shrink an intercommunicator.
        """
        shrunk = NativeIntracomm(self.comm.Shrink())
        before, after = self.comm.Get_group(), shrunk.Get_group()
        numbers = after.Translate_ranks(range(after.size), before)
        before.Free()
        after.Free()
        missing = sorted(set(range(self.comm.size)).difference(numbers))
        missing_names = tuple(map(self.who, missing))
        remote = [
            i for i, n in enumerate(numbers) if (n >= self.p) != self.group_number
        ]
        if not remote:
            shrunk.Free()
            group = "AB"[1 - self.group_number]
            raise ProcessLost(missing, missing_names, f"group {group} has died out")
        local = NativeIntracomm(shrunk.Split(self.group_number, shrunk.Get_rank()))
        inter = local.Create_intercomm(0, shrunk, remote[0])
        local.Free()
        shrunk.Free()
        return inter, missing_names

    def per_byte(self, collective: str) -> dict[str, tuple[float, float]]:
        """The seconds of a byte on a node's port by candidate, if nodes differ."""
        if self.one_node:
            return {}
        return per_byte(collective, self.p, self.q, self.machine)

    @property
    def machine(self) -> Machine:
        """The costs of messages, equal on all ranks: tuned, measured or a guess."""
        return self._machine

    def measure(self) -> Iterator[None]:
        """Measure the costs of messages once, in steps; collective."""
        if self._is_measured:
            return
        steps = probe_in_steps(self.comm, self.nodes)
        while (machine := bounded(partial(advance, steps), self.limit)) is None:
            yield
        self._machine = machine
        self._is_measured = True

    def warm_up(self, op: str) -> Callable[[], bool] | None:
        """The countdown of an operation's calls before a trial, or None."""
        collective = record_of(op, BETWEEN).tried_as
        if not self.tries or not collective or collective in self.times:
            return None
        if self.observer is not None:
            return None
        return self._warm_ups.setdefault(collective, WarmUp()).is_over

    def advance_trial(self, op: str, run: Run) -> None:
        """Make a step of the trial of the candidates for an operation."""
        collective, steps = self._trial or (record_of(op, BETWEEN).tried_as, None)
        self._trial = None
        with self.uninterrupted():
            try:
                if steps is None:
                    steps = trial.trial(self, collective)
                    next(steps)
                else:
                    steps.send(run)
            except StopIteration as end:
                self.times[collective] = end.value
                self.plans.clear()  # plans of all ranks must follow one choice
                return
        self._trial = collective, steps

    def is_root(self, root: int) -> bool:
        """Whether this rank is the root that the argument of a call names."""
        return root == MPI.ROOT

    def asked_for(self, op: str, algorithm: str | None) -> str:
        """The algorithm that a call or the environment requests.

        An example is ISTHMUS_BCAST=circulant.
        """
        if algorithm is not None:
            return algorithm
        return self.settings.algorithm(BETWEEN_PREFIX, op)


def _comes_second(inter: MPI.Intercomm) -> bool:
    """Whether the own group is B: rank 0 comes after the remote rank 0 in the world.

    All ranks of a group must agree, but not all see the order if processes come from
    several worlds. A single rank that does not see the order makes all say no, and MPI
    orders the groups.
    """
    world = MPI.COMM_WORLD.Get_group()
    groups = inter.Get_group(), inter.Get_remote_group()
    local, remote = (group.Translate_ranks([0], world)[0] for group in groups)
    for group in (world, *groups):
        group.Free()
    seen = np.array(local != MPI.UNDEFINED and MPI.UNDEFINED != remote < local)
    seen_by_remote, seen_by_local = np.empty_like(seen), np.empty_like(seen)
    # an Allreduce between groups gives the result of the remote group: twice, so that
    # the remote group returns the local group's
    NativeIntercomm.Allreduce(inter, seen, seen_by_remote, MPI.LAND)
    NativeIntercomm.Allreduce(inter, seen_by_remote, seen_by_local, MPI.LAND)
    return bool(seen_by_local)
