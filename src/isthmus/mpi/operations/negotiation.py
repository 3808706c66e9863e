"""What a rank must ask others before an irregular call can begin.

Between groups it knows what the other group sends, but not what its own group does; the
other group does. So each rank is told by one of the other group, in one message, where
the paper's Exscan and Allreduce take a number of rounds that grows with the group.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from mpi4py import MPI

from ...choose.recipe import Group, Summed, listed
from ...schedules.registry import resolve
from ..context.context import Context
from ..context.context_inter import InterContext
from ..context.progress import driver
from ..memory.node_memory import SAID, Saying
from ..waiting.waiting import Awaited, Limit, Messages, wait

Value = TypeVar("Value")
#: what to wait for, then what was heard, which can be compared
Asking = Generator[Awaited, None, Any]


@dataclass(frozen=True, slots=True)
class Negotiation:
    """Asks others, in messages of a tag, and reads what was heard: what the rounds of
    the call depend on. It need not be read where the same was heard before."""

    by_messages: Callable[[int], Asking]
    read: Callable[[Any], tuple[Any, ...]]
    #: what this rank says to some, by numbers, if each of them says as much and that is
    #: all: they can also say it in the memory of their node
    own: bytes = b""
    ranks: Sequence[int] = ()

    def meeting(self, c: Context, room: int) -> Saying | None:
        """Where they say it in a room of that memory, if they are all on this node."""
        here = {*self.ranks}.issubset(c.memory.ranks)
        if not 0 < len(self.own) <= SAID or not here:
            return None
        return Saying(c.turn(room, self.ranks), self.own)

    def ask(self, meeting: Saying | None, number: int, tag: int = 0) -> Asking:
        """Ask for a call, by its number, at a meeting if there is one."""
        if len(self.ranks) == 1:
            return self.own
        if meeting is None:
            return (yield from self.by_messages(tag))
        meeting.turn.number = number
        yield meeting.turn
        meeting.arrive()
        yield meeting
        return meeting.heard()


def ask_each(
    c: Context,
    own: Sequence[int],
    read: Callable[[np.ndarray], tuple[Any, ...]],
    everyone: bool = False,
) -> Negotiation:
    """Each rank of the own group, or everyone, says some integers to the others; what
    is read has a row of each."""
    comm: MPI.Intracomm = c.comm if everyone else c.local
    row = np.array(own, np.int64)

    def by_messages(tag: int) -> Asking:
        rows = np.empty((comm.size, row.size), np.int64)
        yield Messages([comm.Iallgather(row, rows)])
        return rows.tobytes()

    def rows_of(heard: bytes) -> tuple[Any, ...]:
        return read(np.frombuffer(heard, np.int64).reshape(-1, row.size))

    ranks = range(comm.size) if everyone else c.group
    return Negotiation(by_messages, rows_of, row.tobytes(), ranks)


def counts_of(rows: np.ndarray) -> tuple[tuple[int, ...]]:
    """What each rank says, where that is one integer."""
    return (tuple(rows[:, 0].tolist()),)


def complete(asking: Generator[Awaited, None, Value], limit: Limit) -> Value:
    """Ask, and wait for the answer."""
    while True:
        try:
            wait(next(asking), limit)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        except BaseException:
            driver.failed.append(asking)
            raise


# -- what a rank must know of its own group, in calls between groups


def alone(context: InterContext, own: int) -> Group:
    """The own group as it looks to a rank for which the others do not matter, or that
    has none."""
    if context.here == 1:
        return listed([own])
    return Summed(context.here, context.index, 0, own, own, own, own)


def _rows(expected: Sequence[int]) -> np.ndarray:
    """For each rank of the other group: its place, the total, the largest, the bits."""
    counts = np.array(expected, np.int64)
    ends = np.cumsum(counts)
    rows = np.empty((len(counts), 4), np.int64)
    rows[:, 0] = ends - counts
    rows[:, 1:] = ends[-1], counts.max(), np.bitwise_or.reduce(counts)
    return rows


def own_group(
    c: InterContext, name: str, own: int, expected: Sequence[int]
) -> Negotiation:
    """What a call must know of the own group."""
    everything = c.shares_nodes
    if name != "auto":
        everything = resolve("inter_allgatherv", name)[0].own_counts
    if everything:
        return ask_each(c, [own], lambda rows: (listed(rows),))
    return Negotiation(partial(_told, c, expected), partial(_group, c, own))


def _told(c: InterContext, expected: Sequence[int], tag: int) -> Asking:
    """Tell every so-manieth rank of the other group, and be told by one."""
    rows, answer = _rows(expected), np.empty(4, np.int64)
    mine = range(c.index, c.there, c.here)
    peers = [c.there_base + i for i in (c.index % c.there, *mine)]
    requests = [c.comm.Irecv(answer, peers[0], tag)]
    requests += [c.comm.Isend(rows[i], c.there_base + i, tag) for i in mine]
    yield Messages(requests, peers)
    return tuple(answer.tolist())


def _group(c: InterContext, own: int, heard: Sequence[int]) -> tuple[Group]:
    start, whole, largest, bits = heard
    return (Summed(c.here, c.index, start, own, whole, largest, bits),)
