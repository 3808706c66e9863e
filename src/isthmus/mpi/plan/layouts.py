"""Layouts: the places of a schedule's logical buffers in an operation's buffers.

Counts and displacements of the blocks are part of the values that identify a call, so
the places are compiled into the plan: a span of "recv" becomes runs of bytes of the
user's memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ...schedules.ir import Data, Pieces, Span
from .steps import Run

#: the place of bytes of a logical buffer: first byte, end, the buffer of the operation,
#: and the offset in that buffer
Place: TypeAlias = tuple[int, int, int, int]
#: all bytes of a logical buffer, in ascending order
Layout: TypeAlias = tuple[Place, ...]


def layout(nbytes: int, buffer: int, start: int = 0) -> Layout:
    """The layout of consecutive bytes in one buffer."""
    return ((0, nbytes, buffer, start),)


def layout_of_blocks(
    sizes: Sequence[int], starts: Sequence[int], buffer: int
) -> Layout:
    """The layout of blocks at offsets of one buffer, by sizes and offsets in bytes."""
    places: list[Place] = []
    first = 0
    for size, start in zip(sizes, starts, strict=True):
        if size:
            places.append((first, first + size, buffer, start))
            first += size
    return merged(places)


def merged(places: Iterable[Place]) -> Layout:
    """The layout of places, with neighbours in a buffer merged into one place."""
    layout: list[Place] = []
    for place in places:
        first, last, buffer, start = place
        if first == last:
            continue
        if layout:
            last_first, last_last, last_buffer, last_start = layout[-1]
            is_neighbour = last_start + last_last - last_first == start
            if last_buffer == buffer and is_neighbour:
                layout[-1] = last_first, last, buffer, last_start
                continue
        layout.append(place)
    return tuple(layout)


def chained(layouts: Iterable[Layout]) -> Layout:
    """The layout of several data, one behind the other."""
    places: list[Place] = []
    at = 0
    for part in layouts:
        places += [
            (first + at, last + at, buffer, start)
            for first, last, buffer, start in part
        ]
        at = places[-1][1] if places else 0
    return merged(places)


def cut_out(places: Layout, start: int, stop: int) -> Layout:
    """The layout of the bytes from `start` to `stop` of a layout."""
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
    """The layouts of a schedule's logical buffers, and the bytes of their elements."""

    places: dict[str, Layout]
    units: dict[str, int]
    #: layouts for sent data, where different: a rank's own block is sent from the
    #: user's send buffer while the block is copied to the receive buffer
    sources: dict[str, Layout] = field(default_factory=dict)

    def runs(self, data: Data, is_sent: bool = False) -> list[Run]:
        """The runs of bytes of spans of elements; neighbouring runs become one."""
        if isinstance(data, Pieces):
            return self._runs_of_pieces(data, is_sent)
        return joined(run for span in data for run in self.placed(span, is_sent))

    def _layout_of(self, name: str, is_sent: bool) -> Layout:
        if is_sent and name in self.sources:
            return self.sources[name]
        return self.places[name]

    def placed(self, span: Span, is_sent: bool = False) -> Iterator[Run]:
        """The runs of bytes of one span of elements."""
        unit = self.units[span.buf]
        start, stop = span.start * unit, (span.start + span.size) * unit
        places = self._layout_of(span.buf, is_sent)
        i = bisect_right(places, start, key=_first_byte) - 1
        while start < stop:
            first, last, buffer, at = places[i]
            end = min(stop, last)
            if end > start:
                yield Run(buffer, at + start - first, at + end - first)
            start, i = end, i + 1

    def _runs_of_pieces(self, data: Pieces, is_sent: bool) -> list[Run]:
        """The result of `runs` for many spans, computed by numpy at once."""
        places, unit = self._layout_of(data.buf, is_sent), self.units[data.buf]
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
    """The runs without empty runs; neighbouring runs become one."""
    joined_runs: list[Run] = []
    for run in runs:
        buffer, start, stop = run
        last = joined_runs[-1] if joined_runs else None
        if last is not None and last.buffer == buffer and last.stop == start:
            joined_runs[-1] = Run(buffer, last.start, stop)
        elif stop > start:
            joined_runs.append(run)
    return joined_runs


def matched(source: Sequence[Run], target: Sequence[Run]) -> Iterator[tuple[Run, Run]]:
    """Pairs of equally long runs that bring the bytes of `source` to `target`."""
    sources, targets = list(reversed(source)), list(reversed(target))
    while sources and targets:
        (x, a, b), (y, c, d) = sources.pop(), targets.pop()
        n = min(b - a, d - c)
        yield Run(x, a, a + n), Run(y, c, c + n)
        if b - a > n:
            sources.append(Run(x, a + n, b))
        if d - c > n:
            targets.append(Run(y, c + n, d))
