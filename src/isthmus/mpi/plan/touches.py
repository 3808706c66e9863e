"""The bytes of an operation's buffers that a step reads and writes."""

from __future__ import annotations

from collections.abc import Iterator

from ..buffers.selection import Selection
from .steps import (
    ArrayAt,
    Compute,
    LongCopy,
    Move,
    Pack,
    ReduceLocal,
    Run,
    ShortCopy,
    StartAllgatherv,
    StartReceive,
    StartSend,
    StartTypedReceive,
    StartTypedSend,
    Step,
    Unpack,
)


def _selected(buffer: int, selection: Selection) -> Iterator[Run]:
    ends = zip(selection.offsets.tolist(), selection.lengths.tolist(), strict=True)
    return (Run(buffer, start, start + n) for start, n in ends)


def reads(step: Step, element: int) -> list[Run]:
    """The runs that a step reads; `element` is the bytes of a combined element."""
    if isinstance(step, StartSend):
        return [Run(step.buffer, step.start, step.start + step.nbytes)]
    if isinstance(step, ShortCopy | LongCopy):
        return [Run(step.source, step.read.start, step.read.stop)]
    if isinstance(step, StartTypedSend):
        return list(_selected(step.buffer, step.selection))
    if isinstance(step, Pack):
        return list(_selected(step.source, step.selection))
    if isinstance(step, Unpack):
        n = step.selection.nbytes
        return [Run(step.source, step.start, step.start + n)]
    if isinstance(step, Move):
        return list(_selected(step.source, step.read))
    if isinstance(step, ReduceLocal):
        n = step.elements * element
        places = (*step.sources, (step.target, step.written))
        return [Run(buffer, start, start + n) for buffer, start in places]
    if isinstance(step, StartAllgatherv):
        return [Run(step.buffer, step.offsets[0], step.offsets[-1])]
    return [*map(_bytes_of, step.read)] if isinstance(step, Compute) else []


def writes(step: Step, element: int) -> list[Run]:
    """The runs that a step writes, for a receive when the message is complete."""
    if isinstance(step, StartReceive):
        return [Run(step.buffer, step.start, step.start + step.nbytes)]
    if isinstance(step, ShortCopy | LongCopy):
        return [Run(step.target, step.written.start, step.written.stop)]
    if isinstance(step, StartTypedReceive):
        return list(_selected(step.buffer, step.selection))
    if isinstance(step, Unpack):
        return list(_selected(step.target, step.selection))
    if isinstance(step, Pack):
        n = step.selection.nbytes
        return [Run(step.target, step.start, step.start + n)]
    if isinstance(step, Move):
        return list(_selected(step.target, step.written))
    if isinstance(step, ReduceLocal):
        n = step.elements * element
        return [Run(step.target, step.written, step.written + n)]
    if isinstance(step, StartAllgatherv):
        return [Run(step.buffer, step.offsets[0], step.offsets[-1])]
    return [*map(_bytes_of, step.written)] if isinstance(step, Compute) else []


def _bytes_of(array: ArrayAt) -> Run:
    """All bytes between the first and the last element of an array."""
    buffer, first, shape, strides, dtype = array
    if 0 in shape:
        return Run(buffer, first, first)
    reaches = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    low = first + sum(reach for reach in reaches if reach < 0)
    high = first + sum(reach for reach in reaches if reach > 0) + dtype.itemsize
    return Run(buffer, low, high)
