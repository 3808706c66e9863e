"""The order of messages in which ports do not idle.

A rank sends one message at a time, and receives one at a time: an open shop, where all
cannot end before the busiest port. A list schedule gives the next turn to the message
whose ports have most left. Where long messages leave gaps, they are cut. Gonzalez,
Sahni 1976 show that the bound can be met if messages may be cut at will.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

#: messages or pieces of all ranks up to which every rank orders all of them
MOST_ORDERED_PIECES = 4096
#: the time of an order, in parts of the bound, from which on none better is sought
NEAR_BOUND_RATIO = 1.05
#: into how many pieces the largest load of a port is cut, tried in turn; 0: not cut
PIECES_OF_LARGEST_LOAD = (0, 4, 8, 16, 32)
#: bytes of a message up to which none is cut
WHOLE_MESSAGE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Turn:
    """The place of a message, or of a piece, in the order of all messages."""

    turn: int
    source: int
    target: int
    #: the first element of the message that goes, and the one after the last
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
    """A turn that a rank computes without the messages of all: each rank begins with
    another partner."""
    return (target - source) % n


def list_schedule(messages: Sequence[tuple[int, int, int]]) -> tuple[int, list[int]]:
    """The time at which all messages have gone, and the messages in the order in which
    they begin.

    Each message takes both its ports for its size. The next one is always a message
    whose busier port has most left.
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
            # a message takes both its ports, so messages of other ports stay ready
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
    """The messages in near-equal pieces of at most `largest` elements; whole where that
    is 0."""
    for s, t, n in messages:
        parts = max(-(-n // largest), 1) if largest else 1
        for k in range(parts):
            yield s, t, n // parts + (k < n % parts)


def turns(messages: Sequence[tuple[int, int, int]], least: int = 1) -> list[Turn]:
    """The order of all messages (source, target, elements), cut where that closes gaps;
    messages of up to `least` elements go whole. The same messages give the same order
    on every rank."""
    least_time = bound(messages)
    best: tuple[int, list[tuple[int, int, int]], list[int]] | None = None
    for parts in PIECES_OF_LARGEST_LOAD:
        largest = max(-(-least_time // parts), least) if parts else 0
        pieces = list(_cut(messages, largest))
        if best is not None and not len(best[1]) < len(pieces) <= MOST_ORDERED_PIECES:
            continue
        ends, order = list_schedule(pieces)
        if best is None or ends < 0.98 * best[0]:
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
