"""Rounds and plans of a rank, evaluated on symbols instead of data.

Every byte holds a number that says its origin: the byte of a buffer at the beginning,
of the k-th message of a rank, of node memory after a meeting, or the result of an
operator on two bytes. Two evaluations that send equal numbers to equal ranks in equal
order, and end with equal numbers in their buffers, are equal for any data. The numbers
are hashes of 64 bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from isthmus.mpi.plan import steps
from isthmus.mpi.plan.plan import Plan
from isthmus.schedules.ir import Copy, Data, Recv, Round, Send, Span

_FACTORS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_RECEIVED, _NODE, _GARBAGE = 101, 103, 107


def mix(x, y) -> np.ndarray:
    """A hash for each pair of numbers, which depends on their order."""
    with np.errstate(over="ignore"):
        z = np.asarray(x, np.uint64) * _FACTORS[0] ^ np.asarray(y, np.uint64)
        z = (z ^ (z >> np.uint64(29))) * _FACTORS[1]
        return z ^ (z >> np.uint64(32))


def symbols(kind: int, nbytes: int, *numbers: int) -> np.ndarray:
    """The symbols of nbytes bytes, named by a kind and numbers."""
    name = np.uint64(kind)
    for number in numbers:
        name = mix(name, number)
    return mix(name, np.arange(nbytes, dtype=np.uint64))


def garbage(nbytes: int) -> np.ndarray:
    """Symbols that no rank may send or leave in a result."""
    return symbols(_GARBAGE, nbytes)


@dataclass
class Evaluation:
    """The messages of a rank, and the writes to node memory, in order."""

    sent: list[tuple[int, bytes]] = field(default_factory=list)
    received: dict[int, list[int]] = field(default_factory=dict)
    #: the writes to node memory before each meeting
    published: list[bytes] = field(default_factory=list)
    _count: Counter[int] = field(default_factory=Counter)
    _written: dict[int, int] = field(default_factory=dict)

    def send(self, rank: int, data: np.ndarray) -> None:
        """Record a message to a rank."""
        self.sent.append((rank, data.tobytes()))

    def receive(self, rank: int, nbytes: int) -> np.ndarray:
        """The symbols of the next message of a rank."""
        self.received.setdefault(rank, []).append(nbytes)
        self._count[rank] += 1
        return symbols(_RECEIVED, nbytes, rank, self._count[rank])

    def note(self, start: int, data: np.ndarray) -> None:
        """Record a write to node memory, from a byte on."""
        self._written |= zip(
            range(start, start + len(data)), data.tolist(), strict=True
        )

    def meet(self, node: np.ndarray) -> None:
        """Publish the writes, and fill node memory with symbols of the meeting, since
        other ranks have written to the memory."""
        writes = np.array(sorted(self._written.items()), np.uint64)
        self.published.append(writes.tobytes())
        self._written.clear()
        node[:] = symbols(_NODE, len(node), len(self.published))


def _bytes(span: Span, unit: int) -> slice:
    start, size = int(span.start) * unit, int(span.size) * unit
    return slice(start, start + size)


def evaluate_rounds(
    rounds: Sequence[Round],
    buffers: Mapping[str, np.ndarray],
    unit: int,
    ranks: Sequence[int],
) -> Evaluation:
    """Run the rounds of a rank like the reference machine, in place on `buffers`.

    `ranks` has the numbers of the schedule's ranks in the plan's communicator.
    """
    result = Evaluation()

    def read(data: Data) -> np.ndarray:
        parts = [buffers[x.buf][_bytes(x, unit)] for x in data]
        return np.concatenate([np.empty(0, np.uint64), *parts])

    def write(span: Span, data: np.ndarray) -> None:
        place = _bytes(span, unit)
        buffers[span.buf][place] = data
        if span.buf == "node":
            result.note(place.start, data)

    for r in rounds:
        for c in r.comm:
            if isinstance(c, Send):
                result.send(ranks[c.to], read(c.data))
        for c in r.comm:
            if isinstance(c, Recv):
                size = sum(int(x.size) for x in c.data) * unit
                data, at = result.receive(ranks[c.frm], size), 0
                for span in c.data:
                    n = int(span.size) * unit
                    write(span, data[at : at + n])
                    at += n
        for step in r.then:
            data = read((step.src,))
            if not isinstance(step, Copy):
                data = mix(data, read((step.dst,)))
            write(step.dst, data.copy())
        if r.meet:
            result.meet(buffers["node"])
    return result


def evaluate_plan(plan: Plan, buffers: Mapping[int, np.ndarray], element: int):
    """Run the steps of a plan, in place on `buffers`.

    Received data arrive when awaited, and sent data must not change before: otherwise
    the result would depend on the time of the messages.
    """
    result, slots = Evaluation(), {}
    sending: dict[int, tuple[int, np.ndarray, np.ndarray]] = {}

    def write(buffer: int, place, data: np.ndarray) -> None:
        buffers[buffer][place] = data
        if buffer == steps.NODE:
            assert isinstance(place, slice), "node memory is written in one run"
            result.note(place.start, data)

    def index(selection) -> np.ndarray:
        starts = zip(
            selection.offsets.tolist(), selection.lengths.tolist(), strict=True
        )
        parts = [np.arange(at, at + n) for at, n in starts]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def place_of(step):
        if isinstance(step, steps.StartReceive | steps.StartSend):
            return slice(step.start, step.start + step.nbytes)
        return index(step.selection)

    for step in plan.steps:
        match step:
            case steps.StartReceive() | steps.StartTypedReceive():
                place = place_of(step)
                n = len(buffers[step.buffer][place])
                slots[step.slot] = step.buffer, place, result.receive(step.peer, n)
            case steps.StartSend() | steps.StartTypedSend():
                data = buffers[step.buffer][place_of(step)].copy()
                sending[step.slot] = step.buffer, place_of(step), data
                result.send(step.peer, data)
            case steps.Await() | steps.AwaitSized():
                awaited = step.slots if isinstance(step, steps.Await) else (step.slot,)
                for slot in awaited:
                    if slot in sending:
                        buffer, place, data = sending.pop(slot)
                        assert (buffers[buffer][place] == data).all(), "sent too late"
                for slot in awaited:
                    if slot in slots:
                        write(*slots.pop(slot))
            case steps.ShortCopy() | steps.LongCopy():
                write(step.target, step.written, buffers[step.source][step.read].copy())
            case steps.Pack():
                data = buffers[step.source][index(step.selection)]
                write(step.target, slice(step.start, step.start + len(data)), data)
            case steps.Unpack():
                place = index(step.selection)
                data = buffers[step.source][step.start : step.start + len(place)]
                buffers[step.target][place] = data
                assert step.target != steps.NODE
            case steps.ReduceLocal():
                n = step.elements * element
                place = slice(step.written, step.written + n)
                for source, read in step.sources:
                    data = buffers[source][read : read + n]
                    write(step.target, place, mix(data, buffers[step.target][place]))
            case steps.Meet():
                result.meet(buffers[steps.NODE])
            case steps.Enter():
                pass
            case _:
                raise TypeError(f"{step} is no step of a schedule")
    assert not slots and not sending, "a message is not awaited"
    return result
