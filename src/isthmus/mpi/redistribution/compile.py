"""The steps of a redistribution: from rounds to a plan, for fields of any strides.

The compiler of collectives knows contiguous buffers. A field may have any strides, and
several fields may travel in a message, so runs of elements become selections of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ...redistribution.runs import elements_of
from ...schedules.ir import Copy, Data, Local, Pieces, Recv, Round, Send, Steps
from ...schedules.program import buffer_size
from ..buffers.selection import Selection
from ..plan.compile import LONGEST_MESSAGE_BYTES, SCRATCH_ALIGNMENT_BYTES
from ..plan.steps import (
    TMP,
    Await,
    AwaitSized,
    Compute,
    Move,
    Pack,
    ReduceLocal,
    StartReceive,
    StartSend,
    StartTypedReceive,
    StartTypedSend,
    Step,
    Unpack,
)
from .fields import Field, select_pairs

#: bytes of a round's sends under way at a time; a longer message goes alone. On a lab
#: of 8 + 8 hosts at 50 Mbit/s, single long messages take 1.08 to 1.09 of the limit, two
#: or four at a time 1.2 (MPICH 5.0, Open MPI 5.0)
FLIGHT_BYTES = 1 << 16
#: longer messages of several fields are split by field, since packing would take longer
#: than further start-ups
SEPARATE_FIELDS_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Arrival:
    """The arrival of runs of the target's flattened array, of certain fields."""

    fields: tuple[int, ...]
    start: np.ndarray
    size: np.ndarray


#: from arrivals in order to the steps that follow each arrival
Consumer: TypeAlias = Callable[[Sequence[Arrival]], Sequence[Sequence[Step]]]


@dataclass(frozen=True, slots=True)
class MessagePart:
    """A part of a message that is sent separately: equal runs of several fields."""

    places: tuple[int, ...]
    fields: tuple[Field, ...]
    selections: tuple[Selection, ...]
    start: np.ndarray
    size: np.ndarray

    @property
    def nbytes(self) -> int:
        """The bytes of the part."""
        return sum(selection.nbytes for selection in self.selections)

    @property
    def is_one_run(self) -> bool:
        """Whether all bytes of the part lie in a single run."""
        return len(self.fields) == 1 and len(self.selections[0].lengths) <= 1


