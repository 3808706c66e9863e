"""A vector that lies in blocks on one group goes to the other, in other blocks.

What Allgatherv, Allreduce and Reduce_scatter between groups have in common: block i of
`held` lies on one rank, block j of `wanted` must get to another, and what the two have
in common is a message. Sends and receives keep the order of Kang, Träff et al. 2019, in
which no sender waits for a receiver that waits for another: all of it lasts as long as
the largest block of either kind.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...schedules.ir import Index, Recv, Send, Span
from ...schedules.layout import Blocks, overlap, pick

#: the rank that has the block of a number, or gets it
Number = Callable[[Index], Index]


def sends(i: Index, held: Blocks, wanted: Blocks, to: Number, at: Span) -> list[Send]:
    """Cut block i, which lies at `at`, where wanted blocks begin; lowest first.

    In Algorithm 2 of the paper line 13, of a_i, or line 23, of b_i.
    """
    begin, end = held.offset(i), held.offset(i + 1)
    first, last = wanted.find(begin), wanted.find(end - 1)
    found = []
    for t in range(int(np.max(last - first)) + 1):
        start, size = overlap(held, i, wanted, first + t)
        data = (Span(at.buf, at.start + start - begin, size),)
        found.append(Send(to(first + t), data, first + t <= last))
    return found


def receives(
    i: Index, held: Blocks, wanted: Blocks, frm: Number, at: Span
) -> list[Recv]:
    """The senders of wanted block i, which goes to `at`: the one that goes on to the
    next block first, the one that comes from the block before last, those in between
    in their order.

    The paper's order below Algorithm 2: the multi-target sender of the higher rank, the
    senders between, the multi-target sender of the lower rank.
    """
    low = wanted.offset(i)
    high = low + wanted.size(i)
    first, last = held.find(low), held.find(high - 1)
    n = last - first + 1
    goes_on = pick(held.offset(last + 1) > high, 1, 0)
    came = pick(held.offset(first) < low, 1, 0)
    found = []
    for t in range(int(np.max(n))):
        middle = t - goes_on
        wrapped = pick(middle == n - goes_on - 1, 0, middle + 1)
        j = first + pick(middle < 0, n - 1, pick(came == 1, wrapped, middle))
        start, size = overlap(held, j, wanted, i)
        data = (Span(at.buf, at.start + start - low, size),)
        found.append(Recv(frm(j), data, (t < n) & (high > low)))
    return found
