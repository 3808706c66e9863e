"""What the collectives of isthmus need on a user's communicator."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet, WeakValueDictionary

import numpy as np
from mpi4py import MPI

from ...choose.estimate import MessageCosts
from ...collectives.collective import Sizes
from ...collectives.placement import Placement
from ...collectives.records import COLLECTIVES
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
    from ..arguments.readers import Reader
    from ..plan.plan import Plan

#: a call takes so many chunks of a half at a time, and something for their rounding
CHUNKS = 5
#: bytes: where there are devices, messages are cut into such pieces, which are copied
#: while others are on their way
DEVICE_PIECE_BYTES = 1 << 21
#: tags of persistent calls, of those that set something up, and of those that tell of a
#: failure, counted from the largest tag down; the largest is that of a report
_FAILED_TAG = 1

_log = logging.getLogger("isthmus")
#: mpi4py's own class, whatever somebody may put in its place later
Native = MPI.Intracomm

FORKED = "isthmus: MPI belongs to the process that started it, not to one it forked"
FREED = "isthmus: the communicator was freed"
_contexts: WeakSet[Context] = WeakSet()
is_forked = False


def _refuse_after_fork() -> None:
    """In a forked process: make no calls."""
    global is_forked
    is_forked = True
    for context in _contexts:
        context.refused = FORKED


os.register_at_fork(after_in_child=_refuse_after_fork)


def interrupted(who: str, error: BaseException | None) -> str:
    """Why no more calls are made on a communicator."""
    by = f" by {type(error).__name__}" if error else ", as its own error says,"
    return (
        f"isthmus: {who} was interrupted{by} in the middle of a collective call; free "
        "the communicator"
    )


@cache
def _tell_once(why: str) -> None:
    """Say that the memory of nodes is not used; the same reason once in a process."""
    why = why or "on another node"
    _log.warning("ranks of a node share no memory, messages take its place: %s", why)


def _settings_and_tuning() -> tuple[Settings | None, Any]:
    """What the environment asks for, and the tuning, or what is wrong with either."""
    try:
        return read(), tuning.load_tuning()
    except ValueError as error:
        return None, str(error)


class Context:
    """Private communicators, plans and numbered calls of one communicator.

    All traffic runs on `comm`, whose ranks are the numbers of the schedules; `local` is
    the own group, the same where there is only one. `nodes` has the node of every rank,
    as the number of the first rank there.
    """

    #: bytes of the halves of node memory, for each kind of calls that take turns
    halves: Sequence[int] = (HALF_BYTES,)
    #: reads the arguments of each operation of MPI
    readers: Mapping[str, Reader] = {}
    #: INSIDE one, BETWEEN two, or SEVERAL
    groups: int
    is_freed = False
    #: whether a call failed in the middle, here or elsewhere
    is_broken = False

    def __init__(
        self, comm: MPI.Intracomm, local: MPI.Intracomm, limit: TimeLimit
    ) -> None:
        self.comm, self.local, self.limit = comm, local, limit
        #: why no more calls are made, if so, and where this rank waited too long
        self.refused = self.stalled = ""
        _contexts.add(self)
        #: whether the MPI library goes on when processes are lost
        self.survives = lost.is_noticed()
        self.number, self.index = comm.Get_rank(), local.Get_rank()
        self.size = comm.Get_size()
        #: what belongs to calls that failed, whose messages may still be under way
        self.orphans: list[Any] = []
        # rank 0's, so that all ranks decide alike
        settings, tuned = comm.bcast(
            _settings_and_tuning() if self.number == 0 else None
        )
        if isinstance(tuned, str):  # what is wrong with it, on all ranks alike
            self._free_comms()
            raise ValueError(tuned)
        self.settings: Settings = settings
        self.checked = self.settings.checked
        self.plans, self.scratch = Plans(), Scratch()
        #: who observes the operations of its calls (see bench/recorder)
        self.observer: Any = None
        self.tag_limit = int(comm.Get_attr(MPI.TAG_UB) or 32767)
        #: persistent calls by their tags, and the tags that are left
        self._persistent: WeakValueDictionary[int, Channel] = WeakValueDictionary()
        self._tags_left: Iterator[int] | None = None
        memory = self._meet(node_ranks(comm, self.settings.per_node))
        self._use(memory)
        #: whether ranks share nodes
        self.shares_nodes = len(set(self.nodes)) < len(self.nodes)
        hosts = tuning.host_costs(tuned, comm)
        half = memory.segments[0].half_bytes
        self.placement = Placement(self.nodes, hosts, half // CHUNKS)
        device_piece = DEVICE_PIECE_BYTES if self.devices else 0
        self.cut = message_piece_bytes(self.nodes) or device_piece
        self.tuned = tuning.message_costs(tuned, self.nodes)

    # -- the ranks of a node

    def _meet(self, here: Sequence[int]) -> NodeMemory:
        """The memory shared with the ranks of the node; all ranks learn where they are
        and what they can do. Each is alone where on some node they share none."""
        memory, why = self._attempt(here, halves=self.halves)
        multiple = MPI.Query_thread() == MPI.THREAD_MULTIPLE
        devices = on_devices.taken(), on_devices.present()
        row = np.array([here[0], memory is not None, multiple, *devices])
        rows = np.empty((self.size, len(row)), row.dtype)
        self.comm.Allgather(row, rows)
        self.threads = bool(rows[:, 2].all())
        #: what is done with buffers on devices, and whether there may be some
        self.device = on_devices.way(self.settings.device, bool(rows[:, 3].all()))
        self.devices = bool(rows[:, 4].any())
        if memory is None or not rows[:, 1].all():
            if memory is not None:
                memory.free()
            _tell_once(why)
            rows[:, 0] = range(len(rows))
            memory = NodeMemory(self.comm, [self.number], self.halves)
        self.nodes: tuple[int, ...] = tuple(rows[:, 0].tolist())
        return memory

    def _use(self, memory: NodeMemory) -> None:
        """Make calls in some memory of nodes."""
        #: of calls in which all ranks have a part
        self.channel = Channel(self, memory, range(1, self.tag_limit // 4 + 1))

    def _attempt(
        self, ranks: Sequence[int], **how: Any
    ) -> tuple[NodeMemory | None, str]:
        """Memory that some ranks share; or on all of them None, and why."""
        try:
            return NodeMemory(self.comm, ranks, **how), ""
        except MemoryError as error:
            return None, str(error)

    def as_if_alone(self) -> Context:
        """The context as if each rank were a node of its own, for a persistent call for
        which nodes have no memory."""
        context = copy(self)
        context.nodes = tuple(range(self.size))
        context.placement = replace(self.placement, nodes=context.nodes)
        context.plans = Plans()
        context._use(NodeMemory(self.comm, [self.number], self.halves))
        return context

    # -- persistent calls

    def persistent_channel(self, plan: Plan) -> Channel | None:
        """A channel for one persistent call, made by all ranks in one order.

        Its node memory is as large as the rank of the node needs that needs most: a
        rank's plan knows only what it touches itself, but whether a plan meets says who
        shares the memory. None on all ranks that have a part in the call where some
        node has no memory for it.
        """
        if not plan.is_counted:
            return self._alone(1)
        tag = self.persistent_tag(plan.participants)
        if not plan.meets:
            return self._registered(tag, self._no_memory())
        ranks = sorted(plan.participants or range(self.size))
        here = self.channel.segment.ranks
        users = sorted({*here}.intersection(ranks))
        half = _largest(self.comm, users, plan.node, tag)
        memory, why = self._attempt(here, halves=[half], tag=tag, users=users)
        is_complete = memory is not None
        if not {*ranks}.issubset(here):
            is_complete = not _largest(self.comm, ranks, int(not is_complete), tag)
        if memory is None or not is_complete:
            if memory is not None:
                memory.free()
            _tell_once(why)
            return None
        return self._registered(tag, memory)

    def _registered(self, tag: int, memory: NodeMemory) -> Channel:
        """The channel of a persistent call, which has the tag until it is closed."""
        channel = PersistentChannel(self, memory, range(tag, tag + 1))
        self._persistent[tag] = channel
        return channel

    def give_back_tag(self, tag: int) -> None:
        """Allow that a persistent call gets a tag again."""
        self._persistent.pop(tag, None)

    def channel_for(self, plan: Plan) -> Channel:
        """Where the calls of a plan are numbered."""
        if not plan.is_counted:
            return self._idle_channel
        return self.channel if plan.root is None else self.channel_of(plan.root)

    @cached_property
    def _idle_channel(self) -> Channel:
        """The channel of calls that other ranks do not count."""
        return self._alone(1)

    def _alone(self, tag: int) -> Channel:
        """A channel of calls that do without the memory of nodes."""
        return Channel(self, self._no_memory(), range(tag, tag + 1))

    def _no_memory(self) -> NodeMemory:
        """The memory of a node that nobody shares."""
        return NodeMemory(self.comm, [self.number], [0])

    def channel_of(self, root: int | None) -> Channel:
        """The channel of the calls of a root, or of those of all ranks."""
        return self.channel

    def _channels(self) -> list[Channel]:
        """All channels of the communicator that live."""
        return [self.channel, *self._persistent.values()]

    def persistent_tag(self, participants: Sequence[int] | None = None) -> int:
        """A tag for a persistent call of all ranks, or of some, that no other call has
        as long as its channel lives on one of them; they call this together.

        Calls of all ranks are counted alike, so the tags follow each other. Those who
        have a part in other calls agree on a tag, as they may have counted differently.
        """
        first, last = 3 * self.tag_limit // 4, self.tag_limit - _FAILED_TAG
        if participants is not None:
            return self._agreed_tag(range(first, last), sorted(participants))
        tags = range(self.tag_limit // 2 + 1, first)
        if self._tags_left is None:
            self._tags_left = iter(tags)
        tag = next(self._tags_left, None)
        if tag is None:
            living = list(self._persistent)
            rows = bounded(partial(self.comm.allgather, living), self.limit)
            used = set().union(*rows)
            self._tags_left = (x for x in tags if x not in used)
            tag = next(self._tags_left, None)
        if tag is None:
            raise _no_tag_left(len(tags))
        return tag

    def _agreed_tag(self, tags: range, ranks: Sequence[int]) -> int:
        """The first tag that is free on all of some ranks."""
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
        """A rank, in words."""
        return f"rank {number}"

    @property
    def group(self) -> range:
        """The numbers of the own group."""
        return range(self.size)

    @property
    def senders(self) -> Sequence[int]:
        """The numbers of those from whom this rank receives, in the order of blocks."""
        return range(self.size)

    def is_root(self, root: int) -> bool:
        """Whether this rank is the root that the argument of a call names."""
        return root == self.index

    @property
    def machine(self) -> MessageCosts:
        """What a message costs, the same on every rank."""
        raise NotImplementedError

    def asked_for(self, op: str, algorithm: str | None) -> str:
        """The algorithm asked for by a call or by the environment."""
        raise NotImplementedError

    def schedule(
        self,
        collective: str,
        algorithm: str,
        sizes: Sizes,
        unit: int = 1,
        ranks: Sequence[int] | None = None,
    ) -> Schedule:
        """The schedule of a collective on this communicator, or on some of its ranks,
        of sizes in elements of `unit` bytes; they may be those that this rank knows."""
        entry, _ = resolve(collective, algorithm)
        placement = self._placement_for(entry, ranks)
        return COLLECTIVES[collective].schedule(algorithm, sizes, placement, unit)

    def _placement_for(
        self, algorithm: Algorithm, ranks: Sequence[int] | None
    ) -> Placement:
        """What an algorithm is told of where ranks are."""
        raise NotImplementedError

    def warm_up(self, op: str) -> Callable[[], bool] | None:
        """The count of an operation's calls, which tells a call that goes ahead whether
        to make a step of a trial; None where nothing is tried any more."""
        return None

    # -- failures

    def check_usable(self) -> None:
        """Refuse a call after one that was interrupted, and on a freed communicator."""
        if self.refused:
            raise RuntimeError(self.refused)

    def refuse(self, number: int, error: BaseException | None = None) -> str:
        """Make no more calls, as a rank was interrupted in the middle of one: what it
        sent, and what others sent it, would be taken for that of a later call."""
        self.is_broken = True
        self.refused = self.refused or interrupted(self.who(number), error)
        return self.refused

    def failed_elsewhere(self) -> tuple[int, str] | None:
        """A rank that says that it failed in a call, and why; the probe for that lets
        the MPI library go on too."""
        tag, comm = self.tag_limit - _FAILED_TAG, self.comm
        status = MPI.Status()
        if not comm.Iprobe(MPI.ANY_SOURCE, tag, status):
            return None
        code, rank = bytearray(1), status.Get_source()
        comm.Recv([code, MPI.BYTE], rank, tag)
        return rank, REASONS[code[0]]

    def _tell_failure(self, error: BaseException) -> None:
        """Tell all ranks that this one comes no more: those of the node in its memory,
        others by messages."""
        here = self.channel.segment.ranks
        for channel in self._channels():
            channel.memory.leave(error)
        code = bytes([REASONS.index(reason_of(error))])
        tag = self.tag_limit - _FAILED_TAG
        for rank in set(range(self.size)).difference(here):
            message = [code, MPI.BYTE]
            self.orphans.append((self.comm.Isend(message, rank, tag), code))

    def check_lost(self) -> None:
        """Raise if a process was lost, though nobody waits for a message of it."""
        if self.survives:
            lost.look(self.comm)

    def has_lost(self, error: BaseException) -> bool:
        """Whether an error comes from a process that was lost."""
        return self.survives and lost.is_due_to(error, self.comm)

    def failed(
        self,
        error: BaseException,
        op: str = "",
        algorithm: str = "",
        orphan: Any = None,
    ) -> BaseException:
        """The error to raise after one in the middle of a call; no more calls are made,
        and the other ranks hear of it. An orphan is what must live on, as messages may
        be under way from and to it."""
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
        """What is done in here is done to its end, or no more calls are made.

        Errors that all ranks raise together leave the communicator as it was.
        """
        try:
            yield
        except (MismatchError, NoTagLeft):
            raise
        except BaseException as error:
            raise self.failed(error, op, algorithm) from None

    def finish(self, request: MPI.Request, *buffers: Any) -> None:
        """Wait for a request of the MPI library's, within the limit."""
        finish(request, self.limit, *buffers)

    # -- what is known of the machine

    def learn_hosts(self) -> Hosts:
        """Measure what messages of each host cost, and keep it for the algorithms that
        ask for it; collective."""
        with self.uninterrupted():
            hosts = bounded(partial(probe_hosts, self.comm, self.nodes), self.limit)
        self.placement = replace(self.placement, hosts=hosts)
        self.plans.clear()
        return hosts

    # -- the end

    def leave(self) -> None:
        """Take no more calls; this calls nothing of MPI."""
        self.is_freed = True
        self.refused = self.refused or FREED

    def free(self) -> None:
        """Give everything back; collective, like freeing the user's communicator."""
        self.leave()
        for channel in self._channels():
            progress.finish(channel)
        self.plans.clear()
        self.scratch.clear()
        if self.is_broken:
            # messages may still come, and would be taken for those of a communicator
            # that gets the number of a free one
            _never_freed.append((self.channel, self.orphans, self.comm, self.local))
        else:
            self.channel.close()
            self._free_comms()

    def _free_comms(self) -> None:
        if self.local is not self.comm:
            self.local.Free()
        self.comm.Free()


#: what belongs to communicators on which a call failed
_never_freed: list[Any] = []
AnyContext = TypeVar("AnyContext", bound=Context)


def _no_tag_left(n: int) -> NoTagLeft:
    return NoTagLeft(
        f"no tag is left for a persistent call: {n} requests of this communicator "
        "live; free some"
    )


def _largest(comm: MPI.Intracomm, ranks: Sequence[int], value: int, tag: int) -> int:
    """The largest value of some ranks, which call this together."""
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
    """The context of a communicator, made at its first collective call; of a name, if
    there may be several."""
    if is_forked:
        raise RuntimeError(FORKED)
    limit = limit_of(comm)
    try:
        context = attached(comm, name, lambda x: bounded(partial(make, x), limit))
    except ValueError:  # a tuning file that cannot be read, on all ranks alike
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
