"""What a rank must know of its own group to take part in an irregular call.

A rank knows what the other group sends, but not what its own group does; the other
group does. So each rank is told by one of the other group, in one message, where the
paper's Exscan and Allreduce take a number of rounds that grows with the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ...choose.recipe import Group, Summed, listed
from ...schedules.registry import resolve
from ..context.context_inter import InterContext
from ..waiting.waiting import Messages
from .negotiation import Asking, Negotiation, ask_each


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
