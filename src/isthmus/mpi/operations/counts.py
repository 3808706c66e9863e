"""What a rank must know of its own group to take part in an irregular call.

A rank knows what the other group sends, but not what its own group does; the other
group does. So each rank is told by one of the other group, in one message, where the
paper's Exscan and Allreduce take a number of rounds that grows with the group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...choose.recipe import Group, Summed, listed
from ...schedules.registry import resolve
from ..context.context_inter import InterContext
from ..waiting.waiting import Messages
from .call import Negotiation


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


def own_group(
    c: InterContext, name: str, own: int, expected: Sequence[int], tag: int
) -> Negotiation:
    """Ask what a call must know of the own group."""
    everything = c.shares_nodes
    if name != "auto":
        everything = resolve("inter_allgatherv", name)[0].own_counts
    if everything:
        return (yield from _all_counts(c, own))
    return (yield from _told(c, own, _rows(expected), tag))


def _all_counts(c: InterContext, own: int) -> Negotiation:
    counts = np.empty(c.here, np.int64)
    yield Messages([c.local.Iallgather(np.array([own], np.int64), counts)])
    return (listed(counts),)


def _told(c: InterContext, own: int, rows: np.ndarray, tag: int) -> Negotiation:
    """Tell every so-manieth rank of the other group, and be told by one."""
    answer = np.empty(4, np.int64)
    mine = range(c.index, c.there, c.here)
    peers = [c.there_base + i for i in (c.index % c.there, *mine)]
    requests = [c.comm.Irecv(answer, peers[0], tag)]
    requests += [c.comm.Isend(rows[i], c.there_base + i, tag) for i in mine]
    yield Messages(requests, peers)
    start, whole, largest, bits = answer.tolist()
    return (Summed(c.here, c.index, start, own, whole, largest, bits),)
