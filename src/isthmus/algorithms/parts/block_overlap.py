"""A vector that lies in blocks on one group goes to another group, in other blocks.

Allgatherv, Allreduce and Reduce_scatter between groups share this exchange: block i of
`held` lies on one rank, block j of `wanted` must get to another rank, and the overlap
of two such blocks is a message. Sends and receives keep the order of Kang, Träff et al.
2019, in which no sender waits for a receiver that waits for another sender: the
exchange lasts as long as the largest block of either kind.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...schedules.ir import Index, Recv, Send, Span
from ...schedules.layout import Blocks, overlap, pick

#: the rank that holds, or receives, the block of a number
Number = Callable[[Index], Index]


def sends(
    i: Index, held: Blocks, wanted: Blocks, receiver_of: Number, source: Span
) -> list[Send]:
    """Messages of block i, whose data are at `source`, cut where wanted blocks begin.

    In Algorithm 2 of the paper line 13, of a_i, or line 23, of b_i.
    """
    begin, end = held.offset(i), held.offset(i + 1)
    first, last = wanted.find(begin), wanted.find(end - 1)
    messages = []
    for k in range(int(np.max(last - first)) + 1):
        start, size = overlap(held, i, wanted, first + k)
        data = (Span(source.buf, source.start + start - begin, size),)
        messages.append(Send(receiver_of(first + k), data, first + k <= last))
    return messages


def receives(
    i: Index, held: Blocks, wanted: Blocks, sender_of: Number, destination: Span
) -> list[Recv]:
    """Messages of wanted block i, to `destination`, in the order of their receives.

    First the sender whose block goes on into the next wanted block, then the senders
    between in their order, last the sender whose block began in the wanted block
    before. The paper's order below Algorithm 2: the multi-target sender of the higher
    rank, the senders between, the multi-target sender of the lower rank.
    """
    low = wanted.offset(i)
    high = low + wanted.size(i)
    first, last = held.find(low), held.find(high - 1)
    senders = last - first + 1
    goes_on = pick(held.offset(last + 1) > high, 1, 0)
    from_before = pick(held.offset(first) < low, 1, 0)
    messages = []
    for k in range(int(np.max(senders))):
        middle = k - goes_on
        wrapped = pick(middle == senders - goes_on - 1, 0, middle + 1)
        sender = first + pick(
            middle < 0, senders - 1, pick(from_before == 1, wrapped, middle)
        )
        start, size = overlap(held, sender, wanted, i)
        data = (Span(destination.buf, destination.start + start - low, size),)
        messages.append(Recv(sender_of(sender), data, (k < senders) & (high > low)))
    return messages
