"""An order of messages without idle ports.

A rank sends a message at a time, and receives a message at a time: an open shop, which
cannot end before the busiest port. In an unordered exchange ports idle, because several
ranks send to a busy receiver. A list schedule gives the next turn to the message whose
ports have most elements left. Long messages that leave gaps are cut. Gonzalez and Sahni
1976 show that cuts at will reach the bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

#: the messages or pieces of all ranks up to which each rank orders all of them
MOST_ORDERED_PIECES = 4096
#: an order that takes at most so many times the bound is not improved
NEAR_BOUND_RATIO = 1.05
#: an order with more pieces must take less than so many times the best order's time
WORTHWHILE_RATIO = 0.98
#: the numbers of pieces of the largest load of a port, tried in turn; 0 is uncut
PIECES_OF_LARGEST_LOAD = (0, 4, 8, 16, 32)
#: messages of at most so many bytes are not cut
WHOLE_MESSAGE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Turn:
    """The place of a message, or of a piece, in the order of all messages."""

    turn: int
    source: int
    target: int
    #: the first element of the piece, and the end
    low: int
    high: int


def loads(messages: Sequence[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """The elements that each rank sends, and those that each rank receives."""
    source, target, size = np.array(messages, np.int64).reshape(-1, 3).T
    n = int(max(source.max(initial=-1), target.max(initial=-1))) + 1
    return np.bincount(source, size, n), np.bincount(target, size, n)


def bound(messages: Sequence[tuple[int, int, int]]) -> int:
    """The elements that pass the busiest port."""
    return int(max(load.max(initial=0) for load in loads(messages)))


def shifted(source: int, target: int, n: int) -> int:
    """The turn of a message by a shift, in which all ranks begin with different peers.

    For redistributions with too many messages, since a rank needs no further messages.
    """
    return (target - source) % n


def list_schedule(messages: Sequence[tuple[int, int, int]]) -> tuple[int, list[int]]:
    """The time at which all messages have gone, and the messages in order of beginning.

    A message takes two ports for as long as it has elements. The next message is always
    the ready message whose busier port has most elements left.
    """
    source, target, size = np.array(messages, np.int64).reshape(-1, 3).T
    out, into = loads(messages)
    free_out, free_in = np.zeros(len(out), np.int64), np.zeros(len(into), np.int64)
    waiting = np.arange(len(size))
    now, ends, order = 0, list[int](), list[int]()
    while len(waiting):
        ready = (free_out[source[waiting]] <= now) & (free_in[target[waiting]] <= now)
        candidates = waiting[ready]
        left_out, left_in = out[source[candidates]], into[target[candidates]]
        for k in candidates[
            np.lexsort((-np.minimum(left_out, left_in), -np.maximum(left_out, left_in)))
        ].tolist():
            s, t, n = int(source[k]), int(target[k]), int(size[k])
            # messages of further ports stay ready: a message takes two ports only
            if free_out[s] <= now and free_in[t] <= now:
                free_out[s] = free_in[t] = now + n
                out[s] -= n
                into[t] -= n
                heappush(ends, now + n)
                order.append(k)
                size[k] = 0
        waiting = waiting[size[waiting] > 0]
        while ends and ends[0] <= now:
            heappop(ends)
        now = ends[0] if ends else now
    return int(max(free_out.max(initial=0), free_in.max(initial=0))), order


def _cut(
    messages: Sequence[tuple[int, int, int]], largest: int
) -> Iterator[tuple[int, int, int]]:
    """The messages in near-equal pieces of at most `largest` elements; 0 is uncut."""
    for s, t, n in messages:
        parts = max(-(-n // largest), 1) if largest else 1
        for k in range(parts):
            yield s, t, n // parts + (k < n % parts)


def turns(messages: Sequence[tuple[int, int, int]], least: int = 1) -> list[Turn]:
    """The order of all messages (source, target, elements), cut if cuts close gaps.

    Messages of up to `least` elements go whole, since a piece costs a start-up. All
    ranks compute an equal order from equal messages.
    """
    least_time = bound(messages)
    best: tuple[int, list[tuple[int, int, int]], list[int]] | None = None
    for parts in PIECES_OF_LARGEST_LOAD:
        largest = max(-(-least_time // parts), least) if parts else 0
        pieces = list(_cut(messages, largest))
        if best is not None and not len(best[1]) < len(pieces) <= MOST_ORDERED_PIECES:
            continue
        ends, order = list_schedule(pieces)
        if best is None or ends < WORTHWHILE_RATIO * best[0]:
            best = ends, pieces, order
        if best[0] <= NEAR_BOUND_RATIO * least_time:
            break
    assert best is not None
    _, pieces, order = best
    sent: dict[tuple[int, int], int] = {}
    result = []
    for turn, k in enumerate(order):
        s, t, n = pieces[k]
        low = sent.get((s, t), 0)
        sent[s, t] = low + n
        result.append(Turn(turn, s, t, low, low + n))
    return result
