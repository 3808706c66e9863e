"""What a rank must know of its own group to take part in an irregular call.

A rank knows what the other group sends, but not what its own group does; the other
group does. So each rank is told by one of the other group, in one message, where the
paper's Exscan and Allreduce take a number of rounds that grows with the group.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

import numpy as np
from mpi4py import MPI

from ..recipe import Group, Summed, listed
from ..registry import resolve
from .context_inter import InterContext

#: requests to wait for, then the own group
Asking = Generator[Sequence[MPI.Request], None, Group]


def alone(context: InterContext, own: int) -> Group:
    """The own group as it looks to a rank for which the others do not matter."""
    return Summed(context.here, context.index, 0, own, own, own, own)


def _rows(expected: Sequence[int]) -> np.ndarray:
    """For each rank of the other group: its place, the total, the largest, the bits."""
    counts = np.array(expected, np.int64)
    ends = np.cumsum(counts)
    rows = np.empty((len(counts), 4), np.int64)
    rows[:, 0] = ends - counts
    rows[:, 1:] = ends[-1], counts.max(), np.bitwise_or.reduce(counts)
    return rows


class Question:
    """What a call must ask before it can begin; the same for all such calls."""

    def __init__(
        self, context: InterContext, name: str, own: int, expected: Sequence[int]
    ) -> None:
        self.context, self.own = context, own
        self.everything = (
            name != "auto" and resolve("inter_allgatherv", name)[0].own_counts
        )
        self.rows = _rows(expected)

    def ask(self, tag: int) -> Asking:
        """Ask with messages of that tag; the answer is the own group."""
        return self._all_counts() if self.everything else self._told(tag)

    def now(self) -> Group:
        """Ask, and wait for the answer."""
        return complete(self.ask(tag=0))

    def _all_counts(self) -> Asking:
        own = np.empty(self.context.here, np.int64)
        yield [self.context.local.Iallgather(np.array([self.own], np.int64), own)]
        return listed(own)

    def _told(self, tag: int) -> Asking:
        """Tell every so-manieth rank of the other group, and be told by one."""
        c, answer = self.context, np.empty(4, np.int64)
        requests = [c.comm.Irecv(answer, c.there_base + c.index % c.there, tag)]
        for i in range(c.index, c.there, c.here):
            requests.append(c.comm.Isend(self.rows[i], c.there_base + i, tag))
        yield requests
        start, whole, largest, bits = answer.tolist()
        return Summed(c.here, c.index, start, self.own, whole, largest, bits)


Answer = TypeVar("Answer")


def complete(asking: Generator[Sequence[MPI.Request], None, Answer]) -> Answer:
    """Ask, and wait for the answer."""
    while True:
        try:
            MPI.Request.Waitall(next(asking))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
