"""Plans for data on a device: copies from and to the device run beside the messages.

Steps work on host memory that stands for the arrays. Copies of all data before the
first step and after the last would take as long again as the messages. So the bytes
read first are copied first, a message leaves as soon as the data of the message have
been copied, and bytes written for the last time are copied back at once.

Few receives are posted at a time, because an MPI library copies as many bytes as
possible inside a posted receive or a test. With many long receives, a rank would sit in
MPI for milliseconds, with data ready for which other ranks wait.
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
    StartNative,
    StartReceive,
    StartSend,
    StartTypedReceive,
    Step,
    Store,
    Stored,
)
from ...plan.touches import reads, writes

#: bytes of a copy: long enough for full speed, short beside long messages
PIECE_BYTES = 1 << 21
#: the number of copies of a long array, roughly
COPIES_OF_LONG_ARRAY = 32
#: ranges that lie side by side are joined to copies from a device of at least so many
LEAST_FETCHED_BYTES = 1 << 20
#: receives from a rank posted at a time
MOST_POSTED_RECEIVES = 2

Message = TypeVar("Message", StartReceive, StartSend)
#: part of a buffer: the number of the buffer, the first byte, and the end
Range: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Transfers:
    """The copies of a plan in the order of need, and the bytes of a copy to devices."""

    fetches: tuple[Range, ...]
    stored_at_once: int


class _Coverage:
    """Ranges of a buffer that earlier steps have covered, each with a number."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ranges: list[tuple[int, int]] = []

    def missing(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The parts of a range not yet covered."""
        result = []
        for low, high, _ in self.inside(start, stop):
            if low > start:
                result.append((start, low))
            start = max(start, high)
        return [*result, (start, stop)] if start < stop else result

    def inside(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """The covered ranges that overlap a range, in order, each with the number."""
        i = max(bisect_right(self._starts, start) - 1, 0)
        while i < len(self._starts) and self._starts[i] < stop:
            if self._ranges[i][0] > start:
                yield self._starts[i], *self._ranges[i]
            i += 1

    def add(self, start: int, stop: int, number: int) -> None:
        """Cover a range that was missing."""
        i = bisect_right(self._starts, start)
        self._starts.insert(i, start)
        self._ranges.insert(i, (stop, number))


def overlapped(
    plan: Plan, sizes: Mapping[int, int], read: Collection[int], element: int = 1
) -> Plan:
    """A plan with copies between the steps.

    `sizes` has the bytes of each buffer that stands for an array on a device; `read`
    has the buffers whose arrays hold data before the call.
    """
    steps = pipelined(plan.steps)
    needs = _Needs(read)
    awaited = [needs.last_range(step, sizes, element) for step in steps]
    fetches, last = needs.joined()
    stores = _stores(steps, sizes, element)
    result: list[Step] = []
    fetched = -1
    for step, need, ranges in zip(steps, awaited, stores, strict=True):
        if need >= 0 and last[need] > fetched:
            fetched = last[need]
            result.append(Fetched(fetched))
        result.append(step)
        if ranges:
            result.append(Store(tuple(ranges)))
    if any(stores):
        result.append(Stored())
    stored_at_once = max(
        PIECE_BYTES, max(sizes.values(), default=0) // COPIES_OF_LONG_ARRAY
    )
    transfers = Transfers(fetches, stored_at_once)
    return replace(plan, steps=tuple(result), transfers=transfers)


def around(
    plan: Plan,
    sizes: Mapping[int, int],
    read: Collection[int],
    written: Collection[int],
) -> Plan:
    """A plan with copies of whole arrays before the first step and after the last.

    For plans whose steps do not tell the order of reads and writes, because the MPI
    library's own call, for instance, may read and write at any time.
    """
    steps: tuple[Step, ...] = plan.steps
    slots = plan.slots
    if plan.native is not None:
        steps, slots = (StartNative(0), Await((0,), 1)), 1
    fetches = tuple((k, 0, sizes[k]) for k in read if sizes[k])
    stores = tuple((k, 0, sizes[k]) for k in written if sizes[k])
    # the library's own calls match in the order of their start, and ranks with arrays
    # on the host start at once: another call must not start while a copy is awaited
    is_awaited = plan.native is not None
    first: list[Step] = [Fetched(len(fetches) - 1, is_awaited)] if fetches else []
    last: list[Step] = [Store(stores), Stored()] if stores else []
    transfers = Transfers(fetches, 0)
    return replace(
        plan, steps=(*first, *steps, *last), slots=slots, transfers=transfers
    )


class _Needs:
    """The ranges that steps read before any step writes, in the order of the steps."""

    def __init__(self, read: Collection[int]) -> None:
        self._read = read
        self._covered: dict[int, _Coverage] = {}
        self._ranges: list[Range] = []

    def last_range(self, step: Step, sizes: Mapping[int, int], element: int) -> int:
        """The number of the last range that a step needs, or -1."""
        last = -1
        for buffer, start, stop in reads(step, element):
            if buffer not in sizes or buffer not in self._read:
                continue
            covered = self._covered.setdefault(buffer, _Coverage())
            for low, high in covered.missing(start, stop):
                for at in range(low, high, PIECE_BYTES):
                    end = min(at + PIECE_BYTES, high)
                    covered.add(at, end, len(self._ranges))
                    self._ranges.append((buffer, at, end))
            numbers = (number for *_, number in covered.inside(start, stop))
            last = max(last, max(numbers, default=-1))
        for buffer, start, stop in writes(step, element):
            if buffer in sizes:
                covered = self._covered.setdefault(buffer, _Coverage())
                for low, high in covered.missing(start, stop):
                    covered.add(low, high, -1)
        return last

    def joined(self) -> tuple[tuple[Range, ...], list[int]]:
        """The copies from devices, and for each range the last copy to wait for.

        Ranges that lie side by side are joined, since longer copies are faster. Copies
        are in the order in which steps need their first bytes.
        """
        total = sum(stop - start for _, start, stop in self._ranges)
        most_bytes = max(total // COPIES_OF_LONG_ARRAY, LEAST_FETCHED_BYTES)
        starts = {(k, start): i for i, (k, start, _) in enumerate(self._ranges)}
        copies: list[Range] = []
        copy_of: dict[int, int] = {}
        last: list[int] = []
        for i, (k, start, stop) in enumerate(self._ranges):
            if i not in copy_of:
                copy_of[i] = len(copies)
                while (j := starts.get((k, stop))) is not None and j not in copy_of:
                    if self._ranges[j][2] - start > most_bytes:
                        break
                    copy_of[j], stop = len(copies), self._ranges[j][2]
                copies.append((k, start, stop))
            last.append(max([copy_of[i], *last[-1:]]))
        return tuple(copies), last


def _stores(
    steps: Sequence[Step], sizes: Mapping[int, int], element: int
) -> list[list[Range]]:
    """By step, the ranges that no later step writes.

    A receive counts as a write of the step that awaits the message.
    """
    awaited_in: dict[int, int] = {}
    for i, step in enumerate(steps):
        if isinstance(step, Await):
            awaited_in |= dict.fromkeys(step.slots, i)
        elif isinstance(step, AwaitSized):
            awaited_in[step.slot] = i
    covered = {k: _Coverage() for k in sizes}
    result: list[list[Range]] = [[] for _ in steps]
    written = []
    for i, step in enumerate(steps):
        at = i
        if isinstance(step, StartReceive | StartTypedReceive):
            at = awaited_in[step.slot]
        written += [(at, run) for run in writes(step, element) if run.buffer in sizes]
    for at, (buffer, start, stop) in sorted(written, key=lambda x: -x[0]):
        for low, high in covered[buffer].missing(start, stop):
            covered[buffer].add(low, high, 0)
            result[at].append((buffer, low, high))
    return result


# -- sends and receives of a round, in turns


def pipelined(steps: Sequence[Step]) -> list[Step]:
    """The steps, with few receives of a round posted at a time, each awaited alone."""
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
    """The steps of a round, with the messages in turns up to the end."""
    slots = set(end.slots)
    sends = [x for x in segment if isinstance(x, StartSend) and x.slot in slots]
    posts = [x for x in segment if isinstance(x, StartReceive) and x.slot in slots]
    # steps between the messages, such as copies into a message, must keep their places
    begin = next((i for i, x in enumerate(segment) if x in sends or x in posts), None)
    between = (
        []
        if begin is None
        else [x for x in segment[begin:] if x not in sends and x not in posts]
    )
    if begin is None or between or not (sends and posts):
        return [*segment, end]
    receive_slots = {post.slot for post in posts}
    other_slots = [k for k in end.slots if k not in receive_slots]
    result = list(segment[:begin])
    sources: dict[int, list[StartReceive]] = {}
    for post in posts:
        sources.setdefault(post.peer, []).append(post)
    for parts in sources.values():
        result += parts[:MOST_POSTED_RECEIVES]
    following = {
        parts[i].slot: parts[i + MOST_POSTED_RECEIVES]
        for parts in sources.values()
        for i in range(len(parts) - MOST_POSTED_RECEIVES)
    }
    receives = _turns(list(sources.values()))
    targets: dict[int, list[StartSend]] = {}
    for send in sends:
        targets.setdefault(send.peer, []).append(send)
    leaving = _turns(list(targets.values()))

    # all sends leave before the first receive is awaited: two ranks would wait for each
    # other otherwise
    result += leaving
    for post in receives:
        result.append(Await((post.slot,), end.round_number))
        if post.slot in following:
            result.append(following[post.slot])
    if other_slots:
        result.append(Await(tuple(other_slots), end.round_number))
    return result


def _turns(parts: Sequence[Sequence[Message]]) -> list[Message]:
    """The first message of each rank, then the second of each, and on."""
    return [x for row in zip_longest(*parts) for x in row if x is not None]
