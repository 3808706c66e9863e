"""Which bytes of an operation's buffers a step reads and writes."""

from __future__ import annotations

from collections.abc import Iterator

from ..buffers.selection import Selection
from .steps import (
    Copy,
    Divide,
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
        return [
            Run(step.source, step.read, step.read + n),
            Run(step.target, step.written, step.written + n),
        ]
    if isinstance(step, Gather):
        return [Run(step.buffer, step.offsets[0], step.offsets[-1])]
    return [_divided(step)] if isinstance(step, Divide) else []


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
    return [_divided(step)] if isinstance(step, Divide) else []


def _divided(step: Divide) -> Run:
    """All bytes between the first and the last element of an array."""
    steps = zip(step.divisors.shape, step.strides, strict=True)
    reach = [(n - 1) * stride for n, stride in steps]
    low = step.start + sum(x for x in reach if x < 0)
    high = step.start + sum(x for x in reach if x > 0) + step.dtype.itemsize
    return Run(step.buffer, low, high)
