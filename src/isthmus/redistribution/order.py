"""In which order messages go, so that ports do not idle.

A rank sends one message at a time, and receives one at a time: an open shop, where all
cannot end before the port with most to do. A list schedule gives the message whose
ports have most left the first turn. Where long messages leave gaps, they are cut.
Gonzalez, Sahni 1976 show that the bound can be met if messages may be cut at will.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

#: up to so many messages or pieces in all, every rank looks at all of them
MOST = 4096
#: near enough to the bound
NEAR = 1.05
#: a piece is no less than the largest load of a port by one of these
PARTS = (0, 4, 8, 16, 32)
#: bytes: a message of so many goes whole
LEAST = 1 << 16


@dataclass(frozen=True, slots=True)
class Turn:
    """When a message, or a piece of it, is sent, and which of its elements."""

    turn: int
    source: int
    target: int
    low: int
    high: int


def loads(messages: Sequence[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """What each rank sends, and what each receives."""
    source, target, size = np.array(messages, np.int64).reshape(-1, 3).T
    n = int(max(source.max(initial=-1), target.max(initial=-1))) + 1
    return np.bincount(source, size, n), np.bincount(target, size, n)


def bound(messages: Sequence[tuple[int, int, int]]) -> int:
    """The elements that pass the busiest port."""
    return int(max(x.max(initial=0) for x in loads(messages)))


def shifted(source: int, target: int, n: int) -> int:
    """A turn that needs no others: each rank begins with another."""
    return (target - source) % n


def list_schedule(messages: Sequence[tuple[int, int, int]]) -> tuple[int, list[int]]:
    """When all is done, and the messages in the order in which they begin, if each
    takes both its ports for its size: always one whose busier port has most left."""
    source, target, size = np.array(messages, np.int64).reshape(-1, 3).T
    out, into = loads(messages)
    free_out, free_in = np.zeros(len(out), np.int64), np.zeros(len(into), np.int64)
    waiting = np.arange(len(size))
    now, ends, order = 0, list[int](), list[int]()
    while len(waiting):
        ready = (free_out[source[waiting]] <= now) & (free_in[target[waiting]] <= now)
        some = waiting[ready]
        a, b = out[source[some]], into[target[some]]
        for k in some[np.lexsort((-np.minimum(a, b), -np.maximum(a, b)))].tolist():
            s, t, n = int(source[k]), int(target[k]), int(size[k])
            # that takes both ports, and so changes nothing for those of other ports
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
    messages: Sequence[tuple[int, int, int]], most: int
) -> Iterator[tuple[int, int, int]]:
    """The messages in near-equal pieces of so many elements at most."""
    for s, t, n in messages:
        parts = max(-(-n // most), 1) if most else 1
        for k in range(parts):
            yield s, t, n // parts + (k < n % parts)


def turns(messages: Sequence[tuple[int, int, int]], least: int = 1) -> list[Turn]:
    """The order of all messages (source, target, elements) and what is cut; those
    of up to `least` elements go whole. Every rank that knows them finds the same."""
    limit = bound(messages)
    best: tuple[int, list[tuple[int, int, int]], list[int]] | None = None
    for parts in PARTS:
        most = max(-(-limit // parts), least) if parts else 0
        pieces = list(_cut(messages, most))
        if best is not None and not len(best[1]) < len(pieces) <= MOST:
            continue
        ends, order = list_schedule(pieces)
        if best is None or ends < 0.98 * best[0]:
            best = ends, pieces, order
        if best[0] <= NEAR * limit:
            break
    assert best is not None
    _, pieces, order = best
    done: dict[tuple[int, int], int] = {}
    found = []
    for turn, k in enumerate(order):
        s, t, n = pieces[k]
        low = done.get((s, t), 0)
        done[s, t] = low + n
        found.append(Turn(turn, s, t, low, low + n))
    return found
