"""Where the logical buffers of a schedule lie in the buffers of an operation.

Where the blocks of a call lie, their counts and displacements, is a value that the call
is known by. So it is compiled into the plan: a span of "recv" becomes the runs of bytes
that it is in the user's memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ...schedules.ir import Data, Pieces, Span
from .steps import Run

#: where some bytes of a logical buffer lie: first byte, one after the last, the buffer
#: of the operation, and the offset there
Place: TypeAlias = tuple[int, int, int, int]
#: all bytes of a logical buffer, in ascending order
Layout: TypeAlias = tuple[Place, ...]


def layout(nbytes: int, buffer: int, start: int = 0) -> Layout:
    """Bytes that follow each other in one buffer."""
    return ((0, nbytes, buffer, start),)


def layout_of_blocks(
    sizes: Sequence[int], starts: Sequence[int], buffer: int
) -> Layout:
    """Blocks of so many bytes that begin at some offsets of one buffer."""
    places: list[Place] = []
    first = 0
    for size, start in zip(sizes, starts, strict=True):
        if size:
            places.append((first, first + size, buffer, start))
            first += size
    return merged(places)


def merged(places: Iterable[Place]) -> Layout:
    """The places, of which those that follow each other in a buffer become one."""
    result: list[Place] = []
    for place in places:
        first, last, buffer, start = place
        if first == last:
            continue
        if result:
            before, end, same, at = result[-1]
            if same == buffer and at + end - before == start:
                result[-1] = before, last, buffer, at
                continue
        result.append(place)
    return tuple(result)


def chained(layouts: Iterable[Layout]) -> Layout:
    """Layouts of data that follow each other, as one."""
    places: list[Place] = []
    at = 0
    for places_of_one in layouts:
        places += [
            (first + at, last + at, buffer, start)
            for first, last, buffer, start in places_of_one
        ]
        at = places[-1][1] if places else 0
    return merged(places)


def cut_out(places: Layout, start: int, stop: int) -> Layout:
    """The places of the bytes from `start` to `stop`, as a layout of their own."""
    return tuple(
        (
            max(first, start) - start,
            min(last, stop) - start,
            buffer,
            at + max(start - first, 0),
        )
        for first, last, buffer, at in places
        if first < stop and start < last
    )


@dataclass(frozen=True, slots=True)
class Layouts:
    """Where the logical buffers of a schedule lie, and the bytes of their elements."""

    places: dict[str, Layout]
    units: dict[str, int]
    #: where messages are sent from, if that is somewhere else: a block of this rank's
    #: own is sent from where the user has it while it is copied to where it belongs
    sources: dict[str, Layout] = field(default_factory=dict)

    def runs(self, data: Data, is_sent: bool = False) -> list[Run]:
        """Spans of elements as runs of bytes; neighbours become one."""
        if isinstance(data, Pieces):
            return self._runs_of_pieces(data, is_sent)
        return joined(run for span in data for run in self.placed(span, is_sent))

    def _of(self, name: str, is_sent: bool) -> Layout:
        if is_sent and name in self.sources:
            return self.sources[name]
        return self.places[name]

    def placed(self, span: Span, is_sent: bool = False) -> Iterator[Run]:
        """One span of elements as runs of bytes."""
        unit = self.units[span.buf]
        start, stop = span.start * unit, (span.start + span.size) * unit
        places = self._of(span.buf, is_sent)
        i = bisect_right(places, start, key=_first_byte) - 1
        while start < stop:
            first, last, buffer, at = places[i]
            end = min(stop, last)
            if end > start:
                yield Run(buffer, at + start - first, at + end - first)
            start, i = end, i + 1

    def _runs_of_pieces(self, data: Pieces, is_sent: bool) -> list[Run]:
        """As `runs`, of many spans at once."""
        places, unit = self._of(data.buf, is_sent), self.units[data.buf]
        if not places:
            return []
        start, stop = data.start * unit, (data.start + data.size) * unit
        firsts = np.array([place[0] for place in places], np.int64)
        i = np.searchsorted(firsts, start, side="right") - 1
        lasts = np.array([place[1] for place in places], np.int64)
        buffers = {place[2] for place in places}
        if len(buffers) > 1 or (stop > lasts[i]).any():
            return joined(run for span in data for run in self.placed(span, is_sent))
        at = np.array([place[3] for place in places], np.int64)
        offsets, lengths = _neighbours_joined(at[i] + start - firsts[i], stop - start)
        (buffer,) = buffers
        ends = zip(offsets.tolist(), (offsets + lengths).tolist(), strict=True)
        return [Run(buffer, first, last) for first, last in ends if last > first]


def _first_byte(place: Place) -> int:
    return place[0]


def _neighbours_joined(
    offsets: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    ends = np.cumsum(lengths)
    first = np.flatnonzero(np.diff(offsets - ends + lengths, prepend=-1))
    sizes = np.diff(ends[np.append(first[1:], len(ends)) - 1], prepend=0)
    return offsets[first], sizes


def joined(runs: Iterable[Run]) -> list[Run]:
    """The runs without empty ones; neighbours become one."""
    result: list[Run] = []
    for run in runs:
        buffer, start, stop = run
        if result and result[-1].buffer == buffer and result[-1].stop == start:
            result[-1] = Run(buffer, result[-1].start, stop)
        elif stop > start:
            result.append(run)
    return result


def matched(source: Sequence[Run], target: Sequence[Run]) -> Iterator[tuple[Run, Run]]:
    """The same bytes in two places, as pairs of runs that are whole in both."""
    left, right = list(reversed(source)), list(reversed(target))
    while left and right:
        (x, a, b), (y, c, d) = left.pop(), right.pop()
        n = min(b - a, d - c)
        yield Run(x, a, a + n), Run(y, c, c + n)
        if b - a > n:
            left.append(Run(x, a + n, b))
        if d - c > n:
            right.append(Run(y, c + n, d))
