"""What the collectives of isthmus need on a user's communicator."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import Any, TypeVar
from weakref import WeakSet, WeakValueDictionary, ref

import numpy as np
from mpi4py import MPI

from ...choose.recipe import Placement
from ...schedules.hosts import Hosts
from ...settings import Settings, read
from ..costs import tuning
from ..costs.hosts import probe_hosts
from ..costs.tuning import eager, inline, node_ranks
from ..memory import device
from ..memory.node_memory import ROOM, NodeMemory, Turn, receive
from ..waiting.bounded import bounded
from ..waiting.errors import ProcessLost, Stalled
from ..waiting.waiting import Limit, nothing
from . import lost
from .attribute import attached, limit_of
from .check import MismatchError
from .library_requests import finish
from .progress import driver

#: how many plans are kept for a communicator, and how many bytes of scratch memory
PLANS = 64
SCRATCH = 1 << 25
#: for calls of how many values something is kept
KEPT = 256

#: a call takes so many chunks of a room at a time, and something for their rounding
CHUNKS = 5
#: bytes: where there are devices, messages are cut into such pieces, which are copied
#: while others are on their way
CUT = 1 << 21

_log = logging.getLogger("isthmus")
#: mpi4py's own class, whatever somebody may put in its place later
Native = MPI.Intracomm


def interrupted(who: str, error: BaseException | None) -> str:
    """Why no more calls are made on a communicator."""
    by = "" if error is None else f" by {type(error).__name__}"
    return (
        f"isthmus: {who} was interrupted{by} in the middle of a collective call; free "
        "the communicator"
    )


@cache
def _tell_once(why: str) -> None:
    """Say that the memory of nodes is not used; the same reason once in a process."""
    why = why or "on another node"
    _log.warning("ranks of a node share no memory, messages take its place: %s", why)


def _negotiated() -> tuple[Settings | None, Any]:
    """What the environment asks for, and the tuning, or what is wrong with either."""
    try:
        return read(), tuning.found()
    except ValueError as error:
        return None, str(error)


FORKED = "isthmus: MPI belongs to the process that started it, not to one it forked"
_every: WeakSet[Context] = WeakSet()


def _forked() -> None:
    """In a forked process: make no calls."""
    global is_forked
    is_forked = True
    for context in _every:
        context.refused = FORKED


is_forked = False
os.register_at_fork(after_in_child=_forked)


def _look(context: ref[Context]) -> None:
    """What a rank that waits does now and then; a limit, which the communicator has,
    keeps no context alive."""
    found = context()
    if found is not None:
        found.look()


class Context:
    """Private communicators, plans and tags of one communicator.

    All traffic runs on `comm`, whose ranks are the numbers of the schedules; `local` is
    the own group, the same where there is only one. `nodes` has the node of every rank,
    as the number of the first rank there.
    """

    #: who records its calls (see `recorder`)
    recorder: Any = None
    #: why no more calls are made, if so, and where this rank waited too long
    refused = stalled = ""

    def __init__(self, comm: MPI.Intracomm, local: MPI.Intracomm, limit: Limit) -> None:
        self.comm, self.local, self.limit = comm, local, limit
        _every.add(self)
        #: whether the MPI library goes on when processes are lost
        self.survives = lost.is_noticed()
        if self.survives:
            limit.look = partial(lost.look, comm)
        self.number, self.index = comm.Get_rank(), local.Get_rank()
        # rank 0's, so that all ranks decide alike
        told = comm.bcast(_negotiated() if self.number == 0 else None)
        self.settings: Settings = told[0]
        if isinstance(told[1], str):  # what is wrong with it, on all ranks alike
            self._free_comms()
            raise ValueError(told[1])
        self.checked = self.settings.checked
        #: what is kept for blocking calls, by their values, and how many were made
        self.cached_calls: dict[Any, Any] = {}
        self.clock = 0
        self.tag_limit = int(comm.Get_attr(MPI.TAG_UB) or 32767)
        self.tags = 0
        #: persistent calls by their tags, and the tags that are left
        self.lasting: WeakValueDictionary[int, MPI.Prequest] = WeakValueDictionary()
        self._tags_left: Iterator[int] | None = None
        self.freed = False
        self._meet(node_ranks(comm, self.settings.per_node))
        #: memory of persistent calls that live
        self._own_memories: WeakSet[NodeMemory] = WeakSet()
        #: whether ranks share nodes
        self.shares_nodes = len(set(self.nodes)) < len(self.nodes)
        hosts = tuning.hosts(told[1], comm)
        self.placement = Placement(self.nodes, self.memory.room // CHUNKS, hosts)
        self.cut = eager(self.nodes) or (CUT if self.devices else 0)
        self.inline = inline(self.nodes, self.number)
        self.tuned = tuning.machine(told[1], self.nodes)
        limit.look = partial(_look, ref(self))

    def look(self) -> None:
        """Raise if a process was lost, or a rank of the node was interrupted."""
        if self.survives:
            lost.look(self.comm)
        self.memory.check_interrupts()

    def _meet(self, here: Sequence[int]) -> None:
        """Share memory with the ranks of the node, and learn of all ranks where they
        are and what they can do. Each is alone where on some node they share none."""
        memory, why = self._attempt(here)
        multiple = MPI.Query_thread() == MPI.THREAD_MULTIPLE
        devices = device.taken(), device.present()
        row = np.array([here[0], memory is not None, multiple, *devices])
        rows = np.empty((self.comm.Get_size(), len(row)), row.dtype)
        self.comm.Allgather(row, rows)
        self.threads = bool(rows[:, 2].all())
        #: what is done with buffers on devices, and whether there may be some
        self.device = device.way(self.settings.device, bool(rows[:, 3].all()))
        self.devices = bool(rows[:, 4].any())
        if memory is None or not rows[:, 1].all():
            if memory is not None:
                memory.free()
            _tell_once(why)
            rows[:, 0] = range(len(rows))
            memory = self._memory([self.number])
        self.memory = memory
        self.nodes: tuple[int, ...] = tuple(rows[:, 0].tolist())

    def _memory(self, ranks: Sequence[int], tag: int = 0) -> NodeMemory:
        how = self.refuse, driver.is_busy, ROOM, tag, self.limit
        return NodeMemory(self.comm, ranks, *how)

    def _attempt(
        self, ranks: Sequence[int], tag: int = 0
    ) -> tuple[NodeMemory | None, str]:
        """Memory that some ranks share; or on all of them None, and why."""
        try:
            return self._memory(ranks, tag), ""
        except MemoryError as error:
            return None, str(error)

    def own_memory(self, among: Iterable[int] | None, tag: int) -> NodeMemory | None:
        """Memory for a persistent call alone, shared by those of the node who have a
        part in it; made by all who have. None on all of them where some share none."""
        here = self.memory.ranks
        everyone = sorted(range(self.comm.Get_size()) if among is None else among)
        memory, why = self._attempt(sorted({*here}.intersection(everyone)), tag)
        if {*everyone}.issubset(here):
            complete = memory is not None
        else:
            complete = self._all(memory is not None, everyone, tag)
        if memory is not None and not complete:
            memory.free()
        if memory is None or not complete:
            _tell_once(why)
            return None
        self._own_memories.add(memory)
        return memory

    def _all(self, ok: bool, ranks: Sequence[int], tag: int) -> bool:
        """Whether all of some ranks say so."""
        first, *others = ranks
        if self.number != first:
            self.comm.send(ok, first, tag)
            return bool(receive(self.comm, first, tag))
        found = all([ok, *(receive(self.comm, rank, tag) for rank in others)])
        for rank in others:
            self.comm.send(found, rank, tag)
        return found

    def apart(self) -> tuple[Any, NodeMemory]:
        """As if each rank were a node of its own, for a call for which nodes have no
        memory; and the memory of this one."""
        found = copy(self)
        found.nodes = tuple(range(self.comm.Get_size()))
        found.placement = replace(self.placement, nodes=found.nodes)
        self._own_memories.add(memory := self._memory([self.number]))
        return found, memory

    def turn(
        self,
        room: int,
        among: Iterable[int] | None = None,
        memory: NodeMemory | None = None,
    ) -> Turn:
        """A way through a room of the node's memory, with those of its ranks that are
        among some, or with all."""
        memory = memory or self.memory
        here = memory.ranks
        some = here if among is None else set(among).intersection(here)
        return Turn(memory, room, sorted(some))

    def who(self, number: int) -> str:
        """A rank, in words."""
        return f"rank {number}"

    @property
    def group(self) -> Sequence[int]:
        """The numbers of the own group."""
        return range(self.comm.size)

    @property
    def senders(self) -> Sequence[int]:
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
        if number == self.number and not self.freed:
            for memory in (self.memory, *self._own_memories):
                memory.leave(error)  # who waits for this rank hears of it there
        return self.refused

    def has_lost(self, error: BaseException) -> bool:
        """Whether an error comes from a process that was lost."""
        return self.survives and lost.is_due_to(error, self.comm)

    def failed(
        self, error: BaseException, op: str = "", algorithm: str = ""
    ) -> BaseException:
        """Make no more calls after an error in the middle of one; what to raise. Where
        a process was lost, all others hear of it, and raise that."""
        if isinstance(error, MPI.Exception | ProcessLost) and self.has_lost(error):
            for comm in (self.comm, self.local):
                comm.Revoke()
            error = lost.process_lost(self.comm, self.who)
        if isinstance(error, Stalled):
            self.stalled = str(error.of(op, algorithm, self.number, self.who))
        self.refuse(self.number, error)
        return error

    @contextmanager
    def uninterrupted(self, op: str = "", algorithm: str = "") -> Iterator[None]:
        """What is done in here is done to its end, or no more calls are made; ranks
        that differ in their arguments raise that together, and can go on."""
        try:
            yield
        except MismatchError:
            raise
        except BaseException as error:
            raise self.failed(error, op, algorithm) from None

    def finish(self, request: MPI.Request, *buffers: Any) -> None:
        """Wait for a request of the MPI library's, within the limit."""
        finish(request, self.limit, *buffers)

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
        tags = range(self.tag_limit // 2 + 1, self.tag_limit)  # the last: a report
        if self._tags_left is None:
            self._tags_left = iter(tags)
        tag = next(self._tags_left, None)
        if tag is None:
            alive = [x for x, request in self.lasting.items() if request]
            every = bounded(partial(self.comm.allgather, alive), self.limit)
            used = set().union(*every)
            self._tags_left = (x for x in tags if x not in used)
            tag = next(self._tags_left, None)
        if tag is None:
            raise RuntimeError(
                f"no tag is left for a persistent call: {len(tags)} requests of this "
                "communicator live; free some"
            )
        return tag

    def count_refused(self, op: str) -> None:
        """A call is not made on this rank, as its arguments are wrong: where others
        have no part in it, and cannot know, they count it."""

    def keep(self, values: Any, kept: Any) -> None:
        """Keep something for calls of the same values; give back what was used least
        recently, if that is too much."""
        every = self.cached_calls
        every[values] = kept
        while len(every) > 1:
            plans = sum(len(x.plans) for x in every.values())
            scratch = sum(x.scratch_bytes for x in every.values())
            if len(every) <= KEPT and plans <= PLANS and scratch <= SCRATCH:
                break
            oldest = min(every, key=lambda x: every[x].used)
            every.pop(oldest).free()

    def forget(self) -> None:
        """Give back the plans that are kept."""
        for kept in self.cached_calls.values():
            kept.free()
        self.cached_calls.clear()

    def learn_hosts(self) -> Hosts:
        """Measure what messages of each host cost, and keep it for the algorithms that
        ask for it; collective."""
        with self.uninterrupted():
            hosts = bounded(partial(probe_hosts, self.comm, self.nodes), self.limit)
        self.placement = replace(self.placement, hosts=hosts)
        self.forget()
        return hosts

    def leave(self) -> None:
        """Take no more calls; this calls nothing of MPI."""
        self.freed, self.limit.look = True, nothing

    def free(self) -> None:
        """Give everything back; collective, like freeing the user's communicator."""
        self.leave()
        driver.finish(self)
        self.forget()
        if self.refused:
            # messages may still come, and would be taken for those of a communicator
            # that gets the number of a free one
            driver.failed.append((self.memory, self.comm, self.local))
        else:
            self.memory.free()
            self._free_comms()

    def _free_comms(self) -> None:
        if self.local is not self.comm:
            self.local.Free()
        self.comm.Free()


Made = TypeVar("Made", bound=Context)


def context_of(
    comm: MPI.Comm, make: Callable[[Any], Made], name: str = "context"
) -> Made:
    """The context of a communicator, made at its first collective call; of a name, if
    there may be several."""
    if is_forked:
        raise RuntimeError(FORKED)
    limit = limit_of(comm)
    try:
        found = attached(comm, name, lambda x: bounded(partial(make, x), limit))
    except ValueError:  # a tuning file that cannot be read, on all ranks alike
        raise
    except BaseException as error:
        why = interrupted("this rank", error)
        if isinstance(error, Stalled):
            error.of("first call", "", comm.Get_rank(), "rank {}".format)
        attached(comm, name, lambda _: _Refused(why))
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