class FieldsCompiler:
    """The steps of a redistribution, compiled round by round."""

    def __init__(
        self,
        source: Sequence[Field],
        target: Sequence[Field],
        *,
        cut: int,
        is_typed: bool,
    ) -> None:
        """`cut` is the largest message in bytes, or 0.

        In memory of the host (`is_typed`), long runs are sent by datatypes of MPI.
        """
        self._fields = {"send": source, "recv": target}
        self._cut = min(cut or LONGEST_MESSAGE_BYTES, LONGEST_MESSAGE_BYTES)
        self._is_typed = is_typed
        self.steps: list[Step] = []
        self.slots = self.scratch = 0

    def replace(self, name: str, fields: Sequence[Field]) -> None:
        """Replace the fields of a buffer of the rounds."""
        self._fields[name] = fields

    def tmp(self, elements: int) -> None:
        """Reserve scratch for elements of each target field, as the buffer "tmp"."""
        dtypes = [x.dtype for x in self._fields["recv"]]
        self._fields["tmp"] = [self.room_for((elements,), dtype) for dtype in dtypes]

    def room_for(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Field:
        """Scratch for an array without gaps."""
        strides = [dtype.itemsize * prod(shape[k + 1 :]) for k in range(len(shape))]
        start = self._room(prod(shape) * dtype.itemsize)
        return Field(shape, tuple(strides), dtype, TMP, start)

    def _room(self, nbytes: int) -> int:
        """The offset of reserved bytes of scratch."""
        start = -(-self.scratch // SCRATCH_ALIGNMENT_BYTES) * SCRATCH_ALIGNMENT_BYTES
        self.scratch = start + nbytes
        return start

    def _slot(self) -> int:
        """The slot of a further message of the plan."""
        self.slots += 1
        return self.slots - 1

    # -- messages

    def _messages(self, c: Send | Recv) -> list[MessagePart]:
        """The parts of a message.

        Both ends cut alike, since sender and receiver know the elements and the types
        of all fields.
        """
        name, start, size = runs_of(c.data)
        fields = tuple(self._fields[name])
        unit = sum(field.dtype.itemsize for field in fields)
        total = int(size.sum())
        part_elements = max(self._cut // max(unit, 1), 1)
        is_split_by_field = total * unit >= SEPARATE_FIELDS_BYTES
        parts = []
        for low in range(0, total, part_elements) or [0]:
            runs = (
                elements_of(start, size, low, low + part_elements)
                if total > part_elements
                else (start, size)
            )
            selections = tuple(field.select(*runs) for field in fields)
            if is_split_by_field:
                pairs = enumerate(zip(fields, selections, strict=True))
                parts += [
                    MessagePart((k,), (field,), (selection,), *runs)
                    for k, (field, selection) in pairs
                ]
            else:
                parts.append(
                    MessagePart(tuple(range(len(fields))), fields, selections, *runs)
                )
        return parts

    def _sends(self, c: Send) -> list[tuple[list[Step], Step, int]]:
        """The packing, the send and the bytes of each part of a message."""
        result: list[tuple[list[Step], Step, int]] = []
        for part in self._messages(c):
            nbytes, slot, packing = part.nbytes, self._slot(), list[Step]()
            buffer, selection = part.fields[0].buffer, part.selections[0]
            if part.is_one_run:
                send: Step = StartSend(c.to, buffer, selection.span[0], nbytes, slot)
            elif self._is_sent_typed(part):
                send = StartTypedSend(c.to, buffer, selection, slot)
            else:
                offset = first = self._room(nbytes)
                for field, selection in zip(part.fields, part.selections, strict=True):
                    packing.append(Pack(field.buffer, selection, TMP, offset))
                    offset += selection.nbytes
                send = StartSend(c.to, TMP, first, nbytes, slot)
            result.append((packing, send, nbytes))
        return result

    def _posts(self, c: Recv) -> list[tuple[Step, list[Step], Arrival]]:
        """The receive, the end with the unpacking, and the arrival of each part."""
        result: list[tuple[Step, list[Step], Arrival]] = []
        for part in self._messages(c):
            nbytes, slot = part.nbytes, self._slot()
            buffer, selection = part.fields[0].buffer, part.selections[0]
            end: list[Step] = [AwaitSized(slot, c.frm, nbytes, 1)]
            if part.is_one_run:
                post: Step = StartReceive(
                    c.frm, buffer, selection.span[0], nbytes, slot
                )
            elif self._is_sent_typed(part):
                post = StartTypedReceive(c.frm, buffer, selection, slot)
            else:
                offset = first = self._room(nbytes)
                for field, selection in zip(part.fields, part.selections, strict=True):
                    end.append(Unpack(TMP, offset, field.buffer, selection))
                    offset += selection.nbytes
                post = StartReceive(c.frm, TMP, first, nbytes, slot)
            result.append((post, end, Arrival(part.places, part.start, part.size)))
        return result

    def _is_sent_typed(self, part: MessagePart) -> bool:
        """Whether a part is sent by a datatype of MPI, without packing."""
        is_one_field = self._is_typed and len(part.fields) == 1
        return is_one_field and part.selections[0].is_typed

    # -- rounds

    def add(self, r: Round, consumer: Consumer | None = None) -> None:
        """Append a round: all receives are posted, sends follow in flights.

        Arrivals are unpacked and consumed beside further messages, to avoid idle time.
        The rank's own data come first, since no message touches the data.
        """
        posts = [x for c in r.comm if isinstance(c, Recv) for x in self._posts(c)]
        sends = [x for c in r.comm if isinstance(c, Send) for x in self._sends(c)]
        own = _from_itself(r.then)
        arrivals = [arrival for _, _, arrival in posts]
        if own is not None:
            all_fields = tuple(range(len(self._fields["recv"])))
            arrivals.insert(0, Arrival(all_fields, own.dst.start, own.dst.size))
        following = iter(
            [[]] * len(arrivals) if consumer is None else consumer(arrivals)
        )
        self.steps += [post for post, _, _ in posts]
        under_way: list[int] = []
        for flight in _flights(sends):
            for packing, _, _ in flight:
                self.steps += packing
            if under_way:
                self.steps.append(Await(tuple(under_way), 1))
            self.steps += [send for _, send, _ in flight]
            under_way = [send.slot for _, send, _ in flight]
        if own is not None:
            self.local(own)
            self.steps += next(following)
        for _, end, _ in posts:
            self.steps += [*end, *next(following)]
        if under_way:
            self.steps.append(Await(tuple(under_way), 1))
        if own is None:
            self.local(r.then)

    def local(self, steps: Sequence[Local]) -> None:
        """Append the local steps of a round, all copies or all reductions."""
        if not steps:
            return
        assert isinstance(steps, Steps)
        start, target, size = steps.src.start, steps.dst.start, steps.src.size
        ends = self._fields[steps.src.buf], self._fields[steps.dst.buf]
        for k, (x, y) in enumerate(zip(*ends, strict=True)):
            if steps.kind is Copy:
                read, written = select_pairs(x, start, y, target, size)
                self.steps.append(Move(x.buffer, read, y.buffer, written))
            else:
                self._reduce(k, x.select(start, size), x, y.select(target, size), y)

    def _reduce(
        self, k: int, read: Selection, x: Field, written: Selection, y: Field
    ) -> None:
        """Append target := source (op) target, on packed elements.

        Elements are packed because MPI's operators need contiguous elements.
        """
        left, right = self._room(read.nbytes), self._room(written.nbytes)
        count = read.nbytes // x.dtype.itemsize
        self.steps += [
            Pack(x.buffer, read, TMP, left),
            Pack(y.buffer, written, TMP, right),
            ReduceLocal(((TMP, left),), TMP, right, count, k),
            Unpack(TMP, right, y.buffer, written),
        ]

    def divide(self, x: Field, divisors: np.ndarray) -> None:
        """Append a division of sums by the numbers of summands."""
        if divisors.size:
            shaped, sums = divisors.reshape(x.shape), (x.place,)
            self.steps.append(Compute(partial(_divide, shaped), sums, sums))


def _divide(divisors: np.ndarray, sums: np.ndarray, means: np.ndarray) -> None:
    np.divide(sums, divisors, out=means, casting="same_kind")


def _from_itself(steps: Sequence[Local]) -> Steps | None:
    """The copies from source to target within a rank, or None for further steps."""
    if isinstance(steps, Steps) and steps.kind is Copy and steps.src.buf == "send":
        return steps
    return None


def runs_of(data: Data) -> tuple[str, np.ndarray, np.ndarray]:
    """The buffer of a message, and the runs of the message in the buffer."""
    if isinstance(data, Pieces):
        name, start, size = data.buf, data.start, data.size
    else:
        (name,) = {span.buf for span in data}
        start, size = (
            np.array([getattr(span, end) for span in data]) for end in ("start", "size")
        )
    keep = size > 0
    return name, start[keep], size[keep]


def _flights(
    sends: Sequence[tuple[list[Step], Any, int]],
) -> list[list[tuple[list[Step], Any, int]]]:
    """The sends in groups under way at a time."""
    flights: list[list[tuple[list[Step], Any, int]]] = []
    bytes_left = 0
    for send in sends:
        nbytes = send[2]
        if not flights or nbytes > bytes_left:
            flights.append([])
            bytes_left = FLIGHT_BYTES
        flights[-1].append(send)
        bytes_left -= nbytes
    return flights


def compiled(
    transfer_rounds: Sequence[Round],
    replication_rounds: Sequence[Round],
    source: Sequence[Field],
    target: Sequence[Field],
    divisors: np.ndarray | None,
    *,
    cut: int,
    is_typed: bool,
) -> FieldsCompiler:
    """The steps of the rounds, with a division of sums before the replication."""
    compiler = FieldsCompiler(source, target, cut=cut, is_typed=is_typed)
    if n := buffer_size(transfer_rounds, "tmp"):
        compiler.tmp(n)
    for r in transfer_rounds:
        compiler.add(r)
    if divisors is not None:
        for x in target:
            compiler.divide(x, divisors)
    for r in replication_rounds:
        compiler.add(r)
    return compiler
