"""The context of a user's communicator, created at the first collective call.

All messages run on private communicators, since messages on the user's communicator
could meet those of the user. A context also has the node memory, the plans and the
channels, and refuses all calls after a failure.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakSet, WeakValueDictionary

import numpy as np
from mpi4py import MPI

from ...collectives.collective import Sizes
from ...collectives.placement import Placement
from ...collectives.records import COLLECTIVES
from ...cost.machine import Machine
from ...schedules.hosts import Hosts
from ...schedules.registry import Algorithm, resolve
from ...schedules.schedule import Schedule
from ...settings import Settings, read
from ..buffers import on_devices
from ..buffers.node_memory import (
    HALF_BYTES,
    REASONS,
    NodeMemory,
    reason_of,
    receive,
)
from ..costs import tuning
from ..costs.hosts import probe_hosts
from ..costs.tuning import message_piece_bytes, node_ranks
from ..native_classes import NativeIntracomm
from ..plan.cache import Plans, Scratch
from ..requests.native import finish
from ..requests.progress import progress
from ..waiting.bounded import bounded
from ..waiting.errors import MismatchError, NoTagLeft, ProcessLost, Stalled
from ..waiting.waiting import TimeLimit
from . import lost
from .attribute import attached, limit_of
from .channel import Channel, PersistentChannel

if TYPE_CHECKING:
    from ...choose.tuning import Tuning
    from ..arguments.readers import Reader
    from ..costs.trial import Run
    from ..plan.operation import AnyCall, Operation
    from ..plan.plan import Plan

#: chunks of a half of node memory: four for a call at a time, and space for rounding
CHUNKS_PER_HALF = 5
#: with devices, messages are cut into pieces of so many bytes, since a piece is copied
#: while the next piece is under way
DEVICE_PIECE_BYTES = 1 << 21
#: the tag of messages about a failure is so far below the largest tag, that of reports
_FAILURE_TAG_BELOW_LIMIT = 1

_log = logging.getLogger("isthmus")

FORKED_ERROR = (
    "isthmus: MPI belongs to the process that started it, not to one it forked"
)
FREED_ERROR = "isthmus: the communicator was freed"
_contexts: WeakSet[Context] = WeakSet()
is_forked = False


def _refuse_after_fork() -> None:
    """Refuse all calls in a forked process, since MPI belongs to the parent."""
    global is_forked
    is_forked = True
    for context in _contexts:
        context.refused = FORKED_ERROR


os.register_at_fork(after_in_child=_refuse_after_fork)


def interrupted(who: str, error: BaseException | None) -> str:
    """The error message of all calls after an interrupted call."""
    by = f" by {type(error).__name__}" if error else ", as its own error says,"
    return (
        f"isthmus: {who} was interrupted{by} in the middle of a collective call; free "
        "the communicator"
    )


@cache
def _tell_once(why: str) -> None:
    """Log why ranks do not use node memory, each reason once in a process."""
    why = why or "on another node"
    _log.warning("ranks of a node share no memory, messages take its place: %s", why)


def _settings_and_tuning() -> tuple[Settings | None, Tuning | str | None]:
    """The settings of the environment and the tuning, or None and an error message."""
    try:
        return read(), tuning.load_tuning()
    except ValueError as error:
        return None, str(error)


class Observer(Protocol):
    """An observer of a communicator's operations, such as a recorder."""

    def operation(
        self, channel: Channel, plan: Plan, call: AnyCall, buffers: list[Any]
    ) -> Operation:
        """An operation that reports to the observer."""
        ...


