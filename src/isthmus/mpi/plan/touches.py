"""Which bytes of an operation's buffers a step reads and writes."""

from __future__ import annotations

from collections.abc import Iterator

from ..buffers.selection import Selection
from .steps import (
    ArrayAt,
    Compute,
    Copy,
    Gather,
    LongCopy,
    Move,
    Pack,
    Post,
    PostTyped,
    Reduce,
    Run,
    Send,
    SendTyped,
    Step,
    Unpack,
)


def _selected(buffer: int, selection: Selection) -> Iterator[Run]:
    ends = zip(selection.offsets.tolist(), selection.lengths.tolist(), strict=True)
    return (Run(buffer, start, start + n) for start, n in ends)


def reads(step: Step, element: int) -> list[Run]:
    """What a step reads; elements that are combined have so many bytes."""
    if isinstance(step, Send):
        return [Run(step.buffer, step.start, step.start + step.nbytes)]
    if isinstance(step, Copy | LongCopy):
        return [Run(step.source, step.read.start, step.read.stop)]
    if isinstance(step, SendTyped):
        return list(_selected(step.buffer, step.selection))
    if isinstance(step, Pack):
        return list(_selected(step.source, step.selection))
    if isinstance(step, Unpack):
        n = step.selection.nbytes
        return [Run(step.source, step.start, step.start + n)]
    if isinstance(step, Move):
        return list(_selected(step.source, step.read))
    if isinstance(step, Reduce):
        n = step.elements * element
        places = (*step.sources, (step.target, step.written))
        return [Run(buffer, start, start + n) for buffer, start in places]
    if isinstance(step, Gather):
        return [Run(step.buffer, step.offsets[0], step.offsets[-1])]
    return [*map(_bytes_of, step.read)] if isinstance(step, Compute) else []


def writes(step: Step, element: int) -> list[Run]:
    """What a step writes; a receive writes it when it is complete."""
    if isinstance(step, Post):
        return [Run(step.buffer, step.start, step.start + step.nbytes)]
    if isinstance(step, Copy | LongCopy):
        return [Run(step.target, step.written.start, step.written.stop)]
    if isinstance(step, PostTyped):
        return list(_selected(step.buffer, step.selection))
    if isinstance(step, Unpack):
        return list(_selected(step.target, step.selection))
    if isinstance(step, Pack):
        n = step.selection.nbytes
        return [Run(step.target, step.start, step.start + n)]
    if isinstance(step, Move):
        return list(_selected(step.target, step.written))
    if isinstance(step, Reduce):
        n = step.elements * element
        return [Run(step.target, step.written, step.written + n)]
    if isinstance(step, Gather):
        return [Run(step.buffer, step.offsets[0], step.offsets[-1])]
    return [*map(_bytes_of, step.written)] if isinstance(step, Compute) else []


def _bytes_of(x: ArrayAt) -> Run:
    """All bytes between the first and the last element of an array."""
    if 0 in x.shape:
        return Run(x.buffer, x.first, x.first)
    reach = [(n - 1) * stride for n, stride in zip(x.shape, x.strides, strict=True)]
    low = x.first + sum(step for step in reach if step < 0)
    high = x.first + sum(step for step in reach if step > 0) + x.dtype.itemsize
    return Run(x.buffer, low, high)
