"""A plan whose data lie on a device: copies from and to it run beside the messages.

The steps work on host memory that stands for the arrays of a device. To copy all of it
before the first step and after the last takes as long again as the messages. So what is
read first is copied first, a message leaves as soon as its data are there, and what was
written for the last time is copied back at once.

An MPI library copies all it can inside a posted receive or a test. So of long messages
few receives are posted at a time: a rank would sit in MPI for milliseconds while its
own data are ready, and others wait for these.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TypeAlias, TypeVar

from ...plan.plan import Plan
from ...plan.steps import (
    Await,
    AwaitSized,
    Fetched,
    Post,
    PostTyped,
    Send,
    StartNative,
    Step,
    Store,
    Stored,
)
from ...plan.touches import reads, writes

#: bytes that are copied at once: long enough for full speed, short beside long messages
PIECE_BYTES = 1 << 21
#: a long array goes in about so many copies; from the device, where what is needed lies
#: side by side, in pieces of at least so many bytes
COPIES, LEAST_FETCHED_BYTES = 32, 1 << 20
#: receives from a rank that are posted at once
POSTED = 2

Message = TypeVar("Message", Post, Send)
#: part of a buffer: its number, the first byte, and one after the last
Range: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Transfers:
    """What is copied from devices, in this order, and how much at once to them."""

    fetches: tuple[Range, ...]
    stored_at_once: int


class _Known:
    """Which bytes of a buffer are known to be somewhere, and a number for each."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ranges: list[tuple[int, int]] = []

    def missing(self, start: int, stop: int) -> list[tuple[int, int]]:
        """What is not known of a range."""
        result = []
        for low, high, _ in self.inside(start, stop):
            if low > start:
                result.append((start, low))
            start = max(start, high)
        return [*result, (start, stop)] if start < stop else result

    def inside(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """What is known of a range, in order."""
        i = max(bisect_right(self._starts, start) - 1, 0)
        while i < len(self._starts) and self._starts[i] < stop:
            if self._ranges[i][0] > start:
                yield self._starts[i], *self._ranges[i]
            i += 1

    def add(self, start: int, stop: int, number: int) -> None:
        """Know a range that was missing."""
        i = bisect_right(self._starts, start)
        self._starts.insert(i, start)
        self._ranges.insert(i, (stop, number))


def overlapped(
    plan: Plan, sizes: Mapping[int, int], read: Collection[int], element: int = 1
) -> Plan:
    """A plan with copies between its steps, for buffers of so many bytes that stand for
    arrays on devices; only some of them have anything to be read."""
    steps = pipelined(plan.steps)
    needs = _Needs(read)
    awaited = [needs.of(step, sizes, element) for step in steps]
    fetches, last = needs.joined()
    stores = _stores(steps, sizes, element)
    result: list[Step] = []
    come = -1
    for step, need, ranges in zip(steps, awaited, stores, strict=True):
        if need >= 0 and last[need] > come:
            come = last[need]
            result.append(Fetched(come))
        result.append(step)
        if ranges:
            result.append(Store(tuple(ranges)))
    if any(stores):
        result.append(Stored())
    stored = max([PIECE_BYTES, *(n // COPIES for n in sizes.values())])
    return replace(plan, steps=tuple(result), transfers=Transfers(fetches, stored))


def around(
    plan: Plan,
    sizes: Mapping[int, int],
    read: Collection[int],
    written: Collection[int],
) -> Plan:
    """A plan that copies all before its first step and after its last: of which nobody
    knows when it reads and writes what, as the MPI library's own call."""
    steps: tuple[Step, ...] = plan.steps
    slots = plan.slots
    if plan.native is not None:
        steps, slots = (StartNative(0), Await((0,), 1)), 1
    fetches = tuple((k, 0, sizes[k]) for k in read if sizes[k])
    stores = tuple((k, 0, sizes[k]) for k in written if sizes[k])
    # the library's own calls match in the order in which they are started, and ranks
    # whose arrays are on the host start them at once
    is_awaited = plan.native is not None
    first: list[Step] = [Fetched(len(fetches) - 1, is_awaited)] if fetches else []
    last: list[Step] = [Store(stores), Stored()] if stores else []
    transfers = Transfers(fetches, 0)
    return replace(
        plan, steps=(*first, *steps, *last), slots=slots, transfers=transfers
    )


class _Needs:
    """What the steps read before they write it, in that order."""

    def __init__(self, read: Collection[int]) -> None:
        self._read = read
        self._known: dict[int, _Known] = {}
        self._ranges: list[Range] = []

    def of(self, step: Step, sizes: Mapping[int, int], element: int) -> int:
        """The number of the last range that a step needs; -1 where it needs none."""
        last = -1
        for buffer, start, stop in reads(step, element):
            if buffer not in sizes or buffer not in self._read:
                continue
            known = self._known.setdefault(buffer, _Known())
            for low, high in known.missing(start, stop):
                for at in range(low, high, PIECE_BYTES):
                    end = min(at + PIECE_BYTES, high)
                    known.add(at, end, len(self._ranges))
                    self._ranges.append((buffer, at, end))
            last = max([last, *(number for *_, number in known.inside(start, stop))])
        for buffer, start, stop in writes(step, element):
            if buffer in sizes:
                known = self._known.setdefault(buffer, _Known())
                for low, high in known.missing(start, stop):
                    known.add(low, high, -1)
        return last

    def joined(self) -> tuple[tuple[Range, ...], list[int]]:
        """The copies, each when the first of it is needed, and for each range the last
        of the copies that must be complete. What lies side by side goes in one copy."""
        total = sum(stop - start for _, start, stop in self._ranges)
        most = max(total // COPIES, LEAST_FETCHED_BYTES)
        starts = {(k, start): i for i, (k, start, _) in enumerate(self._ranges)}
        copies: list[Range] = []
        copy_of: dict[int, int] = {}
        last: list[int] = []
        for i, (k, start, stop) in enumerate(self._ranges):
            if i not in copy_of:
                copy_of[i] = len(copies)
                while (j := starts.get((k, stop))) is not None and j not in copy_of:
                    if self._ranges[j][2] - start > most:
                        break
                    copy_of[j], stop = len(copies), self._ranges[j][2]
                copies.append((k, start, stop))
            last.append(max([copy_of[i], *last[-1:]]))
        return tuple(copies), last


def _stores(
    steps: Sequence[Step], sizes: Mapping[int, int], element: int
) -> list[list[Range]]:
    """After each step, what was written for the last time: of a receive, after the step
    that awaits it."""
    awaited_in: dict[int, int] = {}
    for i, step in enumerate(steps):
        if isinstance(step, Await):
            awaited_in |= dict.fromkeys(step.slots, i)
        elif isinstance(step, AwaitSized):
            awaited_in[step.slot] = i
    known = {k: _Known() for k in sizes}
    result: list[list[Range]] = [[] for _ in steps]
    written = []
    for i, step in enumerate(steps):
        at = awaited_in[step.slot] if isinstance(step, Post | PostTyped) else i
        written += [(at, run) for run in writes(step, element) if run.buffer in sizes]
    for at, (buffer, start, stop) in sorted(written, key=lambda x: -x[0]):
        for low, high in known[buffer].missing(start, stop):
            known[buffer].add(low, high, 0)
            result[at].append((buffer, low, high))
    return result


# -- sends and receives of a round, in turns


def pipelined(steps: Sequence[Step]) -> list[Step]:
    """The steps, with the messages of each round in turns: few receives are posted, and
    each is awaited by itself."""
    result: list[Step] = []
    segment: list[Step] = []
    for step in steps:
        if isinstance(step, Await) and len(step.slots) > 1:
            result += _in_turns(segment, step)
            segment = []
        else:
            segment.append(step)
    return result + segment


def _in_turns(segment: Sequence[Step], end: Await) -> list[Step]:
    """The steps before the end of a round, with its messages in turns."""
    mine = set(end.slots)
    sends = [x for x in segment if isinstance(x, Send) and x.slot in mine]
    posts = [x for x in segment if isinstance(x, Post) and x.slot in mine]
    # what is copied into a message must be copied before, so those keep their places
    begin = next((i for i, x in enumerate(segment) if x in sends or x in posts), None)
    between = (
        []
        if begin is None
        else [x for x in segment[begin:] if x not in sends and x not in posts]
    )
    if begin is None or between or not (sends and posts):
        return [*segment, end]
    rest = [k for k in end.slots if k not in {x.slot for x in posts}]
    result = list(segment[:begin])
    sources: dict[int, list[Post]] = {}
    for post in posts:
        sources.setdefault(post.source, []).append(post)
    for parts in sources.values():
        result += parts[:POSTED]
    following = {
        parts[i].slot: parts[i + POSTED]
        for parts in sources.values()
        for i in range(len(parts) - POSTED)
    }
    receives = _turns(list(sources.values()))
    targets: dict[int, list[Send]] = {}
    for send in sends:
        targets.setdefault(send.target, []).append(send)
    leaving = _turns(list(targets.values()))

    # all sends leave before the first receive is awaited: none of them may wait for
    # what another rank sends only when it has heard from this one
    result += leaving
    for post in receives:
        result.append(Await((post.slot,), end.round_number))
        if post.slot in following:
            result.append(following[post.slot])
    if rest:
        result.append(Await(tuple(rest), end.round_number))
    return result


def _turns(parts: Sequence[Sequence[Message]]) -> list[Message]:
    """The first of each, then the second of each, and so on."""
    return [x for row in zip_longest(*parts) for x in row if x is not None]