class Context:
    """Private communicators, plans and channels of a communicator.

    All messages run on `comm`, whose ranks are the numbers in schedules. `local` is the
    own group, identical to `comm` for a single group. `nodes` has the node of each
    rank, as the number of the node's first rank.
    """

    #: bytes of a half of node memory: for calls that all ranks count, and between
    #: groups for the calls of the roots of each group
    half_sizes: Sequence[int] = (HALF_BYTES,)
    #: the readers of arguments, by operation of MPI
    readers: Mapping[str, Reader] = {}
    #: INSIDE, BETWEEN or SEVERAL
    groups: int
    #: mpi4py's own class of the communicator, for the MPI library's own calls
    native_class: type[MPI.Comm] = NativeIntracomm
    is_freed = False
    #: whether a call failed in the middle, on any rank
    is_broken = False

    def __init__(
        self, comm: MPI.Intracomm, local: MPI.Intracomm, limit: TimeLimit
    ) -> None:
        self.comm, self.local, self.limit = comm, local, limit
        #: the error messages of a refusing context, and of a call that exceeded the
        #: limit
        self.refused = self.stalled = ""
        _contexts.add(self)
        #: whether the MPI library goes on when processes are lost
        self.survives = lost.is_noticed()
        self.number, self.index = comm.Get_rank(), local.Get_rank()
        self.size = comm.Get_size()
        #: buffers of failed calls, whose messages may still be under way
        self.orphans: list[Any] = []
        # rank 0 decides: environments that differ would lead to different algorithms
        settings, tuned = comm.bcast(
            _settings_and_tuning() if self.number == 0 else None
        )
        if isinstance(tuned, str):  # an error, on all ranks
            self._free_comms()
            raise ValueError(tuned)
        self.settings: Settings = settings
        self.checked = self.settings.checked
        self.plans, self.scratch = Plans(), Scratch()
        #: the observer of operations (see bench/recorder)
        self.observer: Observer | None = None
        self.tag_limit = int(comm.Get_attr(MPI.TAG_UB) or 32767)
        #: channels of persistent calls by tag, and the tags not used so far
        self._persistent: WeakValueDictionary[int, Channel] = WeakValueDictionary()
        self._tags_left: Iterator[int] | None = None
        memory = self._meet(node_ranks(comm, self.settings.per_node))
        self._use(memory)
        #: the memory in which ranks of the node report failures, also those that wait
        #: in a call without this memory
        self._reports = memory
        #: whether ranks share nodes
        self.shares_nodes = len(set(self.nodes)) < len(self.nodes)
        hosts = tuning.host_costs(tuned, comm)
        half = memory.segments[0].half_bytes
        self.placement = Placement(self.nodes, hosts, half // CHUNKS_PER_HALF)
        device_piece = DEVICE_PIECE_BYTES if self.devices else 0
        self.cut = message_piece_bytes(self.nodes) or device_piece
        self.tuned = None if tuned is None else tuned.on(self.nodes)

    # -- the ranks of a node

    def _meet(self, ranks_of_node: Sequence[int]) -> NodeMemory:
        """The memory shared with the ranks of the node; collective.

        All ranks also learn nodes, threads and devices. If the ranks of a single node
        cannot share memory, no rank does, since all ranks must choose alike.
        """
        memory, why = self._attempt(ranks_of_node, half_sizes=self.half_sizes)
        multiple = MPI.Query_thread() == MPI.THREAD_MULTIPLE
        devices = on_devices.taken(), on_devices.present()
        row = np.array([ranks_of_node[0], memory is not None, multiple, *devices])
        rows = np.empty((self.size, len(row)), row.dtype)
        self.comm.Allgather(row, rows)
        self.threads = bool(rows[:, 2].all())
        #: the treatment of buffers on devices, and whether any rank may have devices
        self.device = on_devices.way(self.settings.device, bool(rows[:, 3].all()))
        self.devices = bool(rows[:, 4].any())
        if memory is None or not rows[:, 1].all():
            if memory is not None:
                memory.free()
            _tell_once(why)
            rows[:, 0] = range(len(rows))
            memory = NodeMemory(self.comm, [self.number], self.half_sizes)
        self.nodes: tuple[int, ...] = tuple(rows[:, 0].tolist())
        return memory

    def _use(self, memory: NodeMemory) -> None:
        """Set up the channel of calls in a node memory."""
        #: the channel of calls of all ranks
        self.channel = Channel(self, memory, range(1, self.tag_limit // 4 + 1))

    def _attempt(
        self, ranks: Sequence[int], **options: Any
    ) -> tuple[NodeMemory | None, str]:
        """Memory shared by ranks; or on all of them None, and the reason."""
        try:
            return NodeMemory(self.comm, ranks, **options), ""
        except MemoryError as error:
            return None, str(error)

    def as_if_alone(self) -> Context:
        """A copy of the context with each rank on a separate node.

        For a persistent call without node memory, because plans must not meet then.
        """
        context = copy(self)
        context.nodes = tuple(range(self.size))
        context.placement = replace(self.placement, nodes=context.nodes)
        context.plans = Plans()
        context._use(NodeMemory(self.comm, [self.number], self.half_sizes))
        return context

    # -- persistent calls

    def persistent_channel(self, plan: Plan) -> Channel | None:
        """A private channel for a persistent call; collective over the participants.

        The ranks of a node agree on the largest need for node memory, since a plan
        counts only the bytes that its rank touches. Whether a plan meets tells which
        ranks share the memory. None on all participants if the memory of a node does
        not suffice.
        """
        if not plan.is_counted:
            return self._alone(1)
        tag = self.persistent_tag(plan.participants)
        if not plan.meets:
            return self._registered(tag, self._no_memory())
        ranks = sorted(plan.participants or range(self.size))
        ranks_of_node = self.channel.segment.ranks
        users = sorted({*ranks_of_node}.intersection(ranks))
        half = _largest(self.comm, users, plan.node, tag)
        memory, why = self._attempt(
            ranks_of_node, half_sizes=[half], tag=tag, users=users
        )
        is_complete = memory is not None
        if not {*ranks}.issubset(ranks_of_node):
            is_complete = not _largest(self.comm, ranks, int(not is_complete), tag)
        if memory is None or not is_complete:
            if memory is not None:
                memory.free()
            _tell_once(why)
            return None
        return self._registered(tag, memory)

    def _registered(self, tag: int, memory: NodeMemory) -> Channel:
        """The channel of a persistent call, which holds the tag until closed."""
        channel = PersistentChannel(self, memory, range(tag, tag + 1))
        self._persistent[tag] = channel
        return channel

    def give_back_tag(self, tag: int) -> None:
        """Free the tag of a persistent call."""
        self._persistent.pop(tag, None)

    def channel_for(self, plan: Plan) -> Channel:
        """The channel that numbers the calls of a plan."""
        if not plan.is_counted:
            return self._idle_channel
        return self.channel if plan.root is None else self.channel_of(plan.root)

    @cached_property
    def _idle_channel(self) -> Channel:
        """The channel of calls that no rank counts."""
        return self._alone(1)

    def _alone(self, tag: int) -> Channel:
        """A channel of calls without node memory."""
        return Channel(self, self._no_memory(), range(tag, tag + 1))

    def _no_memory(self) -> NodeMemory:
        """Node memory of this rank alone, without bytes."""
        return NodeMemory(self.comm, [self.number], [0])

    def channel_of(self, root: int | None) -> Channel:
        """The channel of a root's calls, or of the calls of all ranks."""
        return self.channel

    def _channels(self) -> list[Channel]:
        """All live channels of the communicator."""
        return [self.channel, *self._persistent.values()]

    def persistent_tag(self, participants: Sequence[int] | None = None) -> int:
        """A free tag for a persistent call; collective over the participants.

        Calls of all ranks get the tags in turn, since all ranks count such calls alike.
        The participants of a smaller call agree on a tag, since the ranks may have
        taken part in different calls before.
        """
        first, last = 3 * self.tag_limit // 4, self.tag_limit - _FAILURE_TAG_BELOW_LIMIT
        if participants is not None:
            return self._agreed_tag(range(first, last), sorted(participants))
        tags = range(self.tag_limit // 2 + 1, first)
        if self._tags_left is None:
            self._tags_left = iter(tags)
        tag = next(self._tags_left, None)
        if tag is None:
            live_tags = list(self._persistent)
            rows = bounded(partial(self.comm.allgather, live_tags), self.limit)
            used = set().union(*rows)
            self._tags_left = (x for x in tags if x not in used)
            tag = next(self._tags_left, None)
        if tag is None:
            raise _no_tag_left(len(tags))
        return tag

    def _agreed_tag(self, tags: range, ranks: Sequence[int]) -> int:
        """The first tag that is free on all ranks of a call; collective."""
        agreed, proposed = -1, tags.start
        while proposed != agreed:
            agreed = proposed
            free = (x for x in tags[agreed - tags.start :] if x not in self._persistent)
            proposed = _largest(self.comm, ranks, next(free, tags.stop), 0)
        if agreed == tags.stop:
            raise _no_tag_left(len(tags))
        return agreed

    # -- ranks, in numbers and words

    def who(self, number: int) -> str:
        """The rank of a number, in words."""
        return f"rank {number}"

    @property
    def group(self) -> range:
        """The numbers of the own group."""
        return range(self.size)

    @property
    def senders(self) -> Sequence[int]:
        """The numbers of the ranks that send to this rank, in the order of blocks."""
        return range(self.size)

    def is_root(self, root: int) -> bool:
        """Whether an argument of a call names this rank as the root."""
        return root == self.index

    @property
    def machine(self) -> Machine:
        """The costs of messages, equal on all ranks."""
        raise NotImplementedError

    def asked_for(self, op: str, algorithm: str | None) -> str:
        """The algorithm that a call or the environment requests."""
        raise NotImplementedError

    def schedule(
        self,
        collective: str,
        algorithm: str,
        sizes: Sizes,
        unit: int = 1,
        ranks: Sequence[int] | None = None,
    ) -> Schedule:
        """The schedule of a collective on this communicator, or on a part of the ranks.

        Sizes are in elements of `unit` bytes, and may be the sizes that this rank
        knows.
        """
        entry, _ = resolve(collective, algorithm)
        placement = self._placement_for(entry, ranks)
        return COLLECTIVES[collective].schedule(algorithm, sizes, placement, unit)

    def _placement_for(
        self, algorithm: Algorithm, ranks: Sequence[int] | None
    ) -> Placement:
        """The placement of ranks, as an algorithm may use it."""
        raise NotImplementedError

    def warm_up(self, op: str) -> Callable[[], bool] | None:
        """The countdown of an operation's calls before steps of a trial, or None."""
        return None

    def advance_trial(self, op: str, run: Run) -> None:
        """Make a step of the trial of the candidates for an operation."""
        raise NotImplementedError

    # -- failures

    def check_usable(self) -> None:
        """Refuse a call after a failure, and on a freed communicator."""
        if self.refused:
            raise RuntimeError(self.refused)

    def refuse(self, number: int, error: BaseException | None = None) -> str:
        """Refuse later calls, because a rank was interrupted in the middle of a call.

        Later calls would receive the messages of the interrupted call.
        """
        self.is_broken = True
        self.refused = self.refused or interrupted(self.who(number), error)
        return self.refused

    def reported_failure(self) -> tuple[int, str] | None:
        """A rank that has reported a failure, and the reason, or None.

        Ranks of the node report in memory, the others by messages. The probe for the
        messages also lets the MPI library make progress.
        """
        on_node = self._reports.gone()
        if on_node is not None:
            return on_node
        tag, comm = self.tag_limit - _FAILURE_TAG_BELOW_LIMIT, self.comm
        status = MPI.Status()
        if not comm.Iprobe(MPI.ANY_SOURCE, tag, status):
            return None
        code, rank = bytearray(1), status.Get_source()
        comm.Recv([code, MPI.BYTE], rank, tag)
        return rank, REASONS[code[0]]

    def _tell_failure(self, error: BaseException) -> None:
        """Report a failure to all ranks, in node memory and by messages."""
        ranks_of_node = self._reports.ranks
        for memory in {self._reports, *(x.memory for x in self._channels())}:
            memory.leave(error)
        code = bytes([REASONS.index(reason_of(error))])
        tag = self.tag_limit - _FAILURE_TAG_BELOW_LIMIT
        for rank in set(range(self.size)).difference(ranks_of_node):
            message = [code, MPI.BYTE]
            self.orphans.append((self.comm.Isend(message, rank, tag), code))

    def check_lost(self) -> None:
        """Raise if a process is lost, although no message of the process is awaited."""
        if self.survives:
            lost.look(self.comm)

    def has_lost(self, error: BaseException) -> bool:
        """Whether an error is due to a lost process."""
        return self.survives and lost.is_due_to(error, self.comm)

    def failed(
        self,
        error: BaseException,
        op: str = "",
        algorithm: str = "",
        orphan: Any = None,
    ) -> BaseException:
        """The error to raise after an error in the middle of a call.

        Later calls are refused, and the failure is reported to all ranks. The orphan
        stays alive, since messages may be under way from and to its buffers.
        """
        self.orphans.append(orphan)
        if isinstance(error, MPI.Exception | ProcessLost) and self.has_lost(error):
            for comm in (self.comm, self.local):
                comm.Revoke()
            error = lost.process_lost(self.comm, self.who)
        if isinstance(error, Stalled):
            self.stalled = str(error.in_call(op, algorithm, self.number, self.who))
        is_first = not self.is_broken
        self.refuse(self.number, error)
        if is_first and not self.is_freed:
            self._tell_failure(error)
        return error

    @contextmanager
    def uninterrupted(self, op: str = "", algorithm: str = "") -> Iterator[None]:
        """A block after whose failure the communicator refuses all calls.

        Errors that all ranks raise together are excepted, since no rank is left behind
        in the block. So are those of a call in the block that has reported its own.
        """
        try:
            yield
        except (MismatchError, NoTagLeft):
            raise
        except BaseException as error:
            if self.is_broken:
                raise
            raise self.failed(error, op, algorithm) from None

    def finish(self, request: MPI.Request, *buffers: Any) -> None:
        """Wait for a request of the MPI library, within the time limit."""
        finish(request, self.limit, *buffers)

    # -- measured costs

    def learn_hosts(self) -> Hosts:
        """Measure the costs of messages of each host, for later calls; collective.

        All plans are dropped, since the costs change the placement of later schedules.
        """
        with self.uninterrupted():
            hosts = bounded(partial(probe_hosts, self.comm, self.nodes), self.limit)
        self.placement = replace(self.placement, hosts=hosts)
        self.plans.clear()
        return hosts

    # -- the end

    def leave(self) -> None:
        """Refuse later calls, without a call of MPI."""
        self.is_freed = True
        self.refused = self.refused or FREED_ERROR

    def free(self) -> None:
        """Free all resources; collective, like `Comm.Free`."""
        self.leave()
        for channel in self._channels():
            progress.finish(channel)
        self.plans.clear()
        self.scratch.clear()
        if self.is_broken:
            # not freed: a later communicator with the same number would receive
            # messages that are still under way
            _never_freed.append((self.channel, self.orphans, self.comm, self.local))
        else:
            self.channel.close()
            self._free_comms()

    def _free_comms(self) -> None:
        if self.local is not self.comm:
            self.local.Free()
        self.comm.Free()


#: buffers and communicators of failed calls
_never_freed: list[Any] = []
AnyContext = TypeVar("AnyContext", bound=Context)


def _no_tag_left(n: int) -> NoTagLeft:
    return NoTagLeft(
        f"no tag is left for a persistent call: {n} requests of this communicator "
        "live; free some"
    )


def _largest(comm: MPI.Intracomm, ranks: Sequence[int], value: int, tag: int) -> int:
    """The largest value of all ranks in a sequence; collective over the ranks."""
    first, *others = ranks
    if comm.Get_rank() != first:
        comm.send(value, first, tag)
        return int(receive(comm, first, tag))
    largest: int = max([value, *(receive(comm, rank, tag) for rank in others)])
    for rank in others:
        comm.send(largest, rank, tag)
    return largest


def context_of(
    comm: MPI.Comm, make: Callable[[Any], AnyContext], name: str = "context"
) -> AnyContext:
    """The context of a communicator, created at the first collective call.

    A communicator may have contexts of several names: its own, and one for each
    coupling of it.
    """
    if is_forked:
        raise RuntimeError(FORKED_ERROR)
    limit = limit_of(comm)
    try:
        context = attached(comm, name, lambda x: bounded(partial(make, x), limit))
    except ValueError:  # an unreadable tuning file, on all ranks
        raise
    except BaseException as error:
        why = interrupted("this rank", error)
        if isinstance(error, Stalled):
            error.in_call("first call", "", comm.Get_rank(), "rank {}".format)
        attached(comm, name, lambda _: _Refused(why))
        raise
    context.check_usable()
    return context


class _Refused:
    """The substitute for a context whose creation failed on this rank."""

    def __init__(self, why: str) -> None:
        self.why = why

    def check_usable(self) -> None:
        """Refuse all calls with the reason of the failure."""
        raise RuntimeError(self.why)

    def leave(self) -> None:
        """Nothing to do, since all calls are refused."""

    def free(self) -> None:
        """Nothing to do, since the failed creation left no resource."""
